// No stretch of two screens is text alone.
(() => {
	const top = e => e.getBoundingClientRect().top + scrollY, bottom = e => e.getBoundingClientRect().bottom + scrollY;
	let last = 0;
	for (const e of document.querySelectorAll('.masthead, .toc, .chapter__head, .cards, figure, table, .note, .pull, footer')) {
		if (top(e) - last > 2 * innerHeight) return false;
		last = Math.max(last, bottom(e));
	}
	return last > 0 && document.documentElement.scrollHeight - last <= 2 * innerHeight;
})()
