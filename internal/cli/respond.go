package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/runlog"
)

func makeRespond(c *cobra.Command) {
	var runs runFlags
	var a machine.EscalationAnsweredBody
	c.RunE = func(c *cobra.Command, args []string) error {
		a.Answer = args[len(args)-1]
		if len(args) == 2 {
			a.ID = args[0]
		}
		dir, err := runs.existing()
		if err != nil {
			return err
		}
		r, err := openOrAsk(dir, executor.Request{Answer: &a}, func() (*run.Run, *run.Report, error) {
			return run.Open(runs.options(dir, "respond"))
		})
		if r == nil {
			return errors.Join(err, done(c, err, "Answered: "+a.Answer))
		}
		said := "Answered: " + a.Answer
		body, err := executor.Answer(r.State(), a)
		if err == nil {
			if q, ok := r.State().Escalation(body.ID); ok && slices.Contains(q.Question.Refuses, a.Answer) {
				said += ", which refuses: " + q.Question.Node + " fails, and its onFail decides"
			}
			err = r.RecordDurable(time.Now(), body)
		}
		if err = errors.Join(err, r.Close()); err == nil {
			_ = runlog.Update(runs.options(dir, "respond")) // the next start does it otherwise
		}
		return errors.Join(err, done(c, err, said+". Ready to resume: dagrun resume --output-dir "+dir))
	}
	runs.add(c)
	c.Flags().StringVar(&a.Text, "text", "", "why, or the text that the option asks for")
	c.Flags().StringVar(&a.By, "by", "user", "who answers")
}

// done prints what was done, unless it was not.
func done(c *cobra.Command, err error, text string) error {
	if err != nil {
		return nil
	}
	return show(c, result{text})
}

// openOrAsk opens a run, or has the process that holds it take a request: then there is no run and no error. A process
// that ends before it takes the request leaves the run free, or to another.
func openOrAsk(dir string, req executor.Request, open func() (*run.Run, *run.Report, error)) (*run.Run, error) {
	for {
		r, _, err := open()
		var locked *eventlog.Locked
		if !errors.As(err, &locked) {
			return r, err
		}
		asked := executor.Ask(dir, req, locked.Held)
		if !errors.Is(asked, executor.ErrNoAnswer) {
			return nil, asked
		}
		if locked.Held() {
			return nil, err // it is busy with something else than carrying the run on
		}
	}
}

func makeCancel(c *cobra.Command) {
	var runs runFlags
	var h hostFlags
	var reason, specDir string
	var undo bool
	c.RunE = func(c *cobra.Command, _ []string) error {
		s, err := newSession(c, &runs, &h)
		if err != nil {
			return err
		}
		request := executor.Request{Cancel: true, Undo: undo, Reason: reason}
		r, err := openOrAsk(s.dir, request, func() (*run.Run, *run.Report, error) { return s.open(false) })
		if r == nil {
			steps := "it stops its nodes, cleans up"
			if undo {
				steps = "it stops its nodes, undoes what it has done, cleans up"
			}
			text := "Asked the running process to cancel: " + steps + " and ends; " +
				"watch with: dagrun status --watch --output-dir " + s.dir
			return errors.Join(err, done(c, err, text))
		}
		return s.cancel(r, reason, specDir, undo)
	}
	runs.addState(c)
	h.add(c)
	addSpecDir(c, &specDir)
	c.Flags().StringVar(&reason, "reason", "cancelled by the user", "the reason to record")
	c.Flags().BoolVar(&undo, "undo", false, "undo what the run has done before it ends")
}

// cancel ends a run that no other process holds.
func (s *session) cancel(r *run.Run, reason, specDir string, undo bool) error {
	if status := r.State().Run().Status; status == machine.RunDone || status == machine.RunBroken && !undo {
		err := fmt.Errorf("the run in %s has already ended (%s); to start over: dagrun apply --fresh", s.dir, status)
		return errors.Join(err, r.Close())
	}
	if r.Graph().Plan.Outdated() { // clean-up would run
		return errors.Join(errOutdated(s.dir), r.Close())
	}
	now := time.Now()
	err := s.findOrigin(specDir)
	if err == nil { // in this order what has failed stays failed, for the clean-up to see
		err = s.resume(r, now, &machine.RunPausedBody{Reason: machine.PauseCancel, Message: reason, Undo: undo})
	}
	if err != nil {
		return errors.Join(err, r.Close())
	}
	err = s.carryOn(r)
	if errors.Is(err, exit(exitBad)) {
		return nil // it has failed, as was asked
	}
	return err
}
