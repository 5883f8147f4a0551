package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"

	"dagrun.dev/nodes"
)

// What kinds of node ask of a page at rest.

// Record returns what is known of the page so far.
func (p *Page) Record() Record { return p.seen.record() }

// Left reports whether the page has been left since it came to rest: by a script, for what needs no network.
func (p *Page) Left() bool { return p.seen.documents().left }

// Gone says why the page can be asked nothing more: it crashed, the browser ended, the time is over, or the task was
// stopped. It is nil as long as it can.
func (p *Page) Gone() error {
	return p.cause()
}

// A Measure is the geometry of a page, in CSS pixels.
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
func (p *Page) Measure() (Measure, error) { return help[Measure](p, "measure") }

// ScrollTo goes to a place and returns where that was.
func (p *Page) ScrollTo(y int) (int, error) { return help[int](p, "scrollTo", y) }

// Unroll lays out what scrolls within the page at its full height and says whether the page shows all of it then. It
// is undone by RollUp, in either case.
func (p *Page) Unroll() (whole bool, err error) { return help[bool](p, "unroll") }

// A Hidden is a box of the page that cuts off much of what it holds; lengths are CSS pixels, from above to below.
type Hidden struct {
	Name        string // of the element, with its id or first class
	Seen, Whole int
}

// Hidden returns the first five such boxes, as the page stands now.
func (p *Page) Hidden() ([]Hidden, error) { return help[[]Hidden](p, "hidden") }

// RollUp undoes Unroll.
func (p *Page) RollUp() error {
	_, err := help[int](p, "rollUp")
	return err
}

// Text returns the number of visible characters, up to a few thousand: in the view, or in a strip.
func (p *Page) Text(strip *Strip) (int, error) { return help[int](p, "text", strip) }

// Pause rests for a while.
func (p *Page) Pause(d nodes.Duration) error {
	timer := time.NewTimer(d.D())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-p.ctx.Done():
		return p.explain("a pause", p.cause())
	}
}

// A Strip is a part of a page over its whole width, in CSS pixels.
type Strip struct{ Y, Height int }

// Picture returns a PNG picture of the view, or of a strip of the page, without changing the size
// of the view: sections that are as tall as the view stay so. It is compressed for speed, which takes 20 % of the
// processor time and makes the file 1.8 times as large.
func (p *Page) Picture(strip *Strip) ([]byte, error) {
	params := page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng, OptimizeForSpeed: new(true)}
	if strip != nil {
		params.CaptureBeyondViewport = new(true)
		params.Clip = &page.Viewport{
			Y: float64(strip.Y), Width: float64(p.Viewport.Width), Height: float64(strip.Height), Scale: 1,
		}
	}
	r, err := call(p, page.CaptureScreenshot, params)
	return r.Data, err
}

// PageWorld is the JavaScript world of the page's own scripts.
const PageWorld = ""

// Evaluate runs an expression in the page's own world, or in one of another name, which sees the page's document and
// nothing that its scripts have made of the language; what is put there stays as long as the document. It waits, also
// for a promise, no longer than most, and returns the remote value or an *Exception.
func (p *Page) Evaluate(expression, world string, most time.Duration) (*runtime.RemoteObject, error) {
	params := runtime.EvaluateParams{Expression: expression, ReturnByValue: new(true), AwaitPromise: new(true)}
	if world != PageWorld {
		w, err := call(p, page.CreateIsolatedWorld, page.CreateIsolatedWorldParams{FrameID: p.frame, WorldName: world})
		if err != nil {
			return nil, err
		}
		params.ContextID = w.ExecutionContextID
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

// Error returns what was thrown, in one line.
func (e *Exception) Error() string { return e.text }

// help calls one of the helpers in page.js, which answer at once, and decodes what it returns.
func help[T any](p *Page, function string, args ...any) (T, error) {
	return helpWithin[T](p, 0, function, args...)
}

// helpWithin calls a helper that waits by itself, no longer than so long.
func helpWithin[T any](p *Page, wait time.Duration, function string, args ...any) (v T, err error) {
	list := make([]string, len(args))
	for i, a := range args {
		b, err := json.Marshal(a)
		if err != nil {
			return v, err
		}
		list[i] = string(b)
	}
	code := fmt.Sprintf("%s.%s(%s)", strings.TrimSpace(helpers), function, strings.Join(list, ", "))
	r, err := p.Evaluate(code, world, wait+p.waits.Command.D())
	if _, thrown := errors.AsType[*Exception](err); thrown {
		return v, nodes.Failf("screenshot_failed", "%v: helper %s: %v", p.Viewport, function, err)
	}
	if err != nil || len(r.Value) == 0 {
		return v, err
	}
	return v, json.Unmarshal(r.Value, &v)
}
