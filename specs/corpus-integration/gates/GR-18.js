// No text is cut off by its box, or by one around it.
(() => {
	const range = document.createRange();
	for (const e of document.querySelectorAll('p, h1, h2, h3, td, th, figcaption, li')) {
		if (!e.checkVisibility()) continue;
		range.selectNodeContents(e);
		const text = range.getBoundingClientRect();
		for (let box = e; box && box !== document.body; box = box.parentElement) {
			const s = getComputedStyle(box), r = box.getBoundingClientRect();
			const hides = overflow => /hidden|clip/.test(overflow);
			if (hides(s.overflowX) && (text.right > r.right + 1 || text.left < r.left - 1) || hides(s.overflowY) && (text.bottom > r.bottom + 1 || text.top < r.top - 1)) {
				note('cut off: ' + e.textContent.trim().slice(0, 60));
				return false;
			}
			if (/auto|scroll/.test(s.overflowX + s.overflowY)) break; // can be scrolled to
		}
	}
	return true;
})()
