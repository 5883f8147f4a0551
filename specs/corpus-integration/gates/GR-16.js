// All chapters have the same space around them.
new Set([...document.querySelectorAll('.chapter')].map(e => getComputedStyle(e).paddingTop + getComputedStyle(e).paddingBottom)).size === 1
