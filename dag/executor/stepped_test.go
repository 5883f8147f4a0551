package executor

import (
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// A clock that was two days ahead and is put right between two processes costs no two days: a backoff of ten minutes ends
// after ten minutes, the record never goes back in time, and verifies (R-2, B-4).
func TestClockPutBackBetweenProcesses(t *testing.T) {
	retry := dag.Retry{Attempts: 3, Base: dag.Duration(10 * time.Minute), Factor: 1}
	onStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", With: script("fail:transient", "ok"), Retry: retry}}}, func(s *stage) {
		const ahead = 48 * time.Hour
		interrupt := make(chan time.Time, 2)
		s.opts.Interrupt = interrupt
		time.AfterFunc(4*time.Minute, func() { interrupt <- time.Now() })
		g, err := dag.NewGraph(s.plan)
		if err != nil {
			t.Fatal(err)
		}
		o := s.options()
		o.Now = o.Now.Add(ahead)
		r, err := run.Create(o, run.New{Graph: g, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.run(r); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		s.opts.Interrupt = nil
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Fatalf("the run is %s", v.Status)
		}
		if took := time.Since(s.began); took > 11*time.Minute {
			t.Errorf("it took %v", took)
		}
		s.wantAt("start a.2", ahead+10*time.Minute, ahead+11*time.Minute)
		var last time.Time
		err = run.Walk(s.options(), 0, func(e *machine.Event, _ *machine.State) error {
			if e.Time.Before(last) {
				t.Errorf("event %d, %s, lies before the one before", e.Seq, e.Type)
			}
			last = e.Time
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		checks, err := run.Verify(s.options(), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range checks {
			if !c.Pass {
				t.Errorf("%s: %s", c.Name, c.Detail)
			}
		}
	})
}
