// No gradients.
![...document.querySelectorAll('body *')].some(e => getComputedStyle(e).backgroundImage.includes('gradient'))
