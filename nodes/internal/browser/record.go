package browser

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"dagrun.dev/nodes/internal/proc"
)

// A Record is what happened while a page was shown at one viewport. It holds no clock, port or
// other thing that differs between two runs of a page that does not.
type Record struct {
	URL      string  `json:"url"`              // final, without the origin of the page's own server
	Status   int     `json:"status,omitempty"` // of the page's HTTP response
	Title    string  `json:"title,omitempty"`
	Height   int     `json:"height"`             // of the whole page, in CSS pixels
	Wide     int     `json:"overflow,omitempty"` // so many pixels are to the right of the view
	DPR      float64 `json:"dpr"`
	Scroller string  `json:"scroller,omitempty"` // element that scrolls instead of the page

	Idle        bool     `json:"idle"`              // the network went quiet
	Loads       int      `json:"loads"`             // documents the page has shown, 1 = itself
	Refused     []string `json:"refused,omitempty"` // origins outside that were not reached
	Missing     []string `json:"missing,omitempty"` // own resources that failed: path and why
	Errors      []string `json:"errors,omitempty"`  // console errors and exceptions, the first ones
	ErrorCount  int      `json:"console_errors"`    // of all
	Dialogs     int      `json:"dialogs,omitempty"` // closed
	FailedFonts []string `json:"failed_fonts,omitempty"`
	BadImages   int      `json:"broken_images,omitempty"`
	TextWidth   float64  `json:"-"`                  // of a sample; 0 = there are no fonts
	Cut         []string `json:"cut,omitempty"`      // waits that were given up, parts that were left out
	Warnings    []string `json:"warnings,omitempty"` // everything above that a person should know, in words
}

const (
	mostNoted   = 20  // messages, hosts and the like that are kept
	mostMessage = 300 // characters of each
	mostEvents  = 500 // console messages after which the page is not listened to any more
)

// A ledger collects what events say. Its lock is never held while a command runs.
type ledger struct {
	mu     sync.Mutex
	rec    Record
	origin string
	events int
	urls   map[string]string // request id to address, of requests under way
}

func newLedger(origin string) *ledger {
	return &ledger{origin: origin, urls: map[string]string{}}
}

func (l *ledger) with(f func(r *Record)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.rec)
}

func note(list *[]string, text string) {
	text = strings.Join(strings.Fields(proc.Printable(text)), " ")
	if r := []rune(text); len(r) > mostMessage {
		text = string(r[:mostMessage]) + "..."
	}
	if len(*list) < mostNoted && !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// said notes a console error. It reports whether the page says too much to be listened to.
func (l *ledger) said(isError bool, text string) (flood bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events++
	if isError {
		l.rec.ErrorCount++
		note(&l.rec.Errors, l.local(text))
	}
	return l.events == mostEvents
}

// asked notes a request under way.
func (l *ledger) asked(id, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.urls) < 10_000 {
		l.urls[id] = address
	}
}

// got notes the answer to a request.
func (l *ledger) got(id, address string, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.urls, id)
	if status >= 400 {
		note(&l.rec.Missing, fmt.Sprintf("%s: status %d", l.local(address), status))
	}
}

// failed notes a request that got no answer. Cancelled ones are nobody's fault.
func (l *ledger) failed(id, why string, cancelled bool) {
	l.mu.Lock()
	address, known := l.urls[id]
	delete(l.urls, id)
	l.mu.Unlock()
	switch {
	case !known:
	case l.outside(address):
		l.refused(address)
	case !cancelled:
		l.with(func(r *Record) { note(&r.Missing, l.local(address)+": "+why) })
	}
}

// refused notes an address outside the page's origin.
func (l *ledger) refused(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	l.with(func(r *Record) { note(&r.Refused, u.Scheme+"://"+u.Host) })
}

// pending returns own resources that never answered, sorted.
func (l *ledger) pending() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, address := range l.urls {
		if !l.outside(address) {
			note(&list, l.local(address))
		}
	}
	slices.Sort(list)
	return list
}

// outside says whether an address is one of the network beyond the page's origin.
func (l *ledger) outside(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return true
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss", "ftp":
		scheme := strings.NewReplacer("ws", "http").Replace(u.Scheme)
		return scheme+"://"+u.Host != l.origin
	}
	return false
}

// local takes the origin, which holds a port, out of a text.
func (l *ledger) local(text string) string { return strings.ReplaceAll(text, l.origin, "") }
