// Nothing is wider than the window: neither the page nor a text that an edge would hide.
(() => {
	if (document.documentElement.scrollWidth > innerWidth) return false;
	const scrolls = e => { for (; e; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true; return false; };
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
	while (texts.nextNode()) {
		const t = texts.currentNode;
		if (!t.data.trim() || !t.parentElement.checkVisibility()) continue;
		range.selectNodeContents(t);
		if (range.getBoundingClientRect().right > innerWidth + 1 && !scrolls(t.parentElement)) {
			note('leaves the window: ' + t.data.trim().slice(0, 60));
			return false;
		}
	}
	return true;
})()
