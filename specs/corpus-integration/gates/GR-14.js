// Lines of running text have room.
(() => {
	const all = [...document.querySelectorAll('.lead, .masthead p, .chapter :is(p, li, td, blockquote)')].map(e => getComputedStyle(e));
	return all.length > 0 && all.every(s => parseFloat(s.lineHeight) / parseFloat(s.fontSize) > 1.34);
})()
