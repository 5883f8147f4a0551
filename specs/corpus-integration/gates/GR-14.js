// Lines of running text have room.
(() => {
	const all = [...document.querySelectorAll('.chapter > p, .lead, .card p')];
	return all.length > 0 && all.every(e => parseFloat(getComputedStyle(e).lineHeight) >= 1.35 * parseFloat(getComputedStyle(e).fontSize) - .1);
})()
