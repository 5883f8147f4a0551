// No text is cut off by its box, or by one around it.
(() => {
	const range = document.createRange(), hides = overflow => /hidden|clip/.test(overflow), beyond = (a, b) => Math.floor(a - b) > 0;
	for (const e of document.querySelectorAll('p, h1, h2, h3, td, th, figcaption, li, blockquote')) {
		if (!e.checkVisibility({visibilityProperty: true})) continue;
		range.selectNodeContents(e);
		const text = range.getBoundingClientRect();
		for (let box = e; box && box !== document.body; box = box.parentElement) {
			const s = getComputedStyle(box), r = box.getBoundingClientRect();
			if (hides(s.overflowX) && (beyond(text.right, r.right) || beyond(r.left, text.left)) || hides(s.overflowY) && (beyond(text.bottom, r.bottom) || beyond(r.top, text.top))) {
				note(`cut off: ${e.textContent.trim()}`);
				return false;
			}
			if (/auto|scroll/.test(s.overflow)) break; // can be scrolled to
		}
	}
	return true;
})()
