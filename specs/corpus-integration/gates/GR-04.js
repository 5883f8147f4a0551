// There is exactly one heading of the first level, it can be seen and says something.
(() => {
	const all = document.querySelectorAll('h1');
	return all.length === 1 && all[0].checkVisibility({opacityProperty: true, visibilityProperty: true}) && all[0].innerText.trim().length > 2;
})()
