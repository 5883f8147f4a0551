// Text has a contrast of at least 4.5 to 1, with all that is transparent taken into account.
(() => {
	const dot = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
	const fill = (colour, how, alpha = 1) => {
		Object.assign(dot, {fillStyle: colour, globalCompositeOperation: how, globalAlpha: alpha});
		dot.fillRect(0, 0, 1, 1);
	};
	// How light a dot of the element is that has this colour on its ground.
	const light = (e, colour) => {
		fill(colour, 'copy');
		for (; e; e = e.parentElement) {
			fill(getComputedStyle(e).backgroundColor, 'destination-over');
			fill('white', 'destination-in', getComputedStyle(e).opacity);
		}
		fill('white', 'destination-over');
		dot.fillStyle = `color(from rgb(${dot.getImageData(0, 0, 1, 1).data}) xyz-d65 x y z)`;
		return parseFloat(dot.fillStyle.split(' ')[2]) + .05;
	};
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), known = new Set();
	while (texts.nextNode()) {
		const t = texts.currentNode, e = t.parentElement;
		if (known.has(e) || !/\p{L}/u.test(t.data) || !e.checkVisibility() || e.closest('svg')) continue;
		known.add(e);
		const ink = light(e, getComputedStyle(e).webkitTextFillColor), ground = light(e, 'transparent');
		if (Math.max(ink / ground, ground / ink) < 4.5) {
			note(`pale: ${t.data.trim()}`);
			return false;
		}
	}
	return known.size > 0;
})()
