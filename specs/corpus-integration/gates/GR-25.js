// No chapter has more than one sentence to remember.
[...document.querySelectorAll('.chapter')].every(c => c.querySelectorAll('.pull').length <= 1)
