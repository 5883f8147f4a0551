// Each drawing has a caption.
[...document.querySelectorAll('figure')].every(f => f.querySelector('figcaption'))
