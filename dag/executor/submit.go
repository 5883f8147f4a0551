package executor

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/dag/run"
)

// A Submission is another plan for a run that a host carries on.
type Submission struct {
	Graph   *dag.Graph
	File    run.OpenFile // opens the input files that the plan declares
	SpecDir string       // absolute folder of its specification
	// Selected says which part of it is to run, which command submits it, and which saved plan it is, if it is one.
	Selected machine.PartSelectedBody
}

// Taken says what a host makes of a submission. It is as of then: what ends meanwhile may change it.
type Taken struct {
	Same    bool     `json:"same,omitempty"`    // the run has this plan already
	Again   int      `json:"run_again"`         // nodes that have run and run again
	Perhaps int      `json:"perhaps,omitempty"` // nodes that do so only where what comes before them gives something else
	Kept    int      `json:"kept"`
	Added   int      `json:"added,omitempty"`
	Removed int      `json:"removed,omitempty"`
	Stopped []string `json:"stopped,omitempty"`   // nodes whose attempts are stopped for it
	Awaited []string `json:"waits_for,omitempty"` // nodes whose attempts it waits for: paid, or not to be repeated
}

func (h *host) submit(s *Submission, now time.Time) (Taken, error) {
	if status := h.state().Run().Status; status != machine.RunRunning {
		return Taken{}, fmt.Errorf("the run is %s: apply the plan once this process has ended", status)
	}
	if h.o.Evaluator == nil {
		return Taken{}, errors.New("this process takes no other plan")
	}
	if _, err := h.o.Evaluator(s.Graph.Plan); err != nil {
		return Taken{}, err
	}
	// That the run has this plan already is news only where nothing else is asked of it.
	news := h.state().Submitted() != nil || len(h.run.Selects(&s.Selected)) > 0
	d, err := h.run.Submit(now, &s.Selected, s.Graph, s.File)
	if err != nil {
		return Taken{}, err
	}
	h.nextDir = s.SpecDir
	return h.taken(d, news), nil
}

// taken counts what a comparison says. news is whether the submission changes anything under the plan in force.
func (h *host) taken(d *reuse.Diff, news bool) Taken {
	t := Taken{Same: d.Same && !news, Kept: d.Count(reuse.DoReuse),
		Added: d.Count(reuse.DoAdded), Removed: d.Count(reuse.DoRemoved)}
	t.Awaited = h.state().Holdup()
	for k := range d.Nodes {
		n := &d.Nodes[k]
		v, _ := h.state().NodeByID(n.ID)
		switch {
		case n.Returns:
			t.Removed, t.Perhaps = t.Removed-1, t.Perhaps+1
		case n.Maybe && n.Stale:
			t.Perhaps++
		case n.Again && n.Do != reuse.DoAdded && n.Do != reuse.DoRemoved:
			t.Again++
		case n.Do == reuse.DoRun && v.Status == machine.Running:
			t.Kept++
		}
		if n.Touched && v.Status == machine.Running && !slices.Contains(t.Awaited, n.ID) {
			t.Stopped = append(t.Stopped, n.ID)
		}
	}
	return t
}

// adoptSubmitted carries out machine.Adopt. Attempts under way are of nodes that the plan does not touch: they go on.
func (h *host) adoptSubmitted(now time.Time) error {
	g, err := h.run.SubmittedPlan()
	if err != nil {
		return err
	}
	if h.o.Evaluator == nil {
		return errors.New("a plan waits to be adopted, and this host cannot evaluate it")
	}
	eval, err := h.o.Evaluator(g.Plan)
	if err != nil {
		return err
	}
	if err := h.run.AdoptSubmitted(now); err != nil {
		return err
	}
	if h.state().Submitted() != nil {
		return nil // it touches more than was seen: asked again
	}
	h.o.Eval = eval
	if h.nextDir != "" && h.nextDir != h.o.SpecDir {
		h.o.SpecDir = h.nextDir
		if err := h.run.Beside(now, h.nextDir); err != nil {
			return err
		}
	}
	h.knowSecrets()
	return nil
}

// Submit hands a plan to the process that carries on the run in an output directory, and returns what that makes of it.
// held reports whether that process still holds the run. ErrNoAnswer: it did not take the plan.
func Submit(output string, s Submission, held func() bool) (Taken, error) {
	digest, err := run.Offer(run.Options{Dir: output}, s.Graph.Plan, s.File)
	if err != nil {
		return Taken{}, err
	}
	back, err := ask(output, message{Plan: digest, SpecDir: s.SpecDir, Selected: s.Selected}, held)
	if err != nil {
		return Taken{}, err
	}
	return *back.Taken, nil
}

// submission reads the plan that Submit has put into the run's store, with its input files.
func (m *message) submission(output string) (*Submission, error) {
	g, err := run.Offered(run.Options{Dir: output}, m.Plan)
	if err != nil {
		return nil, err
	}
	return &Submission{Graph: g, SpecDir: m.SpecDir, Selected: m.Selected, File: func(string) (io.ReadCloser, error) {
		return nil, errors.New("it was put into the store of the run, and is damaged there")
	}}, nil
}
