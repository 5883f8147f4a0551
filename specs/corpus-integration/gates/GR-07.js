// The page names its language and has a title.
document.documentElement.lang !== '' && document.title.trim().length > 5
