package browser

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/network"

	"dagrun.dev/nodes/internal/proc"
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
	Warnings    []string `json:"warnings,omitempty"` // everything above that a person should know, in words
}

const (
	mostNoted   = 20  // messages, hosts and the like that are kept
	mostMessage = 300 // characters of each
	mostEvents  = 500 // console messages after which the page is not listened to any more
)

// icon is what some browsers ask for by themselves, and others do not.
const icon = "/favicon.ico"

// A ledger collects what events say. Its lock is never held while a command runs.
type ledger struct {
	mu      sync.Mutex
	rec     Record
	origin  string
	without []string // addresses that are refused: they never came
	events  int
	asks    map[string]ask // by request id: what is under way
	ended   chan struct{}  // closed when one has ended
}

// An ask is a request under way.
type ask struct {
	address, loader string
	aside           bool // the page is there without it
	blocks          bool // it may not be there without it
}

func newLedger(origin string, without ...string) *ledger {
	return &ledger{origin: origin, without: without, asks: map[string]ask{}, ended: make(chan struct{})}
}

func (l *ledger) with(f func(r *Record)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.rec)
}

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
	text = strings.Join(strings.Fields(proc.Printable(text)), " ")
	if r := []rune(text); len(r) > mostMessage {
		text = string(r[:mostMessage]) + "..."
	}
	return text
}

// said notes a console message. It reports whether the page says too much to be listened to.
func (l *ledger) said(isError bool, text string) (flood bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.events == mostEvents {
		return false // until it is not listened to: how many come by then is chance
	}
	l.events++
	if isError {
		l.rec.ErrorCount++
		note(&l.rec.Errors, l.local(text))
	}
	return l.events == mostEvents
}

// asked notes a request under way.
func (l *ledger) asked(e *network.EventRequestWillBeSent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.asks) >= 10_000 || l.local(e.Request.URL) == icon {
		return
	}
	a := ask{address: e.Request.URL, loader: string(e.LoaderID)}
	switch e.Type {
	case network.ResourceTypeMedia, network.ResourceTypeEventSource, network.ResourceTypeWebSocket, network.ResourceTypePing, network.ResourceTypePrefetch, network.ResourceTypeManifest:
		a.aside = true
	case network.ResourceTypeScript:
		a.aside = a.loader == "" // of a worker, which alone is told when it is there
		a.blocks = true
	case network.ResourceTypeStylesheet:
		a.blocks = true
	}
	l.asks[string(e.RequestID)] = a
}

// got notes the answer to a request.
func (l *ledger) got(address string, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if status >= 400 && l.local(address) != icon {
		rank(&l.rec.Missing, fmt.Sprintf("%s: status %d", l.local(address), status))
	}
}

// failed notes a request that got no answer. Cancelled ones are nobody's fault, and what is left out is told already.
func (l *ledger) failed(id, why string, cancelled bool) {
	l.mu.Lock()
	a, known := l.asks[id]
	l.end(id)
	l.mu.Unlock()
	switch {
	case !known:
	case l.outside(a.address):
		l.refused(a.address)
	case !cancelled && !slices.Contains(l.without, a.address):
		l.with(func(r *Record) { rank(&r.Missing, l.local(a.address)+": "+why) })
	}
}

// finished notes that all of an answer is there.
func (l *ledger) finished(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(id)
}

// end takes a request out. The lock is held.
func (l *ledger) end(id string) {
	delete(l.asks, id)
	close(l.ended)
	l.ended = make(chan struct{})
}

// forget takes the requests of earlier documents out: nobody may tell how they end.
func (l *ledger) forget(loader string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, a := range l.asks {
		if a.loader != loader {
			l.end(id)
		}
	}
}

// open returns the requests that are under way.
func (l *ledger) open() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := map[string]bool{}
	for id := range l.asks {
		ids[id] = true
	}
	return ids
}

// wait returns true when no request is under way but those that were before, and those that the page can do without.
func (l *ledger) wait(ctx context.Context, before map[string]bool, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		l.mu.Lock()
		n, ended := 0, l.ended
		for id, a := range l.asks {
			if !a.aside && !before[id] {
				n++
			}
		}
		l.mu.Unlock()
		if n == 0 {
			return true
		}
		select {
		case <-ended:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// refused notes an address outside the page's origin.
func (l *ledger) refused(address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	l.with(func(r *Record) { rank(&r.Refused, u.Scheme+"://"+u.Host) })
}

// pending returns own resources that never answered, in order.
func (l *ledger) pending() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, a := range l.asks {
		if !l.outside(a.address) && !a.aside {
			rank(&list, l.local(a.address))
		}
	}
	return list
}

// blocking returns the addresses of scripts and style sheets that never answered: a page may not be read on or drawn
// before they do.
func (l *ledger) blocking() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []string
	for _, a := range l.asks {
		if a.blocks && !a.aside && !slices.Contains(list, a.address) {
			list = append(list, a.address)
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

// local takes the origin, which holds a port, out of a text, and the random names of what a script has made.
func (l *ledger) local(text string) string {
	return blobs.ReplaceAllString(strings.ReplaceAll(text, l.origin, ""), "blob:")
}

var blobs = regexp.MustCompile(`blob:(?:null)?/[0-9a-f-]{36}`)

// copy returns the record as it is now.
func (l *ledger) copy() Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.rec
	for _, list := range []*[]string{&r.Refused, &r.Missing, &r.Errors, &r.FailedFonts, &r.Cut, &r.Warnings} {
		*list = slices.Clone(*list)
	}
	return r
}
