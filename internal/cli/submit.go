package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

// carriers are the commands that take another plan while they carry a run on.
var carriers = []string{"dagrun apply", "dagrun resume", "dagrun watch"}

// errHolderGone says that the process which held the run has ended or died meanwhile.
var errHolderGone = errors.New("the process that carried the run on has ended")

// handOver gives a plan to the process that holds the run. What is returned is that the run is locked, where that
// process does something else, is about to end (the run is paused), has this plan already, or does not answer.
func (s *session) handOver(locked *eventlog.Locked, res *compile.Result) error {
	if !slices.Contains(carriers, locked.Holder.Command) {
		return locked
	}
	if len(s.part.Rerun) > 0 {
		return fmt.Errorf("--rerun: process %d carries the run on; stop it first (Ctrl-C there pauses the run): %w",
			locked.Holder.PID, locked)
	}
	runs, err := s.preflight(res)
	if err != nil {
		return err
	}
	if !runs {
		return locked
	}
	next := executor.Submission{Graph: res.Graph, File: inputFile(res), SpecDir: res.Dir, Selected: s.selected()}
	taken, err := executor.Submit(s.dir, next, locked.Held)
	switch {
	case errors.Is(err, executor.ErrNoAnswer) && !locked.Held():
		return errHolderGone
	case errors.Is(err, executor.ErrNoAnswer), err == nil && taken.Same:
		return locked
	case err != nil:
		return err
	}
	if err := s.origin.write(s.dir); err != nil {
		return err
	}
	s.noteIdle()
	h := handover{s.dir, locked.Holder.PID, res.Plan.Digest(), taken}
	return show(s.cmd, h, h.writeText)
}

// noteIdle says which flags of this command line do nothing, because another process carries the run on.
func (s *session) noteIdle() {
	var idle []string
	for _, name := range []string{"jobs", "stop-after", "again", "seed", "quiet"} {
		if f := s.cmd.Flags().Lookup(name); f != nil && f.Changed {
			idle = append(idle, "--"+name)
		}
	}
	if len(idle) > 0 {
		s.warn("without effect here: " + strings.Join(idle, ", ") +
			"; the process that carries the run on keeps its own settings")
	}
}

// preflight finds out whether what would run under another plan can run on this machine, and whether the run goes on.
func (s *session) preflight(res *compile.Result) (runs bool, err error) {
	r, _, err := run.OpenReadOnly(s.runs.options(s.dir, s.name))
	if err != nil {
		return false, err
	}
	if r.State().Run().Status != machine.RunRunning {
		return false, r.Close()
	}
	d := r.Compare(res.Graph)
	if err = s.part.take(r.State(), d); err == nil {
		err = s.lookAhead(d, res.Dir)
	}
	return true, errors.Join(err, r.Close())
}

func (h *handover) writeText(out io.Writer) error {
	runs := "run"
	if h.Again == 1 {
		runs = "runs"
	}
	parts := report.Parts{fmt.Sprintf("%s %s again", report.Count(h.Again, "node"), runs)}
	parts.Add(h.Perhaps > 0, "%d perhaps", h.Perhaps)
	parts.Add(h.Kept > 0, "%d kept", h.Kept)
	parts.Add(h.Added > 0, "%d new", h.Added)
	parts.Add(h.Removed > 0, "%d removed", h.Removed)
	fmt.Fprintf(out, "handed the new plan to the running process %d: %s; watch with: dagrun status --output-dir %s\n",
		h.PID, strings.Join(parts, ", "), h.Dir)
	if len(h.Stopped) > 0 {
		fmt.Fprintf(out, "stops for it: %s\n", report.Plain(report.Some(h.Stopped)))
	}
	if len(h.Awaited) > 0 {
		fmt.Fprintf(out, "waits for attempts to end that cost money or must not be repeated: %s\n",
			report.Plain(report.Some(h.Awaited)))
	}
	return nil
}
