// Running text is at least 16 px.
[...document.querySelectorAll('.chapter > p, .lead, .card p, .note p, .ledger td, .toc a, .masthead p')].every(e => parseFloat(getComputedStyle(e).fontSize) >= 15.6)
