// The content can be seen: nothing hides it, cuts it off or covers it.
(() => {
	const shown = {opacityProperty: true, visibilityProperty: true}, range = document.createRange();
	const paints = (e, part) => {
		const s = getComputedStyle(e, part), thin = /(rgba\(.*,|\/) 0(\.[0-4]\d*)?\)$/.test(s.backgroundColor);
		return !(part && s.content === 'none') && (!thin || s.backgroundImage !== 'none');
	};
	const covers = e => e.checkVisibility(shown) && (e.matches('img, video, canvas, iframe, svg') || ['', '::before', '::after'].some(part => paints(e, part)));
	const seen = e => {
		if (!e.checkVisibility(shown)) return false;
		e.scrollIntoView({block: 'center', behavior: 'instant'});
		range.selectNodeContents(e);
		const [line] = range.getClientRects();
		const there = line ? document.elementsFromPoint((line.left + line.right) / 2, (line.top + line.bottom) / 2) : [];
		const first = there.find(at => e.contains(at) || covers(at)); // none: outside, or cut off
		return e.contains(first ?? null);
	};
	const all = new CSSStyleSheet(); // what lets clicks through is met, too
	all.replaceSync('* { pointer-events: auto !important; }');
	document.adoptedStyleSheets.push(all);
	let letters = 0, visible = 0;
	for (const e of document.querySelectorAll('.lead, .chapter :is(p, li, td, blockquote)')) {
		letters += e.textContent.length;
		if (seen(e)) visible += e.textContent.length;
		else note(`not seen: ${e.textContent.trim()}`);
	}
	document.adoptedStyleSheets.pop();
	document.documentElement.scrollIntoView({behavior: 'instant'});
	return visible > 1000 && visible >= .95 * letters;
})()
