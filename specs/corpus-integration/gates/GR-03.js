// The palette is warm: red >= green >= blue in every colour that is used.
(() => {
	const props = ['color', 'backgroundColor', 'borderTopColor', 'borderBottomColor', 'borderLeftColor', 'fill', 'stroke'];
	for (const e of document.querySelectorAll('body, body *')) {
		const s = getComputedStyle(e);
		for (const p of props) {
			const m = /rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)/.exec(s[p] || '');
			if (m && m[4] !== '0' && !(+m[1] >= +m[2] && +m[2] >= +m[3])) return false;
		}
	}
	return true;
})()
