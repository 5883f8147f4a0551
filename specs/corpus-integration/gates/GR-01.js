// The border box of .page, as it is shown, is 940 to 960 px wide where there is room, else it fills the window and fits it.
(() => {
	const w = document.querySelector('.page').getBoundingClientRect().width;
	return innerWidth >= 960 ? w >= 940 && w <= 960 : w > .75 * innerWidth && w <= innerWidth;
})()
