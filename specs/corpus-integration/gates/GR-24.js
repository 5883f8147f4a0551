// Each chapter has a table.
[...document.querySelectorAll('.chapter')].every(c => c.querySelector('table.ledger tbody tr'))
