// Each drawing says in words what it shows.
[...document.querySelectorAll('figure svg')].every(e => (e.getAttribute('aria-label') || '').length > 10)
