// No line of running text is longer than about 90 characters.
(() => {
	const all = [...document.querySelectorAll('.chapter > p, .lead, .note p')];
	return all.length > 0 && all.every(e => e.clientWidth / (parseFloat(getComputedStyle(e).fontSize) * .45) <= 90);
})()
