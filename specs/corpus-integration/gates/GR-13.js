// No line of running text is longer than about 90 characters.
[...document.querySelectorAll('.chapter > p, .lead, .note p')].every(e => e.clientWidth / (parseFloat(getComputedStyle(e).fontSize) * .45) <= 90)
