// Fonts are loaded, none failed, and all letters have a width.
(() => {
	if (document.fonts.status !== 'loaded' || [...document.fonts].some(f => f.status === 'error')) return false;
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
	let n = 0;
	while (texts.nextNode()) {
		const t = texts.currentNode;
		if (!/[\p{L}\p{N}]/u.test(t.data) || !t.parentElement.checkVisibility()) continue;
		range.selectNodeContents(t);
		if (!(range.getBoundingClientRect().width > 0)) {
			note('no width: ' + t.data.trim().slice(0, 60));
			return false;
		}
		n++;
	}
	return n > 0;
})()
