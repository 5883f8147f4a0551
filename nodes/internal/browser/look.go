package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"dagrun.dev/nodes"
)

// A Job is to look at a page at some viewports.
type Job struct {
	Source    *Source
	Settings  *Settings
	Waits     *Waits
	Viewports []Viewport
	Scale     float64 // device pixels per CSS pixel
	Bottom    int     // the page is scrolled through this far; 0 = Bottom
	// Visit is called with the page at rest at the viewport of that index, from several goroutines
	// at a time. It is called again when the tab crashed or the browser ended under it.
	Visit func(i int, p *Page) error
}

const tabs = 4 // side by side

// Bottom is how far down a page is looked at by default, in CSS pixels.
const Bottom = 50_000

// A tour is a job under way.
type tour struct {
	*Job
	srv  *server
	done []bool // viewports that need no other visit
}

// Look carries out a job in one browser with a tab per viewport. It returns when the browser and
// everything it started are gone; what could not be ended is among survivors. The error is that of
// the first viewport that has one: *Unavailable, *nodes.Error, or the reason why ctx ended.
func Look(ctx context.Context, t *nodes.Task, job *Job) (version string, survivors []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, job.Waits.Node.D(),
		nodes.Failf("page_hang", "not done within %v (waits.node)", job.Waits.Node.D()))
	defer cancel()
	path, err := job.Settings.locate(ctx, t.SpecDir, t.Scratch, t.Warn)
	if err != nil {
		return "", nil, err
	}
	srv, err := serve(t, job.Source)
	if err != nil {
		return "", nil, err
	}
	defer srv.Close()
	l := &launch{path: path, set: job.Settings, origin: srv.origin, most: job.Waits.Launch.D(), scratch: t.Scratch}
	all := &tour{job, srv, make([]bool, len(job.Viewports))}
	for again := false; ; again = true {
		b, err := l.start(ctx)
		if err != nil {
			return version, survivors, err
		}
		version = b.Version
		t.Beat()
		err = b.visitAll(ctx, all)
		survivors = append(survivors, b.Close()...)
		if !errors.Is(err, errDied) {
			return version, survivors, err
		}
		if again {
			return version, survivors, &nodes.Error{
				Category: "screenshot_failed", Message: "the browser ended twice", Err: err, Diagnostics: b.printed.String(),
			}
		}
		t.Warn(fmt.Sprintf("%v; starting it again", err))
	}
}

// visitAll visits the viewports that are not done, a few at a time. That the browser ended is the error before others.
func (b *Browser) visitAll(ctx context.Context, t *tour) error {
	errs := make([]error, len(t.Viewports))
	slots := make(chan struct{}, tabs)
	var wg sync.WaitGroup
	for i := range t.Viewports {
		if t.done[i] {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = b.visitTwice(ctx, t, i)
			t.done[i] = errs[i] == nil
		})
	}
	wg.Wait()
	if died := slices.IndexFunc(errs, func(err error) bool { return errors.Is(err, errDied) }); died >= 0 {
		return errs[died]
	}
	return cmp.Or(errs...)
}

// visitTwice visits one viewport, and once more in a new tab if the tab crashed.
func (b *Browser) visitTwice(ctx context.Context, t *tour, i int) error {
	err := b.visitInTime(ctx, t, i)
	if errors.Is(err, errCrashed) && ctx.Err() == nil {
		err = b.visitInTime(ctx, t, i)
	}
	if errors.Is(err, errCrashed) {
		return &nodes.Error{Category: "screenshot_failed", Message: err.Error()}
	}
	return err
}

// visitInTime visits one viewport. Where the page is not there for want of files that never came, it is visited in
// another tab where it does without them.
func (b *Browser) visitInTime(ctx context.Context, t *tour, i int) error {
	v, most := t.Viewports[i], t.Waits.Viewport.D()
	ctx, cancel := context.WithTimeoutCause(ctx, most,
		nodes.Failf("page_hang", "%v: not done within %v (waits.viewport)", v, most))
	defer cancel()
	err := b.visit(ctx, t, i, nil)
	if h, ok := errors.AsType[*held](err); ok {
		err = b.visit(ctx, t, i, h.addresses)
	}
	return err
}

// visit visits a viewport in a tab where the page does without what the addresses name.
func (b *Browser) visit(ctx context.Context, t *tour, i int, without []string) error {
	p, err := b.open(ctx, t, t.Viewports[i], without)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.show(); err != nil {
		return err
	}
	return t.Visit(i, p)
}
