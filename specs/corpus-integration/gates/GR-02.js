// Fonts are loaded, none failed, and all letters have a width.
(() => {
	if (document.fonts.status !== 'loaded' || [...document.fonts].some(f => f.status === 'error')) return false;
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), range = document.createRange();
	let some = false;
	while (texts.nextNode()) {
		const t = texts.currentNode;
		if (!/[\p{L}\p{N}]/u.test(t.data) || !t.parentElement.checkVisibility()) continue;
		range.selectNodeContents(t);
		some = range.getBoundingClientRect().width > 0;
		if (!some) {
			note(`no width: ${t.data.trim()}`);
			break;
		}
	}
	return some;
})()
