package browser

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/network"
)

// A tracker follows what the events of a tab say: its documents, requests and messages. Any goroutine; its lock is
// never held while a command runs.
type tracker struct {
	origin      string   // of the page's own server, scheme://host:port
	without     []string // addresses that are refused: they never came
	navigations int      // documents that are let through, the page itself included

	mu       sync.Mutex
	changed  chan struct{} // closed at each change
	rec      Record
	docs     documents
	reached  map[string]bool // "loader event": how far each document has come
	asks     map[string]ask  // requests under way, by id
	messages int             // on the console
}

// documents are those of the main frame.
type documents struct {
	frame   string // the main one
	current string // loader of the document that is shown
	allowed int    // loads that were let through
	refused int    // loads that were not
	shown   int    // documents that came
	frozen  bool   // no load is let through any more
	left    bool   // another document came all the same
}

// An ask is a request under way.
type ask struct {
	address, loader string
	aside           bool // the page is there without it
	blocks          bool // it may not be there without it
}

func newTracker(origin string, navigations int, without ...string) *tracker {
	return &tracker{
		origin: origin, without: without, navigations: navigations,
		changed: make(chan struct{}), reached: map[string]bool{}, asks: map[string]ask{},
	}
}

// update changes what is known, and wakes those who wait for it.
func (t *tracker) update(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f()
	close(t.changed)
	t.changed = make(chan struct{})
}

// with changes the record.
func (t *tracker) with(f func(r *Record)) { t.update(func() { f(&t.rec) }) }

// record returns the record as it is now.
func (t *tracker) record() Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.rec.clone()
}

// documents returns what is known of the documents now.
func (t *tracker) documents() documents {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.docs
}

// until waits for done, and reports whether it came to be true. The lock is held while it is asked.
func (t *tracker) until(ctx context.Context, most time.Duration, done func() bool) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		t.mu.Lock()
		yes, changed := done(), t.changed
		t.mu.Unlock()
		if yes {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// moreThan waits for more documents than so many.
func (t *tracker) moreThan(ctx context.Context, shown int, most time.Duration) bool {
	return t.until(ctx, most, func() bool { return t.docs.shown > shown })
}

// has waits until the document that is shown, whichever that is by then, has reached an event of its life.
func (t *tracker) has(ctx context.Context, event string, most time.Duration) bool {
	return t.until(ctx, most, func() bool { return t.reached[t.docs.current+" "+event] })
}

// quiet waits until no request is under way but those that were before, and those that the page can do without.
func (t *tracker) quiet(ctx context.Context, before map[string]ask, most time.Duration) bool {
	return t.until(ctx, most, func() bool {
		for id, a := range t.asks {
			if _, old := before[id]; !old && !a.aside {
				return false
			}
		}
		return true
	})
}

// allow reports whether the main frame may load another document.
func (t *tracker) allow() (ok bool) {
	t.update(func() {
		if ok = !t.docs.frozen && t.docs.allowed < t.navigations; ok {
			t.docs.allowed++
		} else {
			t.docs.refused++
		}
	})
	return ok
}

// freeze refuses all loads from now on.
func (t *tracker) freeze() {
	t.update(func() {
		t.docs.frozen = true
		t.rec.Loads = t.docs.shown
	})
}

// committed notes that a document is shown. How requests of earlier ones end may never be reported.
func (t *tracker) committed(frame, loader string) {
	t.update(func() {
		t.docs.frame, t.docs.current = frame, loader
		t.docs.shown++
		t.docs.left = t.docs.left || t.docs.frozen
		maps.DeleteFunc(t.reached, func(key string, _ bool) bool { return !strings.HasPrefix(key, loader+" ") })
		maps.DeleteFunc(t.asks, func(_ string, a ask) bool { return a.loader != loader })
	})
}

// lived notes that a document has reached an event of its life.
func (t *tracker) lived(frame, loader, event string) {
	t.update(func() {
		if frame == t.docs.frame {
			t.reached[loader+" "+event] = true
		}
	})
}

const (
	mostAsks     = 10_000 // requests under way that are followed
	mostMessages = 500    // on the console, after which it is turned off
)

// said notes a console message. It reports whether there are so many that the console is to be
// turned off.
func (t *tracker) said(isError bool, text string) (flood bool) {
	t.update(func() {
		if t.messages == mostMessages {
			return // until it is off: how many come by then is chance
		}
		t.messages++
		if isError {
			t.rec.ErrorCount++
			note(&t.rec.Errors, t.local(text))
		}
		flood = t.messages == mostMessages
	})
	return flood
}

// icon is what some browsers ask for by themselves, and others do not.
const icon = "/favicon.ico"

// asked notes a request under way.
func (t *tracker) asked(e *network.EventRequestWillBeSent) {
	a := ask{address: e.Request.URL, loader: string(e.LoaderID)}
	switch e.Type {
	case network.ResourceTypeMedia, network.ResourceTypeEventSource, network.ResourceTypeWebSocket,
		network.ResourceTypePing, network.ResourceTypePrefetch, network.ResourceTypeManifest:
		a.aside = true
	case network.ResourceTypeScript:
		a.aside = a.loader == "" // of a worker: its end is reported to the worker alone
		a.blocks = true
	case network.ResourceTypeStylesheet:
		a.blocks = true
	}
	if t.local(a.address) == icon {
		return
	}
	t.update(func() {
		if len(t.asks) < mostAsks {
			t.asks[string(e.RequestID)] = a
		}
	})
}

// got notes the answer to a request.
func (t *tracker) got(address string, status int) {
	if where := t.local(address); status >= 400 && where != icon {
		t.with(func(r *Record) { rank(&r.Missing, fmt.Sprintf("%s: status %d", where, status)) })
	}
}

// finished notes that all of an answer is there.
func (t *tracker) finished(id string) { t.update(func() { delete(t.asks, id) }) }

// failed notes a request that got no answer. Cancelled ones are no fault, and what is left out is recorded already.
func (t *tracker) failed(id, why string, cancelled bool) {
	t.update(func() {
		a, known := t.asks[id]
		delete(t.asks, id)
		switch {
		case !known:
		case t.outside(a.address):
			t.refused(a.address)
		case !cancelled && !slices.Contains(t.without, a.address):
			rank(&t.rec.Missing, t.local(a.address)+": "+why)
		}
	})
}

// refused notes an address outside the page's origin. The lock is held.
func (t *tracker) refused(address string) {
	if u, err := url.Parse(address); err == nil {
		rank(&t.rec.Refused, u.Scheme+"://"+u.Host)
	}
}

// open returns the requests that are under way.
func (t *tracker) open() map[string]ask {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.asks)
}

// waitingFor lists own resources that never answered, for the end of a sentence.
func (t *tracker) waitingFor() string {
	var list []string
	for _, a := range t.open() {
		if !t.outside(a.address) && !a.aside {
			rank(&list, t.local(a.address))
		}
	}
	if list == nil {
		return ""
	}
	return ", waiting for " + strings.Join(list, ", ")
}

// blocking returns the addresses of scripts and style sheets that never answered: a page may not be read on or drawn
// before they do.
func (t *tracker) blocking() []string {
	var list []string
	for _, a := range t.open() {
		if a.blocks && !a.aside {
			list = append(list, a.address)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// outside reports whether an address is one of the network beyond the page's origin.
func (t *tracker) outside(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return true
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss", "ftp":
		scheme := strings.NewReplacer("ws", "http").Replace(u.Scheme)
		return scheme+"://"+u.Host != t.origin
	}
	return false
}

// local takes the origin, which holds a port, out of a text, and the random names of what a script has made.
func (t *tracker) local(text string) string {
	return blobs.ReplaceAllString(strings.ReplaceAll(text, t.origin, ""), "blob:")
}

var blobs = regexp.MustCompile(`blob:(?:null)?/[0-9a-f-]{36}`)
