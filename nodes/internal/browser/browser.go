// Package browser shows a page in a headless browser and makes it stand still: started, bounded and ended
// so that no page can hang, fill or outlive the program. It takes no decisions about what a page shows.
package browser
