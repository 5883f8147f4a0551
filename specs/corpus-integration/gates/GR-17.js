// No gradients.
![...document.querySelectorAll('html, body, body *')].some(e => [null, '::before', '::after'].some(part => {
	const s = getComputedStyle(e, part);
	return [s.backgroundImage, s.borderImageSource, s.maskImage, s.content].some(v => v.includes('gradient'));
}))
