// Nothing is wider than the window: neither the page nor a text that an edge would hide.
(() => {
	if (document.documentElement.scrollWidth > innerWidth) return false;
	const scrolls = e => { for (; e; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true; return false; };
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
	while (texts.nextNode()) {
		const t = texts.currentNode;
		range.selectNodeContents(t);
		const {left, right} = range.getBoundingClientRect();
		if ((Math.floor(right) > innerWidth || Math.ceil(left) < 0 && right > 0) && t.parentElement.checkVisibility({visibilityProperty: true}) && !scrolls(t.parentElement)) {
			note(`leaves the window: ${t.data.trim()}`);
			return false;
		}
	}
	return true;
})()
