// A heading stands nearer to what follows than to what precedes.
[...document.querySelectorAll('.chapter > h3')].every(e => parseFloat(getComputedStyle(e).marginTop) > parseFloat(getComputedStyle(e).marginBottom))
