// The content can be seen.
(() => {
	const seen = [...document.querySelectorAll('.chapter > p, .lead, .card p, td')].filter(e => e.checkVisibility({opacityProperty: true, visibilityProperty: true}) && e.getBoundingClientRect().width > 0);
	return seen.reduce((n, e) => n + e.innerText.length, 0) > 1000;
})()
