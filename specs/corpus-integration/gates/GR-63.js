// The first view shows the title and the way into the chapters.
['h1', '.toc a'].every(name => {
	const e = document.querySelector(name), r = e.getBoundingClientRect();
	return e.checkVisibility({opacityProperty: true, visibilityProperty: true}) && r.top >= 0 && r.bottom <= innerHeight;
})
