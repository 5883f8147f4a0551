// The palette is warm: red >= green >= blue in every colour that is used, however it is written.
(() => {
	const dot = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true}), known = new Map();
	const warm = colour => {
		if (!known.has(colour)) {
			dot.clearRect(0, 0, 1, 1);
			dot.fillStyle = 'transparent';
			dot.fillStyle = colour; // no colour, such as none, changes nothing
			dot.fillRect(0, 0, 1, 1);
			const [r, g, b, a] = dot.getImageData(0, 0, 1, 1).data, slack = a < 255 ? 255 / a : 0; // thin colours come back rounded
			known.set(colour, a === 0 || r + slack >= g && g + slack >= b);
		}
		return known.get(colour);
	};
	const within = text => text.match(/\b(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch|color)\([^()]*\)/g) || [];
	const used = s => [
		s.color, s.backgroundColor, ...within(s.backgroundImage), ...within(s.boxShadow), ...within(s.textShadow), ...within(s.filter),
		...['Top', 'Right', 'Bottom', 'Left'].filter(side => parseFloat(s[`border${side}Width`]) > 0).map(side => s[`border${side}Color`]),
		...(s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0 ? [s.outlineColor] : []), ...(s.textDecorationLine === 'none' ? [] : [s.textDecorationColor]),
		s.webkitTextFillColor, s.fill, s.stroke, s.stopColor,
	];
	for (const e of document.querySelectorAll('html, body, body *')) {
		for (const part of [null, '::before', '::after', '::marker']) {
			const s = getComputedStyle(e, part);
			if ((part === '::before' || part === '::after') && s.content === 'none') continue;
			const cold = used(s).find(c => !warm(c));
			if (cold) {
				note(`${e.tagName.toLowerCase()}${part || ''}: ${cold}`);
				return false;
			}
		}
	}
	return true;
})()
