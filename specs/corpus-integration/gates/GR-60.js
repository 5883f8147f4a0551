// Links in the table of chapters can be hit.
[...document.querySelectorAll('.toc a')].every(a => a.getBoundingClientRect().height >= 18)
