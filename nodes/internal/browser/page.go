package browser

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/chromedp/cdproto/animation"
	protocol "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"dagrun.dev/nodes"
)

//go:embed page.js
var helpers string

const (
	world = "dagrun" // the name of the helpers' JavaScript world
	speed = 100_000  // at which animations and transitions run
)

// A Page is a tab that shows the page at one viewport. Its methods are called from one goroutine.
//
// It is opened, prepared (see prepare), brought to rest (see show), visited, and closed. From whatever side its end
// comes, ctx is cancelled with the reason, and every step under way ends with that reason.
type Page struct {
	Viewport Viewport

	ctx     context.Context // of the tab, cancelled with the reason why it is of no more use
	end     context.CancelCauseFunc
	close   context.CancelFunc
	browser context.Context
	waits   *Waits
	seen    *tracker
	frame   cdp.FrameID // the main one
	address string
	bottom  int // how far down it is looked at, in CSS pixels
}

var (
	errCrashed = errors.New("the page's process crashed")
	errDied    = errors.New("the browser ended")
)

// open opens a tab of its own, with cookies and storage of its own, and shows nothing in it yet. The page will be
// without what the addresses name.
func (b *Browser) open(ctx context.Context, t *tour, v Viewport, without []string) (*Page, error) {
	p := &Page{Viewport: v, waits: t.Waits, browser: b.ctx, address: t.srv.URL, bottom: cmp.Or(t.Bottom, Bottom)}
	p.seen = newTracker(t.srv.origin, t.Waits.Navigations, without...)
	for _, address := range without {
		p.cut("%s was not there after %v (waits.idle): the page is shown without it", p.seen.local(address), t.Waits.Idle.D())
	}
	tab, closeTab := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(p.on))
	p.ctx, p.end = context.WithCancelCause(tab)
	stop := context.AfterFunc(ctx, func() { p.end(context.Cause(ctx)) })
	p.close = func() {
		stop()
		p.end(errors.New("the tab is closed"))
		closeTab()
	}
	err := p.attach(tab)
	if err == nil {
		err = p.prepare(t.Scale)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// attach opens the tab. The context of the first step owns it, so the bound is outside.
func (p *Page) attach(tab context.Context) error {
	_, err := within(p.ctx, p.waits.Launch.D(), func() error { return chromedp.Do(tab) })
	if errors.Is(err, errLate) {
		return nodes.Failf("stalled", "%v: the browser opened no tab within %v (waits.launch)",
			p.Viewport, p.waits.Launch.D())
	}
	return p.explain("opening a tab", err)
}

// prepare sets the view, closes the way out and makes everything stand still from the first moment on.
func (p *Page) prepare(scale float64) error {
	steps := []func() error{
		step(p, dom.Disable, cdp.Empty{}), // the driver follows the document's tree, which is not needed
		step(p, css.Disable, cdp.Empty{}),
		step(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: int64(p.Viewport.Width), Height: int64(p.Viewport.Height), DeviceScaleFactor: scale,
		}),
		step(p, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}),
		step(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: "reduce"}},
		}),
		step(p, animation.Enable, cdp.Empty{}),
		step(p, animation.SetPlaybackRate, animation.SetPlaybackRateParams{PlaybackRate: speed}),
		step(p, network.SetBypassServiceWorker, network.SetBypassServiceWorkerParams{Bypass: true}),
		step(p, network.SetBlockedURLs, network.SetBlockedURLsParams{URLPatterns: []*network.BlockPattern{
			{URLPattern: pattern(p.seen.origin) + "/*", Block: false}, {URLPattern: "*://*:*/*", Block: true},
		}}),
		step(p, fetch.Enable, fetch.EnableParams{Patterns: p.watched()}),
		step(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: helpers + ".freeze()", WorldName: world,
		}),
		step(p, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: "window.close = function close() {}", // it would take the tab away
		}),
		func() error {
			_, err := chromedp.CallBrowser(p.ctx, protocol.SetDownloadBehavior, protocol.SetDownloadBehaviorParams{
				Behavior:         protocol.SetDownloadBehaviorBehaviorDeny,
				BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
				EventsEnabled:    new(true),
			})
			return err
		},
	}
	if err := inOrder(steps...); err != nil {
		return err
	}
	tree, err := call(p, page.GetFrameTree, cdp.Empty{})
	if err != nil {
		return err
	}
	p.frame = tree.FrameTree.Frame.ID
	p.seen.update(func() { p.seen.docs.frame = string(p.frame) })
	return nil
}

// pattern writes an origin as a pattern of addresses: the colons of an IPv6 address would begin names in it.
func pattern(origin string) string {
	before, host, _ := strings.Cut(origin, "[")
	host, after, v6 := strings.Cut(host, "]")
	if !v6 {
		return origin
	}
	return before + "[" + strings.ReplaceAll(host, ":", `\:`) + "]" + after
}

// watched are the requests that decide is asked about.
func (p *Page) watched() []*fetch.RequestPattern {
	list := []*fetch.RequestPattern{{URLPattern: "*", ResourceType: network.ResourceTypeDocument}}
	literal := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`)
	for _, address := range p.seen.without {
		list = append(list, &fetch.RequestPattern{URLPattern: literal.Replace(address)})
	}
	return list
}

func step[P, R any](p *Page, cmd cdp.Command[P, R], params P) func() error {
	return func() error {
		_, err := call(p, cmd, params)
		return err
	}
}

// call sends a command and waits no longer than waits.command for the answer.
func call[P, R any](p *Page, cmd cdp.Command[P, R], params P) (R, error) {
	return callFor(p, p.waits.Command.D(), cmd, params)
}

func callFor[P, R any](p *Page, most time.Duration, cmd cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(p.ctx, most)
	defer cancel()
	r, err := chromedp.Call(ctx, cmd, params)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && p.ctx.Err() == nil {
		return r, p.hang(cmd.Method, most)
	}
	return r, p.explain(cmd.Method, err)
}

// hang stops whatever script keeps the page from answering, so that the browser can go on with others: it is free at
// once then, while closing the tab of an endless loop takes half a second.
func (p *Page) hang(method string, most time.Duration) error {
	ctx, cancel := context.WithTimeout(p.ctx, time.Second)
	defer cancel()
	_, err := chromedp.Call(ctx, runtime.TerminateExecution, cdp.Empty{})
	what := "a script that never ends, or too much to draw"
	if err != nil {
		what = "its process is stuck"
	}
	return p.hung("the page did not answer %s within %v (%s)", method, most, what)
}

// explain says what a failed command means: the browser is gone, the tab is, or the task was stopped.
func (p *Page) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if _, ended := errors.AsType[*exec.ExitError](err); ended || errors.Is(p.cause(), errDied) {
		p.end(errDied)                                            // the driver ends the tab a little later
		return fmt.Errorf("%w during %s: %v", errDied, what, err) // before Canceled, which it is too
	}
	if errors.Is(err, chromedp.ErrTargetDetached) {
		p.end(p.fail("the page closed itself"))
	}
	if strings.Contains(err.Error(), "Not attached to an active page") {
		select { // its process is gone: the event that says so is on its way
		case <-p.ctx.Done():
		case <-time.After(closeFor):
		}
	}
	if cause := p.cause(); cause != nil {
		return cause
	}
	if _, known := errors.AsType[*nodes.Error](err); known {
		return err
	}
	return &nodes.Error{Category: "screenshot_failed", Message: fmt.Sprintf("%v: %s", p.Viewport, what), Err: err}
}

// cause says why the tab is of no more use, nil as long as it is. The end of the browser comes to it without a reason.
func (p *Page) cause() error {
	cause := context.Cause(p.ctx)
	if cause == context.Canceled && p.browser.Err() != nil {
		return errDied
	}
	return cause
}
