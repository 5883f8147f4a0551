// Running text has a contrast of at least 4.5 to 1, with all that is transparent taken into account.
(() => {
	const dot = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
	const rgba = colour => {
		dot.clearRect(0, 0, 1, 1);
		dot.fillStyle = colour;
		dot.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = dot.getImageData(0, 0, 1, 1).data;
		return [r, g, b, a / 255];
	};
	const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3]));
	const ground = e => {
		const layers = [];
		for (; e && !(layers.length && layers[0][3] === 1); e = e.parentElement) layers.unshift(rgba(getComputedStyle(e).backgroundColor));
		return layers.reduce((under, top) => over(top, under), [255, 255, 255]);
	};
	const ink = e => {
		const c = rgba(getComputedStyle(e).webkitTextFillColor);
		for (let up = e; up; up = up.parentElement) c[3] *= getComputedStyle(up).opacity;
		return c;
	};
	const lum = c => {
		const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const all = [...document.querySelectorAll('.chapter > p, .lead, .card p, .note p, .ledger td, .toc a, .masthead p, h1, h2, h3, figcaption, th')];
	return all.length > 0 && all.every(e => {
		const under = ground(e), a = lum(over(ink(e), under)), b = lum(under);
		const enough = (Math.max(a, b) + .05) / (Math.min(a, b) + .05) >= 4.5;
		if (!enough) note('pale: ' + e.textContent.trim().slice(0, 60));
		return enough;
	});
})()
