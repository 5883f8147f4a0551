// Links in the table of chapters can be hit.
(() => {
	const all = [...document.querySelectorAll('.toc a')].map(a => a.getBoundingClientRect());
	return all.length > 0 && all.every(r => Math.min(r.width, r.height) >= 18);
})()
