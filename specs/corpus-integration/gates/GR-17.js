// No gradients.
![...document.querySelectorAll('*')].some(e => ['', '::before', '::after'].some(part => {
	const s = getComputedStyle(e, part);
	return [s.backgroundImage, s.borderImageSource, s.maskImage, s.content].some(v => v.includes('gradient'));
}))
