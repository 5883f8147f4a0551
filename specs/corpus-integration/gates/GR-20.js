// No empty paragraphs, headings or cells.
[...document.querySelectorAll('p, h1, h2, h3, td, th, li, figcaption')].every(e => e.textContent.trim() !== '' || e.querySelector('svg, img'))
