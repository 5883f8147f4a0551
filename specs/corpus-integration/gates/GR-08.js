// Each chapter opens with its head and one lead.
(() => {
	const all = [...document.querySelectorAll('.chapter')];
	return all.length > 0 && all.every(c => c.querySelector(':scope > .chapter__head h2') && c.querySelectorAll(':scope > .lead').length === 1);
})()
