package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
)

func makeApply(c *cobra.Command) {
	var runs runFlags
	var specs specFlags
	var h hostFlags
	var fresh, again bool
	var seed int64
	var part partFlags
	var ticks tickFlags
	c.RunE = func(c *cobra.Command, args []string) error {
		saved, args, err := savedPlan(args, &runs, &specs)
		if err != nil {
			return err
		}
		res, kinds, err := specs.compile(args)
		if err != nil {
			return err
		}
		s := &session{cmd: c, name: "apply", runs: &runs, host: &h, kinds: kinds, specDir: res.Dir}
		s.dir = runs.forPipeline(res.Plan.Name)
		if s.origin, err = newOrigin(s.dir, res); err != nil {
			return err
		}
		s.part = part
		if saved != nil {
			if part.chosenNow() {
				return errors.New("a saved plan contains what of it is to run: leave out --only, --from, --until and --rerun")
			}
			s.part.Part, s.saved = saved.Part, saved
			if err := s.checkSaved(res, fresh); err != nil {
				return err
			}
		}
		if !c.Flags().Changed("seed") {
			seed = res.Plan.Seed
		}
		if err := ticks.valid(c, res.Plan, saved != nil); err != nil {
			return err
		}
		one := func(s *session, res *compile.Result) error {
			defer func() { fresh, again = false, false }() // that is how the first tick begins
			return s.apply(res, fresh, again, seed)
		}
		if res.Plan.Ticks == nil {
			return one(s, res)
		}
		return s.tickByTick(res, ticks, one, specs.anew(args))
	}
	runs.addState(c)
	specs.add(c)
	h.add(c)
	part.add(c)
	ticks.add(c)
	c.Flags().BoolVar(&fresh, "fresh", false, "archive the run that exists and start a new one")
	c.Flags().BoolVar(&again, "again", false, "resume a run that has failed for good or was cancelled")
	c.Flags().Int64Var(&seed, "seed", 0, "seed of a new run (default: the specification's, else random)")
}

// apply creates the run or goes on with it under the plan as it is now.
func (s *session) apply(res *compile.Result, fresh, again bool, seed int64) error {
	s.plan = res.Plan
	for _, w := range res.Warnings {
		s.warn(w.Error())
	}
	if fresh && run.Exists(s.dir) {
		s.endLeft()
		var outside []string
		if r, _, err := run.OpenReadOnly(s.options()); err == nil { // which run a damaged one is nobody knows
			outside = executor.Outside(r, "")
			r.Close()
		}
		to, err := run.Archive(s.options())
		if err != nil {
			return err
		}
		for _, dir := range outside {
			if err := disk.RemoveAll(dir); err != nil {
				s.warn(err.Error())
			}
		}
		s.note("archived the previous run as " + filepath.Join(s.dir, to))
	}
	if !fresh && !again {
		if err := s.putAway(); err != nil {
			return err
		}
	}
	left, err := s.leftToday(time.Now())
	if err != nil {
		return err
	}
	begins := !run.Exists(s.dir)
	if begins {
		s.warn(inTheWay(s.dir, res.Plan)...)
		err = s.mayBegin(res)
	}
	if err != nil {
		return err
	}
	r, err := s.enter(res, &begins, seed)
	for locked, last := (*eventlog.Locked)(nil), (eventlog.Holder{}); errors.As(err, &locked); last = locked.Holder {
		if err := s.handOver(locked, res); err == nil || locked.Held() || locked.Holder == last {
			return err // else another process has the lock by now, or nobody
		}
		r, err = s.enter(res, &begins, seed)
	}
	putAway := !begins && errors.Is(err, fs.ErrNotExist) && !run.Exists(s.dir) // by another process, since
	if putAway || errors.Is(err, errFresh) {
		return s.apply(res, !putAway, again, seed)
	}
	if err != nil {
		return err
	}
	if !begins {
		err = s.adopt(r, res, again)
	}
	if err == nil && !s.nothing {
		err = s.limitToday(r, left)
	}
	if err != nil || s.nothing {
		return errors.Join(err, r.Close())
	}
	return s.carryOn(r)
}

// mayBegin holds what a new run would do against this machine and against the plan that was saved for it.
func (s *session) mayBegin(res *compile.Result) error {
	d := reuse.Fresh(res.Graph)
	if err := s.part.take(nil, d); err != nil {
		return err
	}
	if err := s.lookAhead(d, res.Dir); err != nil {
		return err
	}
	return s.usePlan(s.selected().SavedPlan, false)
}

// enter begins the run, or opens it: begins says which, and is set to false where another process has begun it since.
func (s *session) enter(res *compile.Result, begins *bool, seed int64) (*run.Run, error) {
	if *begins = *begins && !run.Exists(s.dir); !*begins {
		r, _, err := s.open(false)
		return r, err
	}
	for seed == 0 {
		seed = rand.Int64N(1 << 53) // what JSON holds exactly
	}
	sel := s.selected()
	o := s.options()
	s.crash.live = true
	r, err := run.Create(o, run.New{Graph: res.Graph, Seed: seed, File: inputFile(res), Selected: &sel})
	if errors.Is(err, fs.ErrExist) && run.Exists(s.dir) {
		return s.enter(res, begins, seed)
	}
	return r, err
}

// putAway makes room for the next tick where the last has ended.
func (s *session) putAway() error {
	if s.plan.Ticks == nil || !run.Exists(s.dir) {
		return nil
	}
	o := s.runs.options(s.dir, s.name)
	_, err := run.PutAway(o)
	if locked := (*eventlog.Locked)(nil); errors.As(err, &locked) {
		return nil // apply hands the plan to the process that carries it on
	}
	return err
}

// adopt brings a run under a plan and makes it ready to go on; it sets s.nothing when there is
// nothing to do.
func (s *session) adopt(r *run.Run, res *compile.Result, again bool) error {
	status := r.State().Run().Status
	d := r.Compare(res.Graph)
	if err := s.part.take(r.State(), d); err != nil {
		return err
	}
	if d.Same {
		if err := r.PutBack(res.Plan, inputFile(res)); err != nil {
			return err
		}
	} else {
		s.warn(takesOver(s.dir, res)...)
	}
	failed := status == machine.RunBroken && !again
	done := d.Same && status == machine.RunDone && len(s.part.Rerun) == 0
	switch {
	case (done || failed) && len(r.State().Notices()) > 0:
		return nil // who was not told of its end is
	case done:
		s.rest(r)
		return errors.Join(executor.Sweep(r, ""), s.end(report.NewStatus(r, s.dir, time.Now()), nil))
	case failed:
		s.rest(r)
		return errFailed(s.dir, r.State().Run().Failed)
	}
	if err := s.lookAhead(d, res.Dir); err != nil {
		return err
	}
	if err := s.usePlan(s.selected().SavedPlan, false); err != nil {
		return err
	}
	now := time.Now()
	sel := s.selected()
	if bodies := r.Selects(&sel); len(bodies) > 0 {
		if err := r.RecordDurable(now, bodies...); err != nil {
			return err
		}
	}
	if err := r.Beside(now, s.specDir); err != nil {
		return err
	}
	rescue := executor.Adopt(r, s.kinds, s.evaluator, secret, now)
	if status == machine.RunBroken { // what was cancelled is decided anew before the plans are compared
		if err := r.Resume(now, s.name, rescue); err != nil {
			return err
		}
	}
	if _, err := r.Adopt(now, res.Graph, inputFile(res), rescue); err != nil {
		return err
	}
	if status == machine.RunBroken {
		return nil
	}
	return s.resume(r, now)
}

// savedPlan reads the saved plan that an argument may name, and takes the specification and its
// parameters from it.
func savedPlan(args []string, runs *runFlags, specs *specFlags) (*report.Plan, []string, error) {
	if len(args) == 0 {
		return nil, args, nil
	}
	p, err := report.ReadPlan(args[0])
	if err != nil {
		if errors.Is(err, report.ErrNotAPlan) || errors.Is(err, fs.ErrNotExist) {
			return nil, args, nil // a specification, or for the compiler to complain about
		}
		return nil, nil, err
	}
	if specs.pipeline != "" || len(specs.set)+len(specs.values) > 0 {
		return nil, nil, errors.New("a saved plan contains its parameters: leave out --set, --values and --pipeline")
	}
	specs.pipeline, specs.set, specs.values = p.Source.Pipeline, p.Source.Set, p.Source.Values
	if runs.dir == "" {
		runs.dir = p.Run.Dir
	}
	if p.Source.Spec == "" {
		return p, nil, nil
	}
	return p, []string{p.Source.Spec}, nil
}

// checkSaved refuses a saved plan that is not what would be applied now: it is bound to its run's directory, to the run
// and the specification as they were, and is used once.
func (s *session) checkSaved(res *compile.Result, fresh bool) error {
	p := s.saved
	if p.ID == "" {
		return errors.New("an earlier version of the program saved this plan: make it again (dagrun plan SPEC -o FILE)")
	}
	here, err := filepath.Abs(s.dir)
	planned, wrong := filepath.Abs(p.Run.Dir)
	if errors.Join(err, wrong) != nil || here != planned {
		return fmt.Errorf("the saved plan was made for a run in %s: leave out --output-dir, or make a plan for %s: "+
			"dagrun plan %s -o FILE --output-dir %s", p.Run.Dir, s.dir, cmp.Or(p.Source.Spec, "SPEC"), s.dir)
	}
	if fresh {
		return errors.New("a saved plan is for the run as it is, and --fresh starts over: leave out one of them")
	}
	ref := report.RunRef{}
	if run.Exists(s.dir) {
		r, _, err := run.OpenReadOnly(run.Options{Dir: s.dir, Command: "dagrun apply", Now: time.Now()})
		if err != nil {
			return err
		}
		ref = report.RunRef{ID: r.ID(), Seq: r.Head().Seq, Hash: r.Head().Hash}
		v := r.State().Run()
		if err := r.Close(); err != nil {
			return err
		}
		switch {
		case !slices.Contains(v.SavedPlans, p.ID):
		case v.PlanDigest == p.Digest:
			return usedPlan(s.dir, v.Created)
		default: // the process that recorded it died before the run had the plan
			ref.Seq, ref.Hash = p.Run.Seq, p.Run.Hash
		}
	}
	if d := res.Plan.Digest(); d != p.Digest {
		return fmt.Errorf("the saved plan is stale: the specification, or a file that it takes in, has changed since "+
			"(plan %.12s, now %.12s)", p.Digest, d)
	}
	if ref.ID != p.Run.ID && p.Run.ID != "" {
		return fmt.Errorf("the saved plan is stale: it was made for another run than that in %s", s.dir)
	}
	if ref.ID != p.Run.ID || ref.Seq != p.Run.Seq || ref.Hash != p.Run.Hash {
		return fmt.Errorf("the saved plan is stale: the run in %s has changed since (event %d, now %d)",
			s.dir, p.Run.Seq, ref.Seq)
	}
	return nil
}

// carriers are the commands that take another plan while they carry a run on.
var carriers = []string{"dagrun apply", "dagrun resume", "dagrun watch"}

// mostPassing is how long apply waits for a process that begins or ends the run.
const mostPassing = 10 * time.Second

// handOver gives a plan to the process that holds the run. What is returned is that the run is locked, where that
// process does something else, only waits for attempts (the run is paused), has this plan already, or does not answer.
// Where it holds the run no more, no error means anything: who opens the run clears the store of what is half written,
// and a run that has ended may be put away.
func (s *session) handOver(locked *eventlog.Locked, res *compile.Result) error {
	if !slices.Contains(carriers, locked.Holder.Command) {
		return locked
	}
	if len(s.part.Rerun) > 0 {
		return fmt.Errorf("--rerun: process %d carries the run on; stop it first (Ctrl-C there pauses the run): %w",
			locked.Holder.PID, locked)
	}
	at, err := s.preflight(res)
	for asked := time.Now(); (errors.Is(err, fs.ErrNotExist) || at.Ended()) && time.Since(asked) < mostPassing; {
		if !locked.Held() {
			return locked
		}
		time.Sleep(20 * time.Millisecond)
		at, err = s.preflight(res)
	}
	if err != nil {
		return err
	}
	if at != machine.RunRunning {
		return locked
	}
	s.warn(takesOver(s.dir, res)...)
	next := executor.Submission{Graph: res.Graph, File: inputFile(res), SpecDir: res.Dir, Selected: s.selected()}
	taken, err := executor.Submit(s.dir, next, locked.Held)
	switch {
	case errors.Is(err, executor.ErrNoAnswer), err == nil && taken.Same:
		return locked
	case err != nil:
		return err
	}
	if err := s.origin.write(s.dir); err != nil {
		return err
	}
	s.noteIdle()
	return show(s.cmd, handover{s.dir, locked.Holder.PID, res.Plan.Digest(), taken})
}

// noteIdle says which flags of this command line do nothing, because another process carries the run on.
func (s *session) noteIdle() {
	var idle report.Parts
	for _, name := range []string{"jobs", "stop-after", "again", "seed", "quiet"} {
		idle.Add(s.cmd.Flags().Changed(name), "--%s", name)
	}
	if len(idle) > 0 {
		s.warn("without effect here: " + strings.Join(idle, ", ") +
			"; the process that carries the run on keeps its own settings")
	}
}

// preflight returns where the run stands. Of one that is carried on it finds out whether what would run under another
// plan can run on this machine.
func (s *session) preflight(res *compile.Result) (machine.RunStatus, error) {
	r, _, err := run.OpenReadOnly(s.runs.options(s.dir, s.name))
	if err != nil {
		return "", err
	}
	at := r.State().Run().Status
	if at != machine.RunRunning {
		return at, r.Close()
	}
	d := r.Compare(res.Graph)
	if err = s.part.take(r.State(), d); err == nil {
		err = s.lookAhead(d, res.Dir)
	}
	return at, errors.Join(err, r.Close())
}
