package browser

import (
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/internal/printable"
)

// A Record is what happened while a page was shown at one viewport. It holds no clock, port or
// other thing that differs between two runs of a page that does not.
type Record struct {
	URL      string  `json:"url"`              // final, without the origin of the page's own server
	Status   int     `json:"status,omitempty"` // of the page's HTTP response
	Type     string  `json:"type,omitempty"`   // and its media type
	Title    string  `json:"title,omitempty"`
	Height   int     `json:"height"`             // of the whole page, in CSS pixels
	Wide     int     `json:"overflow,omitempty"` // so many pixels are to the right of the view
	DPR      float64 `json:"dpr"`
	Scroller string  `json:"scroller,omitempty"` // element that scrolls instead of the page

	Idle        bool     `json:"idle"`               // the network went quiet
	Restless    bool     `json:"restless,omitempty"` // scripts go on changing the page
	Loads       int      `json:"loads"`              // documents the page has shown, 1 = itself
	Refused     []string `json:"refused,omitempty"`  // origins outside that were not reached
	Missing     []string `json:"missing,omitempty"`  // own resources that failed: path and why
	Errors      []string `json:"errors,omitempty"`   // console errors and exceptions, the first ones
	ErrorCount  int      `json:"console_errors"`     // of all
	Dialogs     int      `json:"dialogs,omitempty"`  // closed
	FailedFonts []string `json:"failed_fonts,omitempty"`
	Boxes       string   `json:"boxes,omitempty"` // characters that no font has, the first ones
	BadImages   int      `json:"broken_images,omitempty"`
	TextWidth   float64  `json:"-"`                  // of a sample; 0 = there are no fonts
	Cut         []string `json:"cut,omitempty"`      // waits that were given up, parts that were left out
	Warnings    []string `json:"warnings,omitempty"` // everything above that a user should know, in words
}

// clone copies a record with its lists.
func (r *Record) clone() Record {
	c := *r
	for _, list := range []*[]string{&c.Refused, &c.Missing, &c.Errors, &c.FailedFonts, &c.Cut, &c.Warnings} {
		*list = slices.Clone(*list)
	}
	return c
}

// warn puts into words what a user should know.
func (r *Record) warn() {
	say := func(is bool, format string, args ...any) {
		if is {
			note(&r.Warnings, fmt.Sprintf(format, args...))
		}
	}
	list := func(s []string) string { return strings.Join(s, ", ") }
	for _, c := range r.Cut {
		say(true, "%s", c)
	}
	say(len(r.Refused) > 0, "refused, because only the page's own files are allowed: %s", list(r.Refused))
	say(len(r.Missing) > 0, "not loaded: %s", list(r.Missing))
	say(r.ErrorCount > 0, "%d errors on the console, first: %s", r.ErrorCount, list(r.Errors[:min(1, len(r.Errors))]))
	say(r.Dialogs > 0, "%d dialogs were closed", r.Dialogs)
	say(r.Loads > 1, "the page loaded itself again, or another one: %d documents", r.Loads)
	say(len(r.FailedFonts) > 0, "fonts that did not load: %s", list(r.FailedFonts))
	say(r.Boxes != "", "no font here has %s: boxes stand in their place", r.Boxes)
	say(r.TextWidth <= 0, "text has no width: there are no fonts on this machine")
	say(r.BadImages > 0, "%d images are broken", r.BadImages)
	say(r.Wide > 0, "the content is %d px wider than the view", r.Wide)
	say(r.Scroller != "", "not the page scrolls but <%s>", r.Scroller)
	say(r.Restless, "the page goes on changing itself: pictures of it differ")
	say(r.Type != "" && !strings.Contains(r.Type, "html"), "the page is %s", r.Type)
}

const (
	mostNoted   = 20  // messages, hosts and the like that are kept
	mostMessage = 300 // characters of each
)

// note keeps a text among the first ones.
func note(list *[]string, text string) {
	text = tidy(text)
	if len(*list) < mostNoted && !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// rank keeps a text in its order, which is not that of the events: requests end as they like.
func rank(list *[]string, text string) {
	text = tidy(text)
	if i, there := slices.BinarySearch(*list, text); !there {
		*list = slices.Insert(*list, i, text)
		*list = (*list)[:min(len(*list), mostNoted)]
	}
}

func tidy(text string) string {
	text = printable.Line(text)
	if r := []rune(text); len(r) > mostMessage {
		text = string(r[:mostMessage]) + "..."
	}
	return text
}
