// The table of chapters names each chapter.
(() => {
	const all = [...document.querySelectorAll('.chapter')], named = [...document.querySelectorAll('.toc a')].map(a => a.getAttribute('href'));
	return all.length > 0 && all.every(c => c.id && named.includes('#' + c.id));
})()
