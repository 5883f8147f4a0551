// Running text is at least 16 px, as it is shown.
(() => {
	const all = [...document.querySelectorAll('.chapter > p, .lead, .card p, .note p, .ledger td, .masthead p')];
	return all.length > 0 && all.every(e => parseFloat(getComputedStyle(e).fontSize) * (e.currentCSSZoom || 1) >= 16);
})()
