package executor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/nodes"
)

// A caller is a kind whose answer comes in while nobody is left to read it: it spools what its settings
// say and then hangs until it is stopped.
type caller struct{ asked chan string }

func (*caller) Traits() nodes.Traits {
	return nodes.Traits{Effect: "idempotent", Paid: true}
}

func (c *caller) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	if t.Attempt > 1 {
		return &nodes.Result{}, nil
	}
	if err := os.WriteFile(filepath.Join(t.Spool, "answer"), t.With, 0o600); err != nil {
		return nil, err
	}
	c.asked <- t.Spool
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*caller) Rescue(_ context.Context, t *nodes.Task) (*nodes.Result, error) {
	b, err := os.ReadFile(filepath.Join(t.Spool, "answer"))
	if err != nil {
		return nil, nil
	}
	var with struct{ Answer string }
	if err := json.Unmarshal(b, &with); err != nil {
		return nil, err
	}
	usd := 0.5
	switch with.Answer {
	case "whole":
		return &nodes.Result{CostUSD: &usd}, nil
	case "refused":
		return &nodes.Result{CostUSD: &usd}, nodes.Fail("refused", "it said no")
	case "head": // M6: the stream's head had told what the prompt used
		return &nodes.Result{Usage: nodes.Usage{Input: 1000, Output: 10}, Model: "m"}, nodes.Fail("lost", "the answer was cut after 40 characters")
	case "panic":
		panic("what was left is damaged")
	}
	return nil, nil
}

// What an attempt had received when its process ended at once ends it on resume, as it would have
// ended: with its result and its failure, and with its cost. What proves nothing is lost, and its
// reservation stands. S-5, B-2
func TestRescue(t *testing.T) {
	for _, tt := range []struct {
		answer string
		status dag.Status
		kind   dag.CostKind
		cost   dag.USD
	}{
		{"whole", dag.StatusCompleted, dag.CostReported, 500_000},
		{"refused", dag.StatusFailed, dag.CostReported, 500_000},
		{"head", dag.StatusLost, dag.CostAssumed, 3150},
		{"half", dag.StatusLost, dag.CostAssumed, 2_000_000},
		{"panic", dag.StatusLost, dag.CostAssumed, 2_000_000},
	} {
		t.Run(tt.answer, func(t *testing.T) {
			with, _ := json.Marshal(map[string]string{"answer": tt.answer})
			s := newStage(t, &dag.Plan{Prices: []dag.Price{{Model: "m", Input: 3, Output: 15}}, Nodes: []dag.Node{{ID: "a", Kind: "caller", Paid: true, Effect: "idempotent", With: with, Reserve: dag.Amount{USD: 2_000_000}}}})
			c := &caller{asked: make(chan string, 1)}
			s.kinds = []nodes.Kind{kindOf("caller", c)}
			interrupt := make(chan time.Time)
			s.opts.Interrupt = interrupt
			spool := ""
			go func() {
				spool = <-c.asked
				interrupt <- time.Now()
				interrupt <- time.Now()
			}()
			r := s.open()
			if err := s.run(r); !errors.Is(err, ErrHard) {
				t.Fatal(err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			r = s.open()
			defer r.Close()
			for _, b := range s.bodies {
				if fin, ok := b.(*machine.FinishedBody); ok && (fin.Status != tt.status || fin.CostKind != tt.kind || fin.CostUSD != tt.cost) {
					t.Errorf("%s, %s %s; want %s, %s %s", fin.Status, fin.CostKind, fin.CostUSD, tt.status, tt.kind, tt.cost)
				}
			}
			if v, _ := r.State().NodeByID("a"); v.Cost != tt.cost {
				t.Errorf("spent %s, want %s", v.Cost, tt.cost)
			}
			if _, err := os.Stat(spool); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the spool is still there: %v", err)
			}
		})
	}
}
