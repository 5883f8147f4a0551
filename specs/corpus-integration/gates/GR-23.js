// Each chapter has a drawing.
(() => {
	const all = [...document.querySelectorAll('.chapter')];
	return all.length > 0 && all.every(c => [...c.querySelectorAll('figure svg')].some(s => s.firstElementChild && s.getBoundingClientRect().height));
})()
