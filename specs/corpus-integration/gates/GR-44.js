// No stretch of two screens is text alone.
(() => {
	const page = document.documentElement, start = page.getBoundingClientRect().top;
	const marks = [...document.querySelectorAll('.masthead, .toc, .chapter__head, .cards, figure, table, .note, .pull, footer')].map(e => e.getBoundingClientRect());
	let last = start;
	return [...marks, {top: start + page.scrollHeight}].every(({top, bottom}) => {
		const near = top - last <= 2 * innerHeight;
		last = Math.max(last, bottom);
		return near;
	});
})()
