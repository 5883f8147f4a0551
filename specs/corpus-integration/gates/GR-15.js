// A heading stands nearer to what follows than to what precedes.
[...document.querySelectorAll('.chapter > * + h3:has(+ *)')].every(e => {
	const [before, here, after] = [e.previousElementSibling, e, e.nextElementSibling].map(x => x.getBoundingClientRect());
	return here.top - before.bottom > after.top - here.bottom;
})
