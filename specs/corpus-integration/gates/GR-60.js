// Links in the table of chapters can be hit.
(() => {
	const all = [...document.querySelectorAll('.toc a')];
	return all.length > 0 && all.every(a => a.getBoundingClientRect().height >= 18 && a.getBoundingClientRect().width >= 18);
})()
