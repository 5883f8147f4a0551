// Each chapter has a drawing.
[...document.querySelectorAll('.chapter')].every(c => c.querySelectorAll('figure svg').length >= 1)
