package executor

import (
	"context"
	"fmt"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/nodes"
)

// A payer is a paid kind that ends as its function says.
type payer func(t *nodes.Task) (*nodes.Result, error)

func (payer) Traits() nodes.Traits {
	return nodes.Traits{Effect: "idempotent", Paid: true, Prompt: &nodes.PromptEstimate{Model: "m"}}
}
func (p payer) Run(_ context.Context, t *nodes.Task) (*nodes.Result, error) { t.Begin(); return p(t) }

// M2, M3: what a service refused is free, what may have run keeps its reservation, and what was written to a
// cache for an hour has its own price. The ledger is the sum of the ends.
func TestCosts(t *testing.T) {
	zero, one := 0.0, 1.0
	used := nodes.Usage{Input: 1000, CacheWrite: 3000, CacheWriteHour: 1000, Output: 10}
	for _, tt := range []struct {
		name string
		res  *nodes.Result
		err  error
		kind dag.CostKind
		cost dag.USD
	}{
		{"refused", &nodes.Result{CostUSD: &zero}, nodes.Fail("refused", "401"), dag.CostFree, 0},
		{"nobody knows", &nodes.Result{}, nodes.Fail("refused", "cut"), dag.CostAssumed, 2_000_000},
		{"no result at all", nil, nodes.Fail("refused", "cut"), dag.CostAssumed, 2_000_000},
		{"paid and failed", &nodes.Result{CostUSD: &one}, nodes.Fail("refused", "no page"), dag.CostReported, 1_000_000},
		{"free of charge", &nodes.Result{CostUSD: &zero}, nil, dag.CostReported, 0},
		{"flat rate, failed", &nodes.Result{CostUSD: &zero, Usage: used}, nodes.Fail("refused", "no page"), dag.CostReported, 0},
		{"by the price table", &nodes.Result{Usage: used}, nil, "priced", 1000*3 + 2000*4 + 1000*6 + 10*15},
		{"a part was reported", &nodes.Result{Usage: used, LeastUSD: one}, nil, "priced", 1_000_000},
		{"a small part was reported", &nodes.Result{Usage: used, LeastUSD: 0.01}, nil, "priced", 17_150},
		{"a part was reported, the rest nobody knows", &nodes.Result{LeastUSD: 3}, nodes.Fail("refused", "cut"), dag.CostAssumed, 3_000_000},
		{"cut, with what was counted", &nodes.Result{Usage: used}, nodes.Fail("refused", "cut"), "priced", 17_150},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStage(t, &dag.Plan{Prices: []dag.Price{{Model: "m", Input: 3, CacheWrite: 4, Output: 15}},
				Nodes: []dag.Node{{ID: "a", Kind: "payer", Paid: true, Effect: "idempotent", OnFail: "continue", Reserve: dag.Amount{USD: 2_000_000}}}})
			s.kinds = []nodes.Kind{kindOf("payer", payer(func(*nodes.Task) (*nodes.Result, error) { return tt.res, tt.err }))}
			r := s.open()
			defer r.Close()
			if err := s.run(r); err != nil {
				t.Fatal(err)
			}
			v, _ := r.State().NodeByID("a")
			if v.Last == nil || v.Last.CostKind != tt.kind || v.Cost != tt.cost {
				t.Errorf("%+v, %s; want %s %s", v.Last, v.Cost, tt.kind, tt.cost)
			}
			if l := r.State().Ledger(); l.Spent.USD != tt.cost || l.Reserved.USD != 0 || tt.res != nil && l.Usage != dag.Usage(tt.res.Usage) {
				t.Errorf("ledger %+v, want %s", l, tt.cost)
			}
		})
	}
}

// What Task.Again says of a category is what then happens, whatever the table and the node say of it.
func TestAgainIsWhatFollows(t *testing.T) {
	categories := []dag.Category{
		{Name: "auth", Class: "hard", Then: "stop"},
		{Name: "bad_answer", Class: "structural", Then: "retry", Attempts: 2, Retry: &dag.RetryChange{Base: new(dag.Duration(time.Millisecond))}},
		{Name: "refused", Class: "hard", Then: "fail"},
	}
	for _, tt := range []struct {
		category string
		retry    dag.Retry
		attempts int
	}{
		{"bad_answer", dag.Retry{Attempts: 3}, 2},
		{"bad_answer", dag.Retry{Attempts: 1, Stated: true}, 1},
		{"bad_answer", dag.Retry{Attempts: 1, Stated: true, On: []dag.CategoryPolicy{{Category: "bad_answer", Retry: dag.RetryChange{Attempts: 3}}}}, 3},
		{"refused", dag.Retry{Attempts: 3}, 1},
		{"auth", dag.Retry{Attempts: 3}, 1},
		{"unheard_of", dag.Retry{Attempts: 2, Base: dag.Duration(time.Millisecond)}, 2},
	} {
		t.Run(fmt.Sprint(tt.category, tt.attempts), func(t *testing.T) {
			s := newStage(t, &dag.Plan{Categories: categories, Nodes: []dag.Node{{ID: "a", Kind: "payer", OnFail: "continue", Retry: tt.retry}}})
			var said []bool
			s.kinds = []nodes.Kind{kindOf("payer", payer(func(task *nodes.Task) (*nodes.Result, error) {
				said = append(said, task.Again(tt.category))
				return nil, nodes.Fail(tt.category, "no")
			}))}
			r := s.open()
			defer r.Close()
			if err := s.run(r); err != nil {
				t.Fatal(err)
			}
			if len(said) != tt.attempts {
				t.Fatalf("%d attempts, want %d", len(said), tt.attempts)
			}
			for i, again := range said {
				if again != (i < len(said)-1) {
					t.Errorf("attempt %d of %d was told %v", i+1, len(said), again)
				}
			}
		})
	}
}
