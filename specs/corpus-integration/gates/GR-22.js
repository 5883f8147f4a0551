// Every link within the page has a target.
[...document.querySelectorAll('a[href^="#"]')].every(a => {
	const name = decodeURIComponent(a.getAttribute('href').slice(1));
	return name === 'top' || document.getElementById(name);
})
