// Package night is the run of a bad night: a plan, how its attempts end, and a driver that records it. Tests of what is
// made of events share it.
package night

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/testing/disktest"
	"dagrun.dev/internal/testing/hosttest"
)

// Start is when the night begins.
var Start = time.Date(2026, 2, 28, 14, 23, 1, 234e6, time.UTC)

// Plan has one of each thing that logs and views show.
func Plan(t testing.TB) *dag.Graph {
	t.Helper()
	labels := func(role, no string) map[string]string {
		return map[string]string{"role": role, "pass": no, "kind": "odd"}
	}
	p := &dag.Plan{
		Format: dag.Format, Name: "night", Title: "A bad night",
		Budget: dag.Budget{CapUSD: 100e6, WarnUSD: 2e6}, Categories: hosttest.Categories(),
		Breakers: []dag.Breaker{{Name: "api", Failures: 3, OpenFor: dag.Duration(time.Minute), Probes: 1, WhenOpen: "wait"}},
		Phases: []dag.Phase{
			{Name: "Writing", Group: "writing", Counts: &dag.Counted{Label: "pass", Unit: "passes"},
				Parts: &dag.Counted{Label: "pass", Unit: "Pass"}},
			{Name: "Looking", Group: "looking", Counts: &dag.Counted{Label: "round", Unit: "rounds"},
				Steps: &dag.Counted{Label: "role", Unit: "Round"}}},
		Nodes: []dag.Node{
			{ID: "b1", Kind: "agent", Title: "first", Short: "1: Builder", Effect: "idempotent", Paid: true,
				Labels: labels("builder", "1"), Group: "writing", Appends: []string{"notes", "finds"},
				Reserve: dag.Amount{USD: 3e6}},
			{ID: "v1", Kind: "agent", Effect: "idempotent", Paid: true,
				Labels: map[string]string{"role": "verifier", "pass": "2", "kind": "odd", "round": "1"},
				Group:  "looking/deep", Needs: []string{"b1"}, Breaker: "api",
				Retry: dag.Retry{Attempts: 3, Base: dag.Duration(5 * time.Second), Factor: 2, Cap: dag.Duration(time.Minute)}},
			{ID: "soft", Kind: "exec", Effect: "pure", Needs: []string{"b1"}, OnFail: "continue", Group: "looking"},
			{ID: "never", Kind: "exec", Effect: "pure", Needs: []string{"v1", "soft"}, When: "false", Group: "looking"},
			{ID: "turn", Kind: "route", Effect: "pure", Needs: []string{"v1", "soft"},
				Labels: map[string]string{"round": "1", "role": "route"}, Group: "looking",
				Show: &dag.Show{As: "round-score", Values: []string{"score", "limit", "decision"}}},
			{ID: "join", Kind: "join", Effect: "pure", Needs: []string{"turn", "never"}},
			{ID: "quiet", Kind: "exec", Effect: "pure", Needs: []string{"join"}},
			{ID: "save", Kind: "checkpoint", Effect: "pure", Needs: []string{"quiet"}},
			{ID: "b2", Kind: "agent", Effect: "idempotent", Paid: true, Labels: labels("builder", "3"),
				Group: "writing", Needs: []string{"save"}},
		},
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Outcomes are the ends of the attempts of the night, in order, by node; nodes without one complete.
func Outcomes() map[string][]machine.Outcome {
	note := func(log, typ string, fields string) machine.LogLine {
		return machine.LogLine{Log: log, Type: typ, Fields: json.RawMessage(fields)}
	}
	return map[string][]machine.Outcome{
		"b1": {{Status: dag.StatusCompleted, Body: machine.FinishedBody{
			CostUSD: 1180000, CostKind: "reported", Usage: machine.Usage{Input: 35723, Output: 21858, CacheRead: 12},
			Values:   map[string]json.RawMessage{"model": []byte(`"m-1"`), "chars": []byte("85012"), "status": []byte(`"x"`)},
			Warnings: []string{"discovery entry \x1b[31mmissing"},
			Notes: []machine.LogLine{
				note("decision", "append-entry", `{"accumulator":"notes","chars":234}`),
				note("quality", "validation", `{"checks":5,"result":"pass","warnings":1}`),
			}}}},
		"v1": {
			{Status: dag.StatusFailed, Category: "flaky", Message: "exited with 1",
				Diagnostics: "stderr: Connection reset by peer",
				Body:        machine.FinishedBody{CostUSD: 200000, CostKind: "assumed"}},
			{Status: dag.StatusCompleted, Body: machine.FinishedBody{
				CostUSD: 870000, CostKind: "reported", Usage: machine.Usage{Input: 42100, Output: 3200},
				Notes: []machine.LogLine{note("quality", "verifier-depth", `{"absent":2,"deeplyIntegrated":7,"surfaceLevel":3}`)}}},
		},
		"soft": {{Status: dag.StatusFailed, Category: "flaky", Message: "no\nluck", Permanent: true}},
		"turn": {{Status: dag.StatusCompleted, Body: machine.FinishedBody{Values: map[string]json.RawMessage{
			"score": []byte("2.6"), "limit": []byte("3.5"), "decision": []byte(`"refine"`), "round": []byte("1")}}}},
	}
}

// A Driver carries a run on with the outcomes of the night; time is its own.
type Driver struct {
	R        *run.Run
	Now      time.Time
	Outcomes map[string][]machine.Outcome
	Until    int64 // stop when this event is recorded; 0 = never
	Together bool  // ends and what follows share one write
}

// ErrStop says that the event Until is recorded.
var ErrStop = errors.New("stopped by the test")

func (d *Driver) record(bodies ...machine.Body) error {
	d.Now = d.Now.Add(250 * time.Millisecond)
	if d.Together && d.Until == 0 {
		_, err := d.R.Record(d.Now, bodies...)
		return err
	}
	for _, b := range bodies {
		if _, err := d.R.Record(d.Now, b); err != nil {
			return err
		}
		if d.Until > 0 && d.R.Head().Seq >= d.Until {
			return ErrStop
		}
	}
	return nil
}

// Work carries the run on until it ends, or to the event Until.
func (d *Driver) Work() error {
	for {
		d.R.State().Advance(d.Now)
		cmds, wake := d.R.State().Decide(d.Now, 4)
		if len(cmds) == 0 && d.R.State().Run().Status == machine.RunRunning && !wake.IsZero() {
			d.Now = wake
			continue
		}
		if len(cmds) == 0 {
			return nil
		}
		var bodies []machine.Body
		var ends []string
		for _, c := range cmds {
			switch c.Op {
			case machine.Record:
				bodies = append(bodies, c.Body)
			case machine.Evaluate:
				bodies = append(bodies, &machine.FinishedBody{Node: c.Node, Generation: c.Generation,
					Status: dag.StatusSkipped, Final: true, Message: "when is false"})
			case machine.Count: // the process died before it had answered
				bodies = append(bodies, &machine.BreakerChangedBody{Breaker: c.Breaker.Breaker.Name, State: "closed"})
			case machine.Start:
				bodies = append(bodies, &machine.StartedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt,
					Reserve: c.Reserve})
				ends = append(ends, c.Node)
			default:
				return fmt.Errorf("the test cannot carry out %+v", c)
			}
		}
		if err := d.record(bodies...); err != nil {
			return err
		}
		bodies = nil
		for _, node := range ends {
			body, err := d.end(node)
			if err != nil {
				return err
			}
			bodies = append(bodies, body...)
		}
		if err := d.record(bodies...); err != nil {
			return err
		}
	}
}

// end is what the end of a node's attempt leaves to record.
func (d *Driver) end(node string) ([]machine.Body, error) {
	o := machine.Outcome{Status: dag.StatusCompleted}
	v, _ := d.R.State().NodeByID(node)
	if list := d.Outcomes[node]; v.Failures < len(list) {
		o = list[v.Failures]
	}
	if node == "save" {
		d.Now = d.Now.Add(time.Second)
		if _, err := d.R.Checkpoint(d.Now, "cp-1", node, nil); err != nil {
			return nil, err
		}
	}
	bodies := []machine.Body{d.R.State().Settle(node, o, d.Now).Body}
	if node == "v1" && o.Status == dag.StatusFailed {
		bodies = append(bodies,
			&machine.BreakerChangedBody{Breaker: "api", State: "half-open",
				Counts: machine.Counts{Requests: 1, Failures: 1}, Cause: "rate_limited: \x07slow"})
	}
	if node == "v1" && o.Status == dag.StatusCompleted {
		bodies = append(bodies, &machine.BreakerChangedBody{Breaker: "api", State: "closed"},
			&machine.GateRunBody{Node: "b1", Gate: "fonts", Status: "fail", Details: json.RawMessage(`{"failed":2}`)})
	}
	return bodies, nil
}

// Options are those of the night's run.
func Options(m *disktest.Mem) run.Options {
	return run.Options{FS: m.FS(), Command: "test", Now: Start}
}

// Begin creates the night's run, or opens it and resumes it.
func Begin(t testing.TB, o run.Options) *Driver {
	t.Helper()
	d := &Driver{Now: Start, Outcomes: Outcomes()}
	r, err := run.Create(o, run.New{Graph: Plan(t), RunID: "run-1", Seed: 1})
	if errors.Is(err, os.ErrExist) {
		if r, _, err = run.Open(o); err == nil {
			d.Now = r.State().Run().Updated
			err = r.Resume(d.Now, "resume", nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	d.R = r
	return d
}

// Whole is the night from its beginning to its end, closed.
func Whole(t testing.TB, m *disktest.Mem) *Driver {
	t.Helper()
	d := Begin(t, Options(m))
	if err := errors.Join(d.Work(), d.R.Close()); err != nil {
		t.Fatal(err)
	}
	return d
}
