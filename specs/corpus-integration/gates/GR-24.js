// Each chapter has a table.
(() => {
	const all = [...document.querySelectorAll('.chapter')];
	return all.length > 0 && all.every(c => c.querySelector('table.ledger tbody tr'));
})()
