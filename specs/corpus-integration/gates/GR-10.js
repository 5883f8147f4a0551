// Nothing is wider than the window.
document.documentElement.scrollWidth <= innerWidth
