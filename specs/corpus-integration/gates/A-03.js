// The content can be seen: nothing hides it, cuts it off or covers it.
(() => {
	const texts = [...document.querySelectorAll('.chapter > p, .lead, .card p, td')].filter(e => e.textContent.trim());
	const clear = c => c === 'transparent' || /, 0\)$|\/ 0\)$/.test(c);
	const paints = (e, pseudo) => {
		const s = getComputedStyle(e, pseudo);
		return (!pseudo || s.content !== 'none') && (!clear(s.backgroundColor) || s.backgroundImage !== 'none');
	};
	const covers = e => /^(IMG|VIDEO|CANVAS|IFRAME|SVG)$/i.test(e.tagName) || paints(e) || paints(e, '::before') || paints(e, '::after');
	const opacity = e => { let o = 1; for (; e; e = e.parentElement) o *= getComputedStyle(e).opacity; return o; };
	const range = document.createRange();
	const seen = e => {
		if (!e.checkVisibility({visibilityProperty: true}) || opacity(e) < .3 || clear(getComputedStyle(e).webkitTextFillColor)) return false;
		e.scrollIntoView({block: 'center', behavior: 'instant'});
		range.selectNodeContents(e);
		const line = [...range.getClientRects()].find(r => r.width > 0 && r.height > 0);
		if (!line) return false;
		for (const at of document.elementsFromPoint(line.left + Math.min(line.width / 2, 40), line.top + line.height / 2)) {
			if (e.contains(at)) return true;
			if (covers(at)) return false;
		}
		return false; // outside, or cut off
	};
	const all = new CSSStyleSheet(); // what lets clicks through is met, too
	all.replaceSync('* { pointer-events: auto !important; }');
	document.adoptedStyleSheets = [...document.adoptedStyleSheets, all];
	let letters = 0, visible = 0;
	for (const e of texts) {
		letters += e.textContent.length;
		if (seen(e)) visible += e.textContent.length;
		else note('not seen: ' + e.textContent.trim().slice(0, 60));
	}
	document.adoptedStyleSheets = document.adoptedStyleSheets.filter(s => s !== all);
	scrollTo({top: 0, behavior: 'instant'});
	return visible > 1000 && visible >= .95 * letters;
})()
