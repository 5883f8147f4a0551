package cli

import (
	"sync/atomic"
	"time"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

// A display shows on a screen how a run stands, as status does, while it is carried on: again when something has
// happened, and each second for the time that goes by.
type display struct {
	screen  *screen
	dir     string
	run     *run.Run
	changed chan struct{} // something has happened
	looks   chan func()   // to be called by the owner of the run's state
	view    atomic.Pointer[report.Status]
	quit    chan struct{}
	hide    func()
}

const (
	drawPause = 100 * time.Millisecond // between two looks at a run
	lookShare = 20                     // of the time, which looks at a large run take at most
)

// newDisplay begins to show a run. Its caller owns the run's state.
func newDisplay(s *screen, r *run.Run, dir string) *display {
	d := &display{
		screen: s, dir: dir, run: r, changed: make(chan struct{}, 1), looks: make(chan func()), quit: make(chan struct{}),
	}
	d.look()
	d.hide = s.show(func(columns, rows int) []string { return d.view.Load().Later(time.Now()).Live(columns, rows) })
	go d.work()
	return d
}

func (d *display) look() { d.view.Store(report.NewStatus(d.run, d.dir, time.Now())) }

// note has what happened be shown soon.
func (d *display) note() {
	select {
	case d.changed <- struct{}{}:
	default:
	}
}

func (d *display) work() {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	took := make(chan time.Duration, 1) // by the last look
	look := func() {
		began := time.Now()
		d.look()
		took <- time.Since(began)
	}
	changed, rested := d.changed, (<-chan time.Time)(nil)
	var looks chan<- func()
	for {
		select {
		case <-d.quit:
			return
		case <-changed:
			changed, looks = nil, d.looks
		case looks <- look:
			looks = nil
		case t := <-took:
			rested = time.After(max(drawPause, lookShare*t))
			d.screen.redraw()
		case <-rested:
			changed = d.changed
		case <-second.C:
			d.screen.redraw()
		}
	}
}

// end takes the picture away.
func (d *display) end() {
	close(d.quit)
	d.hide()
}
