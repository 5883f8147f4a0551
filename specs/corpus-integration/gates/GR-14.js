// Lines of running text have room.
[...document.querySelectorAll('.chapter > p, .lead, .card p')].every(e => parseFloat(getComputedStyle(e).lineHeight) >= 1.35 * parseFloat(getComputedStyle(e).fontSize))
