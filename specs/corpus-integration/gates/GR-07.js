// The page names its language and has a title.
document.documentElement.lang.length > 0 && document.title.trim().length > 5
