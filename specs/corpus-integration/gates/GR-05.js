// Headings skip no level.
(() => {
	let last = 0;
	for (const h of document.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
		const n = +h.tagName[1];
		if (n > last + 1) return false;
		last = n;
	}
	return last > 0;
})()
