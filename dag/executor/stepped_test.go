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

// A clock that is put two hours ahead, and a machine that sleeps for a night, use up none of the budget of a run nor the
// total time of a node; what is recorded says so, and folds to the same.
func TestClockPutAheadWhileNodesRun(t *testing.T) {
	p := &dag.Plan{Budget: dag.Budget{Wall: dag.Duration(time.Minute)}, Nodes: []dag.Node{
		{ID: "a", With: script("sleep:30s"), Timeout: dag.Timeout{Total: dag.Duration(40 * time.Second), Attempt: dag.Duration(35 * time.Second)}},
		{ID: "b", Needs: []string{"a"}, With: script("sleep:20s")},
	}}
	onStage(t, p, func(s *stage) {
		s.opts.readClock = func() (time.Time, time.Duration) {
			gone := time.Since(s.began)
			wall := time.Now()
			if gone >= 10*time.Second {
				wall = wall.Add(2 * time.Hour)
			}
			if gone >= 35*time.Second {
				wall = wall.Add(8 * time.Hour)
			}
			return wall, gone
		}
		v := s.carryOn()
		if v.Status != machine.RunDone {
			t.Fatalf("the run is %s: %s", v.Status, v.Pause.Message)
		}
		if v.Active < 50*time.Second || v.Active > 53*time.Second {
			t.Errorf("it was active for %v", v.Active)
		}
		st, _, err := run.Replay(s.options(), false)
		if err != nil {
			t.Fatal(err)
		}
		if again := st.Run(); again.Active != v.Active {
			t.Errorf("active for %v, replayed %v", v.Active, again.Active)
		}
	})
}

// A clock that is put ahead after the host went to sleep does not have it sleep longer than what is due then: a retry
// after a second comes after a second, whatever the clock says of the instant at which the host is to wake by itself.
func TestClockPutAheadBeforeARetry(t *testing.T) {
	p := &dag.Plan{Nodes: []dag.Node{
		{ID: "first", With: script("sleep:10s")},
		{ID: "a", Needs: []string{"first"}, With: script("fail:transient", "ok"),
			Retry: dag.Retry{Attempts: 3, Base: dag.Duration(time.Second), Factor: 1}},
		{ID: "b", With: script("sleep:2m")},
	}}
	onStage(t, p, func(s *stage) {
		const ahead = 2 * time.Hour
		s.opts.readClock = func() (time.Time, time.Duration) {
			gone := time.Since(s.began)
			if gone >= 5*time.Second {
				return time.Now().Add(ahead), gone
			}
			return time.Now(), gone
		}
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Fatalf("the run is %s: %s", v.Status, v.Pause.Message)
		}
		s.wantAt("start a.2", ahead+11*time.Second, ahead+12*time.Second)
	})
}
