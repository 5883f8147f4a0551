// The palette is warm: red >= green >= blue in every colour that is used, however it is written.
(() => {
	const dot = document.createElement('canvas').getContext('2d', {willReadFrequently: true}), known = {};
	const warm = colour => {
		for (dot.fillStyle of ['white', colour]) dot.fillRect(0, 0, 1, 1); // no colour, such as none, changes nothing
		const [r, g, b] = dot.getImageData(0, 0, 1, 1).data;
		return r >= g && g >= b;
	};
	const within = text => text.match(/\b(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch|color)\([^()]*\)/g) || [];
	const lines = ['borderTop', 'borderRight', 'borderBottom', 'borderLeft', 'outline', 'columnRule'];
	const used = s => [
		s.color, s.backgroundColor, ...within(s.backgroundImage), ...within(s.boxShadow), ...within(s.textShadow), ...within(s.filter),
		...lines.filter(l => parseFloat(s[`${l}Width`]) && s[`${l}Style`] !== 'none').map(l => s[`${l}Color`]),
		s.textDecorationLine === 'none' ? 'none' : s.textDecorationColor, s.webkitTextFillColor, s.fill, s.stroke, s.stopColor,
	];
	for (const e of document.querySelectorAll('*')) {
		for (const part of ['', '::before', '::after', '::marker', '::first-letter', '::first-line']) {
			const s = getComputedStyle(e, part);
			if (part && s.content === 'none') continue;
			const cold = used(s).find(c => !(known[c] ??= warm(c)));
			if (cold) {
				note(`${e.tagName.toLowerCase()}${part}: ${cold}`);
				return false;
			}
		}
	}
	return true;
})()
