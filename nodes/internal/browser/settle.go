package browser

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"dagrun.dev/nodes"
)

// Bottom is how far down a page is looked at by default, in pixels.
const Bottom = 50_000

// show loads the address and brings the page to rest: loaded or given up, fonts and images there or
// given up, scrolled through once, all animations at their end.
func (p *Page) show(address string, bottom int) error {
	if err := p.navigate(address); err != nil {
		return err
	}
	if err := p.status(); err != nil {
		return err
	}
	if err := p.follow(bottom); err != nil {
		return err
	}
	if err := p.stay(); err != nil {
		return err
	}
	if err := p.measure(); err != nil {
		return err
	}
	p.judge()
	return nil
}

// follow brings the page to rest, and the one that it leads on to meanwhile, as far as it may.
func (p *Page) follow(bottom int) (err error) {
	for range p.waits.Navigations + 1 {
		shown, grace := p.loads.documents(), time.Duration(0)
		if err = p.settle(bottom); err != nil {
			grace = time.Second // the next document may be what kept this one from answering
		}
		if p.ctx.Err() != nil || !p.loads.moreThan(p.ctx, shown, grace) {
			break
		}
	}
	return err
}

func (p *Page) settle(bottom int) error {
	if err := p.loaded(); err != nil {
		return err
	}
	if err := p.there(); err != nil {
		return err
	}
	return p.rest(bottom)
}

// stay keeps the document that is shown now, whatever its scripts try.
func (p *Page) stay() error {
	shown, underWay := p.loads.freeze()
	p.notes.with(func(r *Record) { r.Loads = shown })
	if underWay {
		if _, err := call(p, page.StopLoading, cdp.Empty{}); err != nil {
			return err
		}
	}
	return p.status()
}

func (p *Page) status() error {
	if rec := p.Record(); rec.Status != 200 {
		return p.fail("the page's server answers with status %d", rec.Status)
	}
	return nil
}

// loaded waits until the network is quiet. Where it does not become so, the page is as it is for a reader, who waits no
// longer either; but what keeps it from being read or drawn is given up.
func (p *Page) loaded() error {
	late := time.Now().Add(p.waits.Idle.D())
	idle := p.loads.wait(p.ctx, "networkIdle", p.waits.Idle.D())
	idle = idle && p.notes.wait(p.ctx, nil, time.Until(late)) // the former does not count frames
	if err := p.explain("loading", p.cause()); err != nil {
		return err
	}
	p.notes.with(func(r *Record) { r.Idle = idle && len(p.notes.without) == 0 })
	if idle {
		return nil
	}
	drawn, err := help[bool](p, p.waits.Command.D(), "frame")
	if err != nil {
		return err
	}
	if drawn && p.loads.has("DOMContentLoaded") {
		p.cut("the network was not quiet after %v (waits.idle)%s", p.waits.Idle.D(), waitingFor(p.notes.pending()))
		return nil
	}
	if list := p.notes.blocking(); len(list) > 0 && len(p.notes.without) == 0 {
		return &held{list}
	}
	p.cut("loading was stopped after %v (waits.idle)%s", p.waits.Idle.D(), waitingFor(p.notes.pending()))
	_, err = call(p, page.StopLoading, cdp.Empty{})
	return err
}

// held says that a page is not there for want of scripts and style sheets that never came. Without them it is.
type held struct{ addresses []string }

// Error names them.
func (h *held) Error() string { return "waiting for " + strings.Join(h.addresses, ", ") }

// there fails when the document has nothing that could be drawn.
func (p *Page) there() error {
	there, err := help[bool](p, p.waits.Command.D(), "there")
	if err != nil || there {
		return err
	}
	switch rec := p.Record(); {
	case p.loads.refusals() > 0:
		return p.fail("the page leads on to another one again and again; given up after %d (waits.navigations)", p.waits.Navigations)
	case len(rec.Missing) > 0:
		return p.fail("the page has no content; %s", rec.Missing[0])
	}
	return p.fail("the page has no content%s", waitingFor(p.notes.pending()))
}

func waitingFor(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return ", waiting for " + strings.Join(list, ", ")
}

func (p *Page) navigate(address string) error {
	most := p.waits.Navigate.D()
	ctx, cancel := context.WithTimeout(p.ctx, most)
	defer cancel()
	r, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: address})
	if err != nil && ctx.Err() != nil && p.ctx.Err() == nil {
		return nodes.Fail("stalled", fmt.Sprintf("%v: no answer from %s within %v (waits.navigate)", p.Viewport, address, most))
	}
	if err != nil {
		return p.explain("loading the page", err)
	}
	switch rec := p.Record(); {
	case r.ErrorText == "":
		p.loads.moreThan(p.ctx, 0, p.waits.Command.D()) // the answer may come before the event
		return nil
	case len(rec.Refused) > 0:
		return p.fail("the page leads away to %s, which is not its own server", strings.Join(rec.Refused, ", "))
	case r.IsDownload:
		return p.fail("the server sends a file to be saved, not a page")
	case r.ErrorText == "net::ERR_ABORTED":
		return p.fail("the server sends no page (an empty answer, or a file to be saved)")
	default:
		return p.fail("the page does not load: %s", r.ErrorText)
	}
}

// fail says that another attempt would end in the same way.
func (p *Page) fail(format string, args ...any) error {
	return nodes.Permanent(nodes.Fail("screenshot_failed", fmt.Sprintf("%v: ", p.Viewport)+fmt.Sprintf(format, args...)))
}

func (p *Page) cut(format string, args ...any) {
	p.notes.with(func(r *Record) { note(&r.Cut, fmt.Sprintf(format, args...)) })
}

// rest waits for what can be waited for and ends what moves.
func (p *Page) rest(bottom int) error {
	if _, err := help[int](p, p.waits.Command.D(), "finish"); err != nil {
		return err
	}
	if err := p.fonts(); err != nil {
		return err
	}
	before := p.notes.open()
	if err := p.sweep(before, bottom); err != nil {
		return err
	}
	if err := p.images(); err != nil {
		return err
	}
	if err := p.still(); err != nil {
		return err
	}
	_, err := help[int](p, p.waits.Command.D(), "scrollTo", 0)
	return err
}

// rounds is how many times a page is scrolled on that grew by what it asked for on the way.
const rounds = 3

// sweep scrolls through the page and waits for what it asks for then, but for what it asked for before.
func (p *Page) sweep(before map[string]bool, bottom int) error {
	late := time.Now().Add(p.waits.Sweep.D())
	from := 0
	for range rounds {
		swept, err := help[struct {
			Cut     bool
			Reached int
		}](p, p.waits.Sweep.D()+p.waits.Command.D(), "sweep", from, max(0, time.Until(late).Milliseconds()), bottom)
		if err != nil {
			return err
		}
		if swept.Cut {
			p.cut("scrolling through the page ended at %d px (waits.sweep, or the limit for tall pages)", swept.Reached)
			return nil
		}
		if !p.notes.wait(p.ctx, before, p.waits.Images.D()) {
			p.cut("what was asked for while scrolling was not there after %v (waits.images)%s", p.waits.Images.D(), waitingFor(p.notes.pending()))
			return nil
		}
		from = swept.Reached
		m, err := p.Measure()
		if err != nil || from+m.View >= m.Scroll {
			return err
		}
	}
	return nil
}

// images waits for the page's images to be there and ready to be drawn.
func (p *Page) images() error {
	images, err := help[struct {
		Done   bool
		Broken int
	}](p, p.waits.Images.D()+p.waits.Command.D(), "images", p.patience(p.waits.Images).Milliseconds())
	if err != nil {
		return err
	}
	if !images.Done && p.Record().Idle { // else it is told already
		p.cut("images were not there after %v (waits.images)", p.waits.Images.D())
	}
	p.notes.with(func(r *Record) { r.BadImages = images.Broken })
	return nil
}

// patience is how long to wait for what may never come. Where the network was waited for in vain, that was the wait.
func (p *Page) patience(most Duration) time.Duration {
	if !p.Record().Idle {
		most = min(most, Duration(500*time.Millisecond))
	}
	return most.D()
}

// restless is how many times waits.settle a page may go on changing itself.
const restless = 10

// still rests for waits.settle, longer where scripts still move something.
func (p *Page) still() error {
	least := p.waits.Settle.D()
	still, err := help[bool](p, restless*least+p.waits.Command.D(), "still", least.Milliseconds(), restless*least.Milliseconds())
	if err == nil && !still {
		p.notes.with(func(r *Record) { r.Restless = true })
	}
	return err
}

func (p *Page) fonts() error {
	f, err := help[struct {
		Done   bool
		Failed []string
		Width  float64
	}](p, p.waits.Fonts.D()+p.waits.Command.D(), "fonts", p.patience(p.waits.Fonts).Milliseconds())
	if err != nil {
		return err
	}
	if !f.Done && p.Record().Idle { // else it is told already
		p.cut("fonts were not there after %v (waits.fonts)", p.waits.Fonts.D())
	}
	boxes, err := help[[]string](p, p.waits.Command.D(), "boxes")
	p.notes.with(func(r *Record) { r.FailedFonts, r.TextWidth, r.Boxes = f.Failed, f.Width, strings.Join(boxes, "") })
	return err
}

// Pause rests for a while.
func (p *Page) Pause(d Duration) error {
	timer := time.NewTimer(d.D())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.ctx.Done():
		return p.explain("a pause", p.cause())
	}
}

// A Measure is the geometry of a page.
type Measure struct {
	Height   int     `json:"height"` // of the page
	Scroll   int     `json:"scroll"` // height of what scrolls
	View     int     `json:"view"`   // height that is seen of it at once
	Overflow int     `json:"overflow"`
	Scroller string  `json:"scroller"`
	DPR      float64 `json:"dpr"`
	Title    string  `json:"title"`
	URL      string  `json:"url"`
}

// Measure measures the page as it is now.
func (p *Page) Measure() (Measure, error) {
	return help[Measure](p, p.waits.Command.D(), "measure")
}

func (p *Page) measure() error {
	m, err := p.Measure()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(strings.TrimPrefix(m.URL, "blob:"), p.origin) {
		return p.fail("the page has gone to %s", m.URL)
	}
	p.notes.with(func(r *Record) {
		r.URL, r.Title, r.Height, r.Wide, r.DPR, r.Scroller = p.notes.local(m.URL), m.Title, m.Height, m.Overflow, m.DPR, m.Scroller
	})
	return nil
}

// judge puts into words what a person should know.
func (p *Page) judge() {
	rec := p.Record()
	warn := func(ok bool, format string, args ...any) {
		if !ok {
			p.notes.with(func(r *Record) { note(&r.Warnings, fmt.Sprintf(format, args...)) })
		}
	}
	for _, c := range rec.Cut {
		warn(false, "%s", c)
	}
	warn(len(rec.Refused) == 0, "refused, because only the page's own files are allowed: %s", strings.Join(rec.Refused, ", "))
	warn(len(rec.Missing) == 0, "not loaded: %s", strings.Join(rec.Missing, ", "))
	warn(rec.ErrorCount == 0, "%d errors on the console, first: %s", rec.ErrorCount, first(rec.Errors))
	warn(rec.Dialogs == 0, "%d dialogs were closed", rec.Dialogs)
	warn(rec.Loads <= 1, "the page loaded itself again, or another one: %d documents", rec.Loads)
	warn(len(rec.FailedFonts) == 0, "fonts that did not load: %s", strings.Join(rec.FailedFonts, ", "))
	warn(rec.Boxes == "", "no font here has %s: boxes stand in their place", rec.Boxes)
	warn(rec.TextWidth > 0, "text has no width: there are no fonts on this machine")
	warn(rec.BadImages == 0, "%d images are broken", rec.BadImages)
	warn(rec.Wide == 0, "the content is %d px wider than the view", rec.Wide)
	warn(rec.Scroller == "", "not the page scrolls but <%s>", rec.Scroller)
	warn(!rec.Restless, "the page goes on changing itself: pictures of it differ")
	warn(rec.Type == "" || strings.Contains(rec.Type, "html"), "the page is %s", rec.Type)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// Left says whether the page has been left since it came to rest: by a script, for what needs no network.
func (p *Page) Left() bool {
	p.loads.mu.Lock()
	defer p.loads.mu.Unlock()
	return p.loads.left
}

// ScrollTo goes to a place and returns where that was.
func (p *Page) ScrollTo(y int) (int, error) {
	return help[int](p, p.waits.Command.D(), "scrollTo", y)
}

// Unroll lays out what scrolls within the page at its full height and says whether the page shows all of it then. It
// is undone by the function that it returns.
func (p *Page) Unroll() (whole bool, undo func() error, err error) {
	whole, err = help[bool](p, p.waits.Command.D(), "unroll")
	return whole, func() error {
		_, err := help[int](p, p.waits.Command.D(), "rollUp")
		return err
	}, err
}

// Text returns the number of visible characters, up to a few thousand: in the view, or in a strip.
func (p *Page) Text(strip *Strip) (int, error) {
	return help[int](p, p.waits.Command.D(), "text", strip)
}

// Picture returns a PNG picture of the view, or of a strip of the page, without changing the size
// of the view: sections that are as tall as the view stay so.
func (p *Page) Picture(strip *Strip) ([]byte, error) {
	yes := true
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, OptimizeForSpeed: &yes}
	if strip != nil {
		params.CaptureBeyondViewport = &yes
		params.Clip = &page.Viewport{Y: float64(strip.Y), Width: float64(p.Viewport.Width), Height: float64(strip.Height), Scale: 1}
	}
	r, err := call(p, page.CaptureScreenshot, params)
	return r.Data, err
}

// A Strip is a part of a page over its whole width, in CSS pixels.
type Strip struct{ Y, Height int }

// PageWorld is the world of the page's own scripts.
const PageWorld = ""

// Evaluate runs an expression in the page's own world, or in one of another name where its scripts have changed nothing,
// and waits, also for a promise, no longer than most. It returns the remote value or an *Exception.
func (p *Page) Evaluate(expression, in string, most time.Duration) (*runtime.RemoteObject, error) {
	yes := true
	params := runtime.EvaluateParams{Expression: expression, ReturnByValue: &yes, AwaitPromise: &yes}
	if in != PageWorld {
		id, err := p.isolated(in)
		if err != nil {
			return nil, err
		}
		params.ContextID = id
	}
	r, err := callFor(p, most, runtime.Evaluate, params)
	if err != nil {
		return nil, err
	}
	if r.ExceptionDetails != nil {
		return nil, &Exception{exception(r.ExceptionDetails)}
	}
	return r.Result, nil
}

// Compile says what is wrong with the syntax of code that is to be evaluated.
func (p *Page) Compile(code string) error {
	r, err := call(p, runtime.CompileScript, runtime.CompileScriptParams{Expression: code})
	if err == nil && r.ExceptionDetails != nil {
		err = &Exception{exception(r.ExceptionDetails)}
	}
	return err
}

// An Exception is what code threw, or what is wrong with its syntax. Other errors say that the page could not be asked.
type Exception struct{ text string }

// Error returns what was thrown.
func (e *Exception) Error() string { return e.text }
