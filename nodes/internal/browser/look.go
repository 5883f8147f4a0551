package browser

import (
	"context"
	"errors"
	"fmt"
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

// Look carries out a job in one browser with a tab per viewport. It returns when the browser and
// everything it started are gone; what could not be ended is among survivors. The error is that of
// the first viewport that has one: *Unavailable, *nodes.Error, or the reason why ctx ended.
func Look(ctx context.Context, t *nodes.Task, job *Job) (version string, survivors []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, job.Waits.Node.D(),
		nodes.Fail("page_hang", fmt.Sprintf("not done within %v (waits.node)", job.Waits.Node.D())))
	defer cancel()
	path, err := job.Settings.Locate(ctx, t.SpecDir, t.Scratch, t.Log)
	if err != nil {
		return "", nil, err
	}
	srv, err := serve(t, job.Source)
	if err != nil {
		return "", nil, err
	}
	defer srv.Close()
	l := &launch{path: path, set: job.Settings, origin: srv.origin, most: job.Waits.Launch.D(), scratch: t.Scratch}
	done := make([]bool, len(job.Viewports))
	for again := false; ; again = true {
		b, err := l.start(ctx)
		if err != nil {
			return version, survivors, err
		}
		version = b.Version
		t.Beat("browser started")
		err = b.visitAll(ctx, job, srv, done)
		survivors = append(survivors, b.Close()...)
		if !errors.Is(err, errDied) {
			return version, survivors, err
		}
		if again {
			return version, survivors, &nodes.Error{Category: "screenshot_failed", Message: "the browser ended twice", Err: err, Diagnostics: b.words.String()}
		}
		t.Log("WARN", fmt.Sprintf("%v; starting it again", err))
	}
}

// visitAll visits the viewports that are not done, a few at a time.
func (b *Browser) visitAll(ctx context.Context, job *Job, srv *server, done []bool) error {
	errs := make([]error, len(job.Viewports))
	slots := make(chan struct{}, tabs)
	var wg sync.WaitGroup
	for i := range job.Viewports {
		if done[i] {
			continue
		}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = b.visitTwice(ctx, job, srv, i)
			done[i] = errs[i] == nil
		})
	}
	wg.Wait()
	for _, err := range errs {
		if errors.Is(err, errDied) {
			return err
		}
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// visitTwice visits one viewport, and once more in a new tab if the tab crashed.
func (b *Browser) visitTwice(ctx context.Context, job *Job, srv *server, i int) error {
	err := b.visit(ctx, job, srv, i)
	if errors.Is(err, errCrashed) && ctx.Err() == nil {
		err = b.visit(ctx, job, srv, i)
	}
	if errors.Is(err, errCrashed) {
		return &nodes.Error{Category: "screenshot_failed", Message: err.Error()}
	}
	return err
}

func (b *Browser) visit(ctx context.Context, job *Job, srv *server, i int) error {
	v, most := job.Viewports[i], job.Waits.Viewport.D()
	ctx, cancel := context.WithTimeoutCause(ctx, most, nodes.Fail("page_hang", fmt.Sprintf("%v: not done within %v (waits.viewport)", v, most)))
	defer cancel()
	var without []string
	for {
		err := b.visitWithout(ctx, job, srv, i, without)
		if h := (*held)(nil); errors.As(err, &h) && len(without) == 0 {
			without = h.addresses
			continue
		}
		return err
	}
}

// visitWithout visits a viewport in a tab where the page does without what the addresses name.
func (b *Browser) visitWithout(ctx context.Context, job *Job, srv *server, i int, without []string) error {
	p, err := b.open(ctx, srv.origin, job.Viewports[i], job.Scale, job.Waits, without)
	if err != nil {
		return err
	}
	defer p.close()
	bottom := job.Bottom
	if bottom == 0 {
		bottom = Bottom
	}
	if err := p.show(srv.URL, bottom); err != nil {
		return err
	}
	return job.Visit(i, p)
}
