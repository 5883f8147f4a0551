// There is exactly one heading of the first level, and it says something.
document.querySelectorAll('h1').length === 1 && document.querySelector('h1').innerText.trim().length > 2
