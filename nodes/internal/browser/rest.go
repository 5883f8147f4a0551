package browser

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"dagrun.dev/nodes"
)

// How a page is brought to rest: loaded or given up, fonts and images there or given up, scrolled through once, all
// animations at their end. Each wait has a bound of its own, and what was given up stands in the record (Cut).

// inOrder takes steps until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// show loads the page's address, brings it to rest and records what was seen.
func (p *Page) show() error {
	if err := inOrder(p.navigate, p.status, p.follow, p.stay, p.measure); err != nil {
		return err
	}
	p.seen.with((*Record).warn)
	return nil
}

// navigate sends the bare command. The driver's own would wait for the load event, and with it for an image that never
// comes.
func (p *Page) navigate() error {
	most := p.waits.Navigate.D()
	ctx, cancel := context.WithTimeout(p.ctx, most)
	defer cancel()
	r, err := chromedp.Call(ctx, page.Navigate, page.NavigateParams{URL: p.address})
	if err != nil && ctx.Err() != nil && p.ctx.Err() == nil {
		return nodes.Failf("stalled", "%v: no answer from %s within %v (waits.navigate)", p.Viewport, p.address, most)
	}
	if err != nil {
		return p.explain("loading the page", err)
	}
	switch rec := p.Record(); {
	case r.ErrorText == "":
		p.seen.moreThan(p.ctx, 0, p.waits.Command.D()) // the answer may come before the event
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

// status fails for anything but 200, which is no error to the browser.
func (p *Page) status() error {
	if rec := p.Record(); rec.Status != 200 {
		return p.fail("the page's server answers with status %d", rec.Status)
	}
	return nil
}

// follow brings the page to rest, and the one that it leads on to meanwhile, as far as it may.
func (p *Page) follow() (err error) {
	for range p.waits.Navigations + 1 {
		shown, grace := p.seen.documents().shown, time.Duration(0)
		if err = inOrder(p.loaded, p.there, p.rest); err != nil {
			grace = time.Second // the next document may be what kept this one from answering
		}
		if p.ctx.Err() != nil || !p.seen.moreThan(p.ctx, shown, grace) {
			break
		}
	}
	return err
}

// stay keeps the document that is shown now, whatever its scripts try.
func (p *Page) stay() error {
	p.seen.freeze()
	if d := p.seen.documents(); d.allowed > d.shown { // another one may be on its way
		if err := p.stopLoading(); err != nil {
			return err
		}
	}
	return p.status()
}

// stopLoading gives up what is under way. A style sheet that never comes keeps the page from being drawn: a picture did
// not come within 10 s, and came within 0.2 s after this.
func (p *Page) stopLoading() error {
	_, err := call(p, page.StopLoading, cdp.Empty{})
	return err
}

// loaded waits until the network is quiet. Where it does not become so, the page is as it is for a reader, who waits no
// longer either; but what keeps it from being read or drawn is given up.
func (p *Page) loaded() error {
	most := p.waits.Idle.D()
	late := time.Now().Add(most)
	idle := p.seen.has(p.ctx, "networkIdle", most)
	idle = idle && p.seen.quiet(p.ctx, nil, time.Until(late)) // the former does not count frames
	if err := p.explain("loading", p.cause()); err != nil {
		return err
	}
	p.seen.with(func(r *Record) { r.Idle = idle && len(p.seen.without) == 0 })
	if idle {
		return nil
	}
	drawn, err := help[bool](p, "frame")
	if err != nil {
		return err
	}
	if drawn && p.seen.has(p.ctx, "DOMContentLoaded", 0) {
		p.cut("the network was not quiet after %v (waits.idle)%s", most, p.seen.waitingFor())
		return nil
	}
	if list := p.seen.blocking(); len(list) > 0 && len(p.seen.without) == 0 {
		return &held{list}
	}
	p.cut("loading was stopped after %v (waits.idle)%s", most, p.seen.waitingFor())
	return p.stopLoading()
}

// held says that a page is not there for want of scripts and style sheets that never came. Without them it is.
type held struct{ addresses []string }

// Error names them.
func (h *held) Error() string { return "waiting for " + strings.Join(h.addresses, ", ") }

// there fails when the document has nothing that could be drawn.
func (p *Page) there() error {
	there, err := help[bool](p, "there")
	if err != nil || there {
		return err
	}
	switch rec := p.Record(); {
	case p.seen.documents().refused > 0:
		return p.fail("the page leads on to another one again and again; given up after %d (waits.navigations)",
			p.waits.Navigations)
	case len(rec.Missing) > 0:
		return p.fail("the page has no content; %s", rec.Missing[0])
	}
	return p.fail("the page has no content%s", p.seen.waitingFor())
}

// rest waits for what can be waited for and ends what moves.
func (p *Page) rest() error {
	end := func() error {
		_, err := help[int](p, "finish")
		return err
	}
	top := func() error {
		_, err := p.ScrollTo(0)
		return err
	}
	return inOrder(end, p.fonts, p.sweep, p.images, p.still, top)
}

// fonts waits for fonts and records what is wrong with them. That the set of fonts is "loaded" proves nothing: it is so
// with one that failed, and on a machine without any, where no text can be seen.
func (p *Page) fonts() error {
	f, err := helpWithin[struct {
		Done   bool
		Failed []string
		Width  float64
	}](p, p.waits.Fonts.D(), "fonts", p.patience(p.waits.Fonts).Milliseconds())
	if err != nil {
		return err
	}
	if !f.Done && p.Record().Idle { // else it is recorded already
		p.cut("fonts were not there after %v (waits.fonts)", p.waits.Fonts.D())
	}
	boxes, err := help[[]string](p, "boxes")
	p.seen.with(func(r *Record) { r.FailedFonts, r.TextWidth, r.Boxes = f.Failed, f.Width, strings.Join(boxes, "") })
	return err
}

// rounds is how many times a page is scrolled on that grew by what it asked for on the way.
const rounds = 3

// sweep scrolls through the page and waits for what it asks for then, but for what it asked for before.
func (p *Page) sweep() error {
	before, late := p.seen.open(), time.Now().Add(p.waits.Sweep.D())
	from := 0
	for range rounds {
		swept, err := helpWithin[struct {
			Cut     bool
			Reached int
		}](p, p.waits.Sweep.D(), "sweep", from, max(0, time.Until(late).Milliseconds()), p.bottom)
		if err != nil {
			return err
		}
		if swept.Cut {
			p.cut("scrolling through the page ended at %d px (waits.sweep, or the limit for tall pages)", swept.Reached)
			return nil
		}
		if !p.seen.quiet(p.ctx, before, p.waits.Images.D()) {
			p.cut("what was asked for while scrolling was not there after %v (waits.images)%s",
				p.waits.Images.D(), p.seen.waitingFor())
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
	images, err := helpWithin[struct {
		Done   bool
		Broken int
	}](p, p.waits.Images.D(), "images", p.patience(p.waits.Images).Milliseconds())
	if err != nil {
		return err
	}
	if !images.Done && p.Record().Idle { // else it is recorded already
		p.cut("images were not there after %v (waits.images)", p.waits.Images.D())
	}
	p.seen.with(func(r *Record) { r.BadImages = images.Broken })
	return nil
}

// patience is how long to wait for what may never come. Where the network was waited for in vain, that was the wait.
func (p *Page) patience(most nodes.Duration) time.Duration {
	if !p.Record().Idle {
		most = min(most, nodes.Duration(500*time.Millisecond))
	}
	return most.D()
}

// restless is how many times waits.settle a page may go on changing itself.
const restless = 10

// still rests for waits.settle, longer where scripts still move something.
func (p *Page) still() error {
	least := p.waits.Settle.D()
	most := restless * least
	still, err := helpWithin[bool](p, most, "still", least.Milliseconds(), most.Milliseconds())
	if err == nil && !still {
		p.seen.with(func(r *Record) { r.Restless = true })
	}
	return err
}

// measure records the geometry of the page, which must still be its own server's: that the browser refused to follow a
// page elsewhere is no error, and shows in the address only (chrome-error://...).
func (p *Page) measure() error {
	m, err := p.Measure()
	if err != nil {
		return err
	}
	if !strings.HasPrefix(strings.TrimPrefix(m.URL, "blob:"), p.seen.origin) {
		return p.fail("the page has gone to %s", m.URL)
	}
	p.seen.with(func(r *Record) {
		r.URL, r.Title = p.seen.local(m.URL), m.Title
		r.Height, r.Wide, r.DPR, r.Scroller = m.Height, m.Overflow, m.DPR, m.Scroller
	})
	return nil
}

// fail says that another attempt would end in the same way.
func (p *Page) fail(format string, args ...any) error {
	return nodes.Permanent(nodes.Fail("screenshot_failed", fmt.Sprintf("%v: ", p.Viewport)+fmt.Sprintf(format, args...)))
}

// cut records a wait that was given up.
func (p *Page) cut(format string, args ...any) {
	p.seen.with(func(r *Record) { note(&r.Cut, fmt.Sprintf(format, args...)) })
}
