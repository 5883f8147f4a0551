// No text is cut off by its box.
![...document.querySelectorAll('p, h1, h2, h3, td, th, figcaption, li')].some(e => getComputedStyle(e).overflow !== 'visible' && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1))
