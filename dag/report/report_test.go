package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/dagtest"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/disk/disktest"
)

var update = flag.Bool("update", false, "write the golden files of this package anew; read the diff")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

var start0 = time.Date(2026, 2, 28, 14, 23, 1, 234e6, time.UTC)

// The night plan has one of each thing that logs tell of.
func night(t testing.TB) *dag.Graph {
	t.Helper()
	labels := func(role, no string) map[string]string {
		return map[string]string{"role": role, "pass": no, "kind": "odd"}
	}
	p := &dag.Plan{
		Format: dag.Format, Name: "night", Title: "A bad night", Budget: dag.Budget{CapUSD: 100e6, WarnUSD: 2e6}, Categories: dagtest.Categories(),
		Breakers: []dag.Breaker{{Name: "api", Failures: 3, OpenFor: dag.Duration(time.Minute), Probes: 1, WhenOpen: "wait"}},
		Phases:   []dag.Phase{{Name: "Writing", Group: "writing"}, {Name: "Looking", Group: "looking"}},
		Nodes: []dag.Node{
			{ID: "b1", Kind: "agent", Title: "first", Effect: "idempotent", Paid: true, Labels: labels("builder", "1"), Group: "writing", Appends: []string{"notes", "finds"}, Reserve: dag.Amount{USD: 3e6}},
			{ID: "v1", Kind: "agent", Effect: "idempotent", Paid: true, Labels: labels("verifier", "2"), Group: "looking/deep", Needs: []string{"b1"}, Breaker: "api",
				Retry: dag.Retry{Attempts: 3, Base: dag.Duration(5 * time.Second), Factor: 2, Cap: dag.Duration(time.Minute)}},
			{ID: "soft", Kind: "exec", Effect: "pure", Needs: []string{"b1"}, OnFail: "continue", Group: "looking"},
			{ID: "never", Kind: "exec", Effect: "pure", Needs: []string{"v1", "soft"}, When: "false", Group: "looking"},
			{ID: "turn", Kind: "route", Effect: "pure", Labels: map[string]string{"round": "1"}, Needs: []string{"v1", "soft"}},
			{ID: "join", Kind: "join", Effect: "pure", Needs: []string{"turn", "never"}},
			{ID: "quiet", Kind: "exec", Effect: "pure", Needs: []string{"join"}},
			{ID: "save", Kind: "checkpoint", Effect: "pure", Needs: []string{"quiet"}},
			{ID: "b2", Kind: "agent", Effect: "idempotent", Paid: true, Labels: labels("builder", "3"), Group: "writing", Needs: []string{"save"}},
		},
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// outcomes are the ends of the attempts of the night, in order, by node; nodes without one complete.
func outcomes() map[string][]machine.Outcome {
	note := func(log, typ string, fields string) machine.Note {
		return machine.Note{Log: log, Type: typ, Fields: json.RawMessage(fields)}
	}
	return map[string][]machine.Outcome{
		"b1": {{Status: machine.StatusCompleted, Body: machine.FinishedBody{
			CostUSD: 1180000, CostKind: "reported", Usage: machine.Usage{Input: 35723, Output: 21858, CacheRead: 12},
			Values:   map[string]json.RawMessage{"model": []byte(`"m-1"`), "chars": []byte("85012"), "status": []byte(`"x"`)},
			Warnings: []string{"discovery entry \x1b[31mmissing"},
			Notes: []machine.Note{
				note("decision", "append-entry", `{"accumulator":"notes","chars":234}`),
				note("quality", "validation", `{"checks":5,"result":"pass","warnings":1}`),
			}}}},
		"v1": {
			{Status: machine.StatusFailed, Category: "flaky", Message: "exited with 1", Diagnostics: "stderr: Connection reset by peer", Body: machine.FinishedBody{CostUSD: 200000, CostKind: "assumed"}},
			{Status: machine.StatusCompleted, Body: machine.FinishedBody{CostUSD: 870000, CostKind: "reported", Usage: machine.Usage{Input: 42100, Output: 3200},
				Notes: []machine.Note{note("quality", "verifier-depth", `{"absent":2,"deeplyIntegrated":7,"surfaceLevel":3}`)}}},
		},
		"soft": {{Status: machine.StatusFailed, Category: "flaky", Message: "no\nluck", Permanent: true}},
		"turn": {{Status: machine.StatusCompleted, Body: machine.FinishedBody{Values: map[string]json.RawMessage{"score": []byte("2.6"), "decision": []byte(`"refine"`), "round": []byte("1")}}}},
	}
}

// A driver carries a run on with the outcomes of the night; time is its own.
type driver struct {
	r        *run.Run
	now      time.Time
	outcomes map[string][]machine.Outcome
	until    int64 // stop when this event is recorded; 0 = never
	together bool  // ends and what follows share one write
}

var errStop = errors.New("stopped by the test")

func (d *driver) record(bodies ...machine.Body) error {
	d.now = d.now.Add(250 * time.Millisecond)
	if d.together && d.until == 0 {
		_, err := d.r.Record(d.now, bodies...)
		return err
	}
	for _, b := range bodies {
		if _, err := d.r.Record(d.now, b); err != nil {
			return err
		}
		if d.until > 0 && d.r.Head().Seq >= d.until {
			return errStop
		}
	}
	return nil
}

func (d *driver) work() error {
	for {
		cmds, wake := d.r.State().Decide(d.now, 4)
		if len(cmds) == 0 && d.r.State().Run().Status == machine.RunRunning && !wake.IsZero() {
			d.now = wake
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
				bodies = append(bodies, &machine.FinishedBody{Node: c.Node, Generation: c.Generation, Status: machine.StatusSkipped, Final: true, Message: "when is false"})
			case machine.Start:
				bodies = append(bodies, &machine.StartedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt, Reserve: c.Reserve})
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
func (d *driver) end(node string) ([]machine.Body, error) {
	o := machine.Outcome{Status: machine.StatusCompleted}
	v, _ := d.r.State().NodeByID(node)
	if list := d.outcomes[node]; v.Failures < len(list) {
		o = list[v.Failures]
	}
	if node == "save" {
		d.now = d.now.Add(time.Second)
		if _, err := d.r.Checkpoint(d.now, "cp-1", node, nil); err != nil {
			return nil, err
		}
	}
	bodies := []machine.Body{d.r.State().Settle(node, o, d.now).Body}
	if node == "v1" && o.Status == machine.StatusFailed {
		bodies = append(bodies,
			&machine.BreakerChangedBody{Breaker: "api", State: "half-open", Counts: machine.Counts{Requests: 1, Failures: 1}, Cause: "rate_limited: \x07slow"})
	}
	if node == "v1" && o.Status == machine.StatusCompleted {
		bodies = append(bodies, &machine.BreakerChangedBody{Breaker: "api", State: "closed"},
			&machine.GateRunBody{Node: "b1", Gate: "fonts", Status: "fail", Details: json.RawMessage(`{"failed":2}`)})
	}
	return bodies, nil
}

// A disturbed run is a run with its logs.
type disturbed struct {
	t    testing.TB
	m    *disktest.Mem
	logs *Logs
	d    *driver
	warn []string
}

func options(m *disktest.Mem) run.Options {
	return run.Options{FS: m.FS(), Command: "test", Now: start0}
}

// begin creates the night's run, or opens it and resumes it.
func begin(t testing.TB, m *disktest.Mem) *disturbed {
	t.Helper()
	x := &disturbed{t: t, m: m, d: &driver{now: start0, outcomes: outcomes()}}
	x.logs = NewLogs(func(s string) { x.warn = append(x.warn, s) })
	o := options(m)
	o.Project = x.logs.Project
	r, err := run.Create(o, run.New{Graph: night(t), RunID: "run-1", Seed: 1})
	if errors.Is(err, os.ErrExist) {
		if r, _, err = run.Open(o); err == nil {
			x.d.now = r.State().Run().Updated
			err = r.Resume(x.d.now, "resume", nil)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	x.d.r = r
	x.logs.Start(r, o)
	return x
}

func (x *disturbed) finish() {
	x.t.Helper()
	if err := x.d.work(); err != nil {
		x.t.Fatal(err)
	}
	x.logs.Stop()
	if err := x.d.r.Close(); err != nil {
		x.t.Fatal(err)
	}
	if len(x.warn) > 0 {
		x.t.Error(x.warn)
	}
	if s := x.d.r.State().Run().Status; s != machine.RunDone {
		x.t.Fatalf("the run is %s", s)
	}
}

// whole is the night from its beginning to its end.
func whole(t testing.TB) *disturbed {
	t.Helper()
	x := begin(t, disktest.NewMem())
	x.finish()
	return x
}

func readLog(t testing.TB, m *disktest.Mem, name string) string {
	t.Helper()
	b, err := disk.ReadFile(m.FS(), run.Dir+"/"+run.LogsDir+"/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func allLogs(t testing.TB, m *disktest.Mem) string {
	t.Helper()
	s := ""
	for _, name := range LogNames {
		s += "-- " + name + " --\n" + readLog(t, m, name)
	}
	return s
}
