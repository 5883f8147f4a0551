// Each drawing says in words what it shows.
[...document.querySelectorAll('figure svg')].every(e => e.ariaLabel?.length > 10)
