package dagtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/testing/hosttest"
)

// M8: 108 nodes that are ready at once ask one account, eight at a time. After five answers its limit is
// reached until five hours later. No more calls go into the closed account than were under way, one wait is
// recorded, one call goes first when it is over, and the others follow spread out.
func TestClosedAccount(t *testing.T) {
	const nodes, jobs, answers = 108, 8, 5
	p := &dag.Plan{Name: "m8", Categories: hosttest.Categories()}
	for i := range nodes {
		p.Nodes = append(p.Nodes, dag.Node{ID: fmt.Sprint("n", i), Kind: "fake", Effect: "idempotent", Account: "one", Reserve: dag.Amount{USD: 1}})
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	s := new(machine.State)
	now := Epoch
	record := func(b machine.Body) {
		e := machine.New(now, b)
		e.Plan = g
		if err := s.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	record(&machine.RunCreatedBody{RunID: "r", PlanDigest: "d"})
	reset := Epoch.Add(5 * time.Hour)
	type call struct {
		node string
		end  time.Time
	}
	var running []call
	var starts []time.Time // after the account was closed
	good, refused, waits := 0, 0, 0
	for s.Run().Status == machine.RunRunning {
		s.Advance(now)
		cmds, wake := s.Decide(now, jobs-len(running))
		for _, c := range cmds {
			if c.Op == machine.Record {
				record(c.Body)
				continue
			}
			record(&machine.StartedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt, Reserve: c.Reserve})
			running = append(running, call{c.Node, now.Add(10*time.Second + time.Duration(len(starts)%7)*time.Millisecond)})
			if refused > 0 {
				starts = append(starts, now)
			}
		}
		if len(cmds) > 0 {
			continue
		}
		slices.SortStableFunc(running, func(a, b call) int { return a.end.Compare(b.end) })
		if len(running) == 0 || !wake.IsZero() && wake.Before(running[0].end) {
			now = wake
			continue
		}
		now = running[0].end
		o := machine.Outcome{Status: dag.StatusCompleted}
		if good >= answers && now.Before(reset) {
			o = machine.Outcome{Status: dag.StatusFailed, Category: "quota", WaitUntil: reset}
			refused++
		} else {
			good++
		}
		e := s.Settle(running[0].node, o, now)
		if fin := e.Body.(*machine.FinishedBody); fin.Status == dag.StatusFailed {
			waits++
		}
		record(e.Body)
		running = running[1:]
	}
	if s.Run().Status != machine.RunDone || good != nodes || refused > jobs || waits != 1 {
		t.Errorf("%s: %d answers, %d refused calls, %d waits; want all nodes, at most %d, 1", s.Run().Status, good, refused, waits, jobs)
	}
	if len(starts) < 20 || starts[0].Before(reset) || starts[1].Sub(starts[0]) < 10*time.Second {
		t.Fatalf("starts after the limit: %v", starts[:min(5, len(starts))])
	}
	for i, at := range starts[2:20] {
		if gap := at.Sub(starts[i+1]); gap < time.Second {
			t.Errorf("start %d follows %s after the one before", i+2, gap)
		}
	}
}
