// No line of running text is longer than about 90 characters of .45 em.
(() => {
	const all = [...document.querySelectorAll('.lead, .masthead p, .chapter :is(p, li, blockquote)')], em = document.createElement('span'), range = document.createRange();
	em.style.cssText = 'all: initial; font-size: inherit; position: absolute; width: 1em; height: 1em';
	const long = all.find(e => {
		range.selectNodeContents(e);
		const line = range.getBoundingClientRect().width;
		e.append(em);
		return line > 40.5 * em.getBoundingClientRect().width;
	});
	em.remove();
	if (long) note(`long: ${long.textContent.trim()}`);
	return all.length > 0 && !long;
})()
