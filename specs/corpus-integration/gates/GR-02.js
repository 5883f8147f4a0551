// Fonts are loaded, none failed, and letters have a width.
(() => {
	const c = document.createElement('canvas').getContext('2d');
	c.font = getComputedStyle(document.body).font;
	return document.fonts.status === 'loaded' && ![...document.fonts].some(f => f.status === 'error')
		&& c.measureText('dagrun').width > 0;
})()
