package machine

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
)

// B-2: bookings that are read again after a crash count once. A booking is known by node, generation and
// attempt; a second one of the same attempt cannot have happened and is refused, and a line
// that was cut is none. (That the log takes a cut line off before it appends is dag/eventlog's test.)
func TestLedgerReplay(t *testing.T) {
	raw, err := os.ReadFile("testdata/ledger/ledger.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	reserve := dag.Amount{USD: 1_000_000}
	plan := &dag.Plan{Format: dag.Format, Name: "p", Budget: dag.Budget{CapUSD: 10_000_000}, Nodes: []dag.Node{
		{ID: "draft", Kind: "k", Effect: "idempotent", Reserve: reserve}, {ID: "review", Kind: "k", Effect: "idempotent", Reserve: reserve},
	}}
	g, err := dag.NewGraph(plan)
	if err != nil {
		t.Fatal(err)
	}
	var s State
	now, seq, ignored := time.UnixMilli(1_000_000), int64(0), 0
	apply := func(e Event) error {
		e.Seq = seq + 1
		err := s.Apply(&e)
		if err == nil {
			seq++
		}
		return err
	}
	must := func(e Event) {
		t.Helper()
		if err := apply(e); err != nil {
			t.Fatal(err)
		}
	}
	created := New(now, &RunCreatedBody{RunID: "run1", Name: "p", PlanDigest: plan.Digest(), Schema: 1, Seed: 1})
	created.Plan = g
	must(created)
	begun := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var booking struct {
			ID  string  `json:"id"`
			USD float64 `json:"usd"`
		}
		if json.Unmarshal([]byte(line), &booking) != nil {
			ignored++
			continue
		}
		node := strings.Split(booking.ID, "/")[1]
		if !begun[booking.ID] {
			begun[booking.ID] = true
			must(New(now, &StartedBody{Node: node, Generation: 1, Attempt: 1, Reserve: reserve}))
		}
		usd, _ := dag.Dollars(booking.USD)
		if apply(New(now, &FinishedBody{Node: node, Generation: 1, Attempt: 1, Status: dag.StatusCompleted, Final: true, CostUSD: usd, CostKind: dag.CostReported})) != nil {
			ignored++
		}
	}
	if l := s.Ledger(); l.Spent.USD.String() != "0.35" || l.Reserved != (dag.Amount{}) || ignored != 2 {
		t.Errorf("spent %s, reserved %v, %d lines ignored; want 0.35, nothing, 2", l.Spent.USD, l.Reserved, ignored)
	}
}
