// Running text is at least 16 px, as it is shown.
(() => {
	const all = [...document.querySelectorAll('.lead, .masthead p, .chapter :is(p, li, td, blockquote)')], em = document.createElement('span');
	em.style.cssText = 'all: initial; font-size: inherit; position: absolute; width: 1em; height: 1em';
	const small = all.find(e => {
		e.append(em);
		return e.checkVisibility() && em.getBoundingClientRect().width < 16;
	});
	em.remove();
	if (small) note(`small: ${small.textContent.trim()}`);
	return all.length > 0 && !small;
})()
