// Running text has a contrast of at least 4.5 to 1.
(() => {
	const rgb = t => (/\d+, \d+, \d+/.exec(t) || ['0, 0, 0'])[0].split(', ').map(Number);
	const lum = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const under = e => { for (; e; e = e.parentElement) { const b = getComputedStyle(e).backgroundColor; if (!/, 0\)$/.test(b) && b !== 'transparent') return rgb(b); } return [255, 255, 255]; };
	return [...document.querySelectorAll('.chapter > p, .lead, .card p, .note p, .ledger td, .toc a, .masthead p, h1, h2, h3, figcaption, th')].every(e => {
		const a = lum(rgb(getComputedStyle(e).color)), b = lum(under(e));
		return (Math.max(a, b) + .05) / (Math.min(a, b) + .05) >= 4.5;
	});
})()
