// The border box of .page is 940 to 960 px wide where there is room, else it fits the window.
(() => {
	const w = document.querySelector('.page').getBoundingClientRect().width;
	return innerWidth >= 960 ? w >= 940 && w <= 960 : w <= innerWidth;
})()
