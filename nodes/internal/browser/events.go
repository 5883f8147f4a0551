package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
			p.seen.committed(string(e.Frame.ID), string(e.Frame.LoaderID))
		}
	case *page.EventLifecycleEvent:
		p.seen.lived(string(e.FrameID), string(e.LoaderID), e.Name)
	case *runtime.EventExceptionThrown:
		p.console(true, exception(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		isError := e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert
		p.console(isError, joined(e.Args))
	case *log.EventEntryAdded:
		// Failures of the network have events of their own, which say more.
		p.console(e.Entry.Level == log.EntryLevelError && e.Entry.Source != log.EntrySourceNetwork, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		p.seen.asked(e)
	case *network.EventResponseReceived:
		p.seen.got(e.Response.URL, int(e.Response.Status))
		if e.Type == network.ResourceTypeDocument && string(e.FrameID) == p.seen.documents().frame {
			p.seen.with(func(r *Record) { r.Status, r.Type = int(e.Response.Status), e.Response.MimeType })
		}
	case *network.EventLoadingFinished:
		p.seen.finished(string(e.RequestID))
	case *network.EventLoadingFailed:
		p.seen.failed(string(e.RequestID), e.ErrorText, e.Canceled)
	case *network.EventWebSocketCreated:
		if p.seen.outside(e.URL) {
			p.seen.update(func() { p.seen.refused(e.URL) })
		}
	}
}

// reply carries out a command that an event asks for. When it fails, the step under way meets the same
// error and returns it.
func reply[P, R any](p *Page, cmd cdp.Command[P, R], params P) {
	ctx, cancel := context.WithTimeout(p.ctx, p.waits.Command.D())
	defer cancel()
	_, _ = chromedp.Call(ctx, cmd, params)
}

// dialog closes a dialog, so that the page goes on: until then every command to it waits. A page that opens one after
// the other never ends (17,000 were closed in 15 s).
func (p *Page) dialog() {
	var n int
	p.seen.with(func(r *Record) { r.Dialogs++; n = r.Dialogs })
	if n > p.waits.Dialogs {
		p.end(p.hung("the page opened more than %d dialogs (waits.dialogs)", p.waits.Dialogs))
		return
	}
	go reply(p, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
}

// decide lets a request go on or does not: the page may not leave its origin, nor load itself again and again, nor go
// anywhere once it stands still; and it does without what never came. A load that is refused leaves the page as it is.
func (p *Page) decide(e *fetch.EventRequestPaused) {
	address := e.Request.URL
	allowed := !slices.Contains(p.seen.without, address)
	if p.seen.outside(address) {
		p.seen.update(func() { p.seen.refused(address) })
		allowed = false
	}
	leads := e.ResourceType == network.ResourceTypeDocument && e.RedirectedRequestID == "" &&
		string(e.FrameID) == p.seen.documents().frame
	if allowed && leads {
		allowed = p.seen.allow()
	}
	if allowed {
		reply(p, fetch.ContinueRequest, fetch.ContinueRequestParams{RequestID: e.RequestID})
		return
	}
	reply(p, fetch.FailRequest, fetch.FailRequestParams{
		RequestID: e.RequestID, ErrorReason: network.ErrorReasonAborted,
	})
}

// console notes a message. The console of a page that floods it is turned off.
func (p *Page) console(isError bool, text string) {
	if p.seen.said(isError, text) {
		go func() {
			reply(p, log.Disable, cdp.Empty{})
			reply(p, runtime.Disable, cdp.Empty{})
		}()
	}
}

// exception is the first line of what a script threw.
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

// joined is what a script wrote on the console.
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

// hung is the failure of a page that does not come to an end; another attempt may find it otherwise.
func (p *Page) hung(format string, args ...any) error {
	return nodes.Fail("page_hang", fmt.Sprintf("%v: ", p.Viewport)+fmt.Sprintf(format, args...))
}
