package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"dagrun.dev/nodes"
)

// on receives the events of a tab, in order, from one goroutine. It must not wait.
func (p *Page) on(event any) {
	switch e := event.(type) {
	case *inspector.EventTargetCrashed:
		p.end(fmt.Errorf("%v: %w (out of memory, or a fault of the browser)", p.Viewport, errCrashed))
	case *page.EventJavascriptDialogOpening:
		p.dialog()
	case *fetch.EventRequestPaused:
		go p.decide(e)
	case *page.EventFrameNavigated:
		if e.Frame.ParentID == "" {
			p.loads.committed(string(e.Frame.ID), string(e.Frame.LoaderID))
			p.notes.forget(string(e.Frame.LoaderID))
		}
	case *page.EventLifecycleEvent:
		p.loads.lived(string(e.FrameID), string(e.LoaderID), e.Name)
	case *runtime.EventExceptionThrown:
		p.console(true, exception(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		p.console(e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert, joined(e.Args))
	case *log.EventEntryAdded:
		// What the network says is told better by its own events.
		p.console(e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.notes.asked(e)
	case *network.EventResponseReceived:
		p.response(e)
	case *network.EventLoadingFinished:
		p.notes.finished(string(e.RequestID))
	case *network.EventLoadingFailed:
		p.notes.failed(string(e.RequestID), e.ErrorText, e.Canceled)
	case *network.EventWebSocketCreated:
		if p.notes.outside(e.URL) {
			p.notes.refused(e.URL)
		}
	}
}

func (p *Page) response(e *network.EventResponseReceived) {
	p.notes.got(e.Response.URL, int(e.Response.Status))
	if e.Type == network.ResourceTypeDocument && p.loads.isMain(string(e.FrameID)) {
		p.notes.with(func(r *Record) {
			r.Status, r.Type = int(e.Response.Status), e.Response.MimeType
		})
	}
}

// dialog closes a dialog, so that the page goes on. A page that opens one after the other never ends.
func (p *Page) dialog() {
	var n int
	p.notes.with(func(r *Record) { r.Dialogs++; n = r.Dialogs })
	if n > p.waits.Dialogs {
		p.end(nodes.Fail("page_hang", fmt.Sprintf("%v: the page opened more than %d dialogs (waits.dialogs)", p.Viewport, p.waits.Dialogs)))
		return
	}
	go p.send(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		return err
	})
}

// send carries out a command that an event asks for. When it fails, the step under way meets the same
// trouble and tells it.
func (p *Page) send(f func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.waits.Command.D())
	defer cancel()
	_ = f(ctx)
}

// decide lets a request go on or does not: the page may not leave its origin, nor load itself again and again, nor go
// anywhere once it stands still; and it does without what never came. A load that is refused leaves the page as it is.
func (p *Page) decide(e *fetch.EventRequestPaused) {
	outside := p.notes.outside(e.Request.URL)
	if outside {
		p.notes.refused(e.Request.URL)
	}
	leads := e.ResourceType == network.ResourceTypeDocument && p.loads.isMain(string(e.FrameID)) && e.RedirectedRequestID == ""
	allowed := !outside && !slices.Contains(p.notes.without, e.Request.URL) && (!leads || p.loads.allow())
	p.send(func(ctx context.Context) error {
		if allowed {
			_, err := chromedp.Call(ctx, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID})
			return err
		}
		_, err := chromedp.Call(ctx, fetch.FailRequest, fetch.FailRequestParams{RequestID: e.RequestID, ErrorReason: network.ErrorReasonAborted})
		return err
	})
}

// console notes a message. A page that floods the console is not listened to any more.
func (p *Page) console(isError bool, text string) {
	if p.notes.said(isError, text) {
		go p.send(func(ctx context.Context) error {
			if _, err := chromedp.Call(ctx, log.Disable, cdp.Empty{}); err != nil {
				return err
			}
			_, err := chromedp.Call(ctx, runtime.Disable, cdp.Empty{})
			return err
		})
	}
}

func exception(d *runtime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		first, _, _ := strings.Cut(d.Exception.Description, "\n")
		return first
	}
	if d.Exception != nil && len(d.Exception.Value) > 0 {
		return d.Text + " " + string(d.Exception.Value)
	}
	return d.Text
}

func joined(args []*runtime.RemoteObject) string {
	var words []string
	for _, a := range args {
		var s string
		switch {
		case json.Unmarshal(a.Value, &s) == nil:
			words = append(words, s)
		case a.Description != "":
			words = append(words, a.Description)
		default:
			words = append(words, string(a.Value))
		}
	}
	return strings.Join(words, " ")
}

// loads follows the documents of a tab's main frame. Any goroutine.
type loads struct {
	mu      sync.Mutex
	frame   string
	most    int
	allowed int             // loads that were let through
	refused int             // loads that were not
	shown   int             // documents that came
	frozen  bool            // no load is let through any more
	left    bool            // another document came all the same
	current string          // loader of the document that is shown
	reached map[string]bool // "loader event"
	changed chan struct{}   // closed at each change
}

func (l *loads) init(most int) {
	l.most, l.reached, l.changed = most, map[string]bool{}, make(chan struct{})
}

func (l *loads) main(frame string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frame = frame
}

func (l *loads) isMain(frame string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return frame == l.frame
}

// allow counts a load and says whether it may go on.
func (l *loads) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.frozen || l.allowed >= l.most {
		l.refused++
		return false
	}
	l.allowed++
	return true
}

// refusals returns how many loads were refused.
func (l *loads) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// freeze refuses all loads from now on, and returns how many documents there were, and whether another one may be on
// its way.
func (l *loads) freeze() (shown int, underWay bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = true
	return l.shown, l.allowed > l.shown
}

// documents returns how many documents there were.
func (l *loads) documents() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shown
}

// moreThan says whether there are more documents than that, or will be before long.
func (l *loads) moreThan(ctx context.Context, shown int, most time.Duration) bool {
	return l.until(ctx, most, func() bool { return l.shown > shown })
}

// has says whether the document that is shown has reached an event.
func (l *loads) has(event string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reached[l.current+" "+event]
}

func (l *loads) committed(frame, loader string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frame, l.current = frame, loader
	l.shown++
	l.left = l.left || l.frozen
	maps.DeleteFunc(l.reached, func(key string, _ bool) bool { return !strings.HasPrefix(key, loader+" ") })
	l.signal()
}

func (l *loads) lived(frame, loader, event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if frame == l.frame {
		l.reached[loader+" "+event] = true
		l.signal()
	}
}

func (l *loads) signal() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// wait returns true when the document that is shown, whichever that is by then, has reached an event.
func (l *loads) wait(ctx context.Context, event string, most time.Duration) bool {
	return l.until(ctx, most, func() bool { return l.reached[l.current+" "+event] })
}

// until returns true when done does. The lock is held while it is asked.
func (l *loads) until(ctx context.Context, most time.Duration, done func() bool) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		l.mu.Lock()
		yes, changed := done(), l.changed
		l.mu.Unlock()
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
