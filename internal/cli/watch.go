package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/changes"
)

func makeWatch(c *cobra.Command) {
	var runs runFlags
	var specs specFlags
	var h hostFlags
	c.RunE = func(c *cobra.Command, args []string) error {
		res, kinds, err := specs.compile(args)
		if err != nil {
			return err
		}
		s := &session{cmd: c, name: "watch", runs: &runs, host: &h, kinds: kinds, stays: true}
		s.dir = runs.forPipeline(res.Plan.Name)
		w, err := s.newWatched(res)
		if err != nil {
			return err
		}
		defer w.close()
		return w.carryOn(res, specs.anew(args))
	}
	runs.addState(c)
	specs.add(c)
	h.add(c)
}

// A watched is a specification whose folder is watched.
type watched struct {
	s       *session
	release func()
	files   *changes.Watcher
	dir     string // that is watched
	ctx     context.Context
	stop    context.CancelFunc
	said    string // last, so that the same is not said over and over
	failed  int    // ticks, one after the other
	busy    int    // idle ticks during which files changed, one after the other
}

func (s *session) newWatched(res *compile.Result) (*watched, error) {
	release, err := run.HoldTicks(s.runs.options(s.dir, s.name))
	if err != nil {
		return nil, err
	}
	w := &watched{s: s, release: release}
	w.dir, err = filepath.Abs(res.Dir)
	own, wrong := filepath.Abs(s.dir)
	if err := errors.Join(err, wrong); err != nil {
		release()
		return nil, err
	}
	roots := []string{w.dir}
	for i := range res.Plan.Nodes {
		n := &res.Plan.Nodes[i]
		for _, root := range s.kinds.Traits(n.Kind, n.With).Watch {
			if filepath.IsAbs(root) && !strings.HasPrefix(root+"/", w.dir+"/") {
				roots = append(roots, filepath.Clean(root))
			}
		}
	}
	w.files = changes.Watch(changes.Options{Roots: roots, Skip: func(path string) bool {
		return path == own || strings.HasPrefix(path, own+"/") || filepath.Base(path) == ".git"
	}})
	if err := w.files.Blind(); err != nil {
		s.warn("cannot watch all files; all are looked at every 10 seconds instead: " + err.Error())
	}
	w.ctx, w.stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return w, nil
}

func (w *watched) close() {
	w.stop()
	_ = w.files.Close()
	w.release()
}

// carryOn applies again and again until somebody ends it, or the run cannot be recorded.
func (w *watched) carryOn(res *compile.Result, again func() (*compile.Result, error)) error {
	for w.ctx.Err() == nil { // an interrupt between two ticks begins none
		t := *w.s
		var err error
		if t.origin, err = newOrigin(t.dir, res); err == nil {
			t.specDir = res.Dir
			err = t.apply(res, false, false, res.Plan.Seed)
			if t.release != nil {
				t.release()
			}
		}
		switch {
		case isA[*eventlog.Damaged](err), isA[*run.Newer](err), errors.Is(err, executor.ErrHard):
			return err
		case w.ctx.Err() != nil:
			return nil // what paused it was told, and is no reason to wait
		}
		w.untilNext(&t, res, err)
		for w.ctx.Err() == nil {
			if res, err = again(); err == nil {
				break
			}
			w.tell(err.Error())
			w.forChanges(0)
		}
	}
	return nil
}

// pollRun is how often a run that waits for a user is looked at: whether somebody has carried it on.
const pollRun = 2 * time.Second

// untilNext returns when there may be something to do.
func (w *watched) untilNext(t *session, res *compile.Result, err error) {
	ticks := res.Plan.Ticks
	day := (*dayIsOver)(nil)
	switch {
	case errors.As(err, &day):
		w.tell(day.Error())
		w.sleep(time.Until(day.until))
	case t.stood == nil && err != nil: // it could not begin
		w.tell(err.Error())
		w.forChanges(5 * time.Second)
	case t.stood == nil: // another process was handed the plan
		w.sleep(pollRun)
	case t.stood.Status == machine.RunBroken:
		w.failed++
		w.tell(fmt.Sprintf("the tick failed (%d in a row); the next begins in %v", w.failed, backOff(w.failed)))
		w.afterFailure(res, backOff(w.failed))
	case t.stood.Status != machine.RunDone:
		var until time.Time // a new day has money of its own
		if ticks != nil && ticks.PerDay.USD > 0 && t.stood.Reason == machine.PauseBudget {
			until = dayAfter(t.opened.Now)
		}
		w.forSomebody(filepath.Join(t.dir, run.Dir, dag.OwnLog), until)
	case ticks != nil && t.stood.State != ticks.Idle:
		w.failed = 0
	default:
		w.failed = 0
		w.idle(res)
	}
}

// pauses are after what time the next tick begins at the latest (0: never), and how long files must have been still.
func pauses(res *compile.Result) (every, settle time.Duration) {
	if t := res.Plan.Ticks; t != nil {
		return t.Every.D(), t.Settle.D()
	}
	return 0, 500 * time.Millisecond
}

// idle waits for changes, or until it is time for the next tick.
func (w *watched) idle(res *compile.Result) {
	every, settle := pauses(res)
	select {
	case <-w.files.Changed(): // meanwhile: by the tick itself perhaps
		if w.busy++; w.busy > 3 {
			w.tell("files in " + w.dir + " keep changing" + w.lastChange() + ": they are looked at less often")
			w.sleep(min(settle<<min(w.busy, 10), time.Minute))
		}
	default:
		w.busy = 0
		text := "nothing to do; waiting for changes in " + w.dir
		if every > 0 {
			text += ", or until " + report.Instant(time.Now().Add(every))
		}
		w.tell(text)
		if !w.forChanges(every) {
			return
		}
	}
	for still := time.Now().Add(10 * settle); time.Now().Before(still); {
		if !w.forChanges(min(settle, time.Until(still))) {
			return
		}
	}
}

// lastChange is what changed last, below the folder that is watched, and what keeps a node from changing it.
func (w *watched) lastChange() string {
	name, err := filepath.Rel(w.dir, w.files.Last())
	if err != nil || w.files.Last() == "" {
		return ""
	}
	return ", " + name + " at last (what a node makes goes to $DAGRUN_OUT, and by publish beside the specification)"
}

// afterFailure waits before the next try, until somebody changes a file: what mends the cause perhaps. What the tick
// has changed itself is no reason.
func (w *watched) afterFailure(res *compile.Result, most time.Duration) {
	_, settle := pauses(res)
	w.sleep(min(settle, most))
	select {
	case <-w.files.Changed():
	default:
	}
	if most > settle {
		w.forChanges(most - settle)
	}
}

// forSomebody waits until the log of a paused run, or a file, changes, or until an instant (zero: none).
func (w *watched) forSomebody(log string, until time.Time) {
	size := func() int64 {
		if i, err := os.Stat(log); err == nil {
			return i.Size()
		}
		return -1
	}
	for was := size(); w.ctx.Err() == nil && size() == was && (until.IsZero() || time.Now().Before(until)); {
		if w.forChanges(pollRun) {
			return
		}
	}
}

// forChanges waits for a change, so long at most (0: without end), and reports whether there was one.
func (w *watched) forChanges(most time.Duration) bool {
	var over <-chan time.Time
	if most > 0 {
		over = time.After(most)
	}
	select {
	case <-w.files.Changed():
		return true
	case <-over:
	case <-w.ctx.Done():
	}
	return false
}

func (w *watched) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-w.ctx.Done():
	}
}

// tell says a line, once as long as nothing else is said.
func (w *watched) tell(text string) {
	if text != w.said {
		w.said = text
		w.s.note("watch: " + text)
	}
}
