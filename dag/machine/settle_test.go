package machine

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
)

func settled(t *testing.T, n dag.Node, failures int, o Outcome) (*FinishedBody, time.Duration) {
	t.Helper()
	n.ID, n.Kind = "a", "k"
	wait := dag.RetryChange{Base: new(dag.Duration(time.Minute)), Factor: new(2.0), Cap: new(dag.Duration(5 * time.Minute))}
	x := tell(t, &dag.Plan{Nodes: []dag.Node{n}, Categories: []dag.Category{
		{Name: "auth", Class: "hard", Then: "stop"}, {Name: "bad", Class: "structural", Then: "fail"},
		{Name: "quota", Class: "transient", Then: "wait"}, {Name: "rate", Class: "transient", Then: "retry", Attempts: 5, Retry: &wait}}})
	for k := range failures {
		x.apply(&StartedBody{Node: "a", Generation: 1, Attempt: k + 1}, &FinishedBody{Node: "a", Generation: 1, Attempt: k + 1, Status: dag.StatusFailed, Category: o.Category})
	}
	x.apply(&StartedBody{Node: "a", Generation: 1, Attempt: failures + 1, Reserve: n.Reserve})
	now := epoch.Add(time.Hour)
	o.Status = cmp.Or(o.Status, dag.StatusFailed)
	e := x.s.Settle("a", o, now)
	if again := x.s.Settle("a", o, now); again.Body.(*FinishedBody).RetryAt != e.Body.(*FinishedBody).RetryAt {
		t.Error("settled twice, two answers")
	}
	if err := x.s.Apply(&e); err != nil {
		t.Fatal(err)
	}
	b := e.Body.(*FinishedBody)
	at := b.RetryAt
	if at.IsZero() {
		at = b.WaitUntil
	}
	if at.IsZero() {
		return b, 0
	}
	return b, at.Sub(now)
}

// how long after which failure, and what ends a node at once.
func TestSettle(t *testing.T) {
	s := func(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
	lists := dag.Retry{Attempts: 5, Delays: []dag.Duration{dag.Duration(time.Second), dag.Duration(7 * time.Second)}}
	own := dag.Retry{Attempts: 2, Base: dag.Duration(time.Second), On: []dag.CategoryPolicy{
		{Category: "rate", Retry: dag.RetryChange{Attempts: 9, Base: new(dag.Duration(2 * time.Second)), Factor: new(3.0)}}, {Category: "x", Then: "fail"}}}
	tests := []struct {
		name     string
		retry    dag.Retry
		failures int
		o        Outcome
		want     string // retry, wait, stop, final
		min, max time.Duration
	}{
		{"first", dag.Retry{}, 0, Outcome{Category: "x"}, "retry", s(5), s(6)},
		{"second", dag.Retry{}, 1, Outcome{Category: "x"}, "retry", s(10), s(12)},
		{"third", dag.Retry{}, 2, Outcome{Category: "x"}, "final", 0, 0},
		{"rate limit", dag.Retry{}, 0, Outcome{Category: "rate"}, "retry", s(60), s(72)},
		{"fourth rate limit", dag.Retry{}, 3, Outcome{Category: "rate"}, "retry", s(300), s(360)},
		{"fifth rate limit", dag.Retry{}, 4, Outcome{Category: "rate"}, "final", 0, 0},
		{"permanent", dag.Retry{}, 0, Outcome{Category: "x", Permanent: true}, "final", 0, 0},
		{"by table", dag.Retry{}, 0, Outcome{Category: "bad"}, "final", 0, 0},
		{"by node", own, 0, Outcome{Category: "x"}, "final", 0, 0},
		{"delays of the node for a category", own, 2, Outcome{Category: "rate"}, "retry", s(18), s(18)},
		{"person", dag.Retry{}, 0, Outcome{Category: "auth"}, "stop", 0, 0},
		{"list", lists, 0, Outcome{Category: "x"}, "retry", s(1), s(1)},
		{"end of list", lists, 3, Outcome{Category: "x"}, "retry", s(7), s(7)},
		{"no attempts left", dag.Retry{Attempts: 1}, 0, Outcome{Category: "x"}, "final", 0, 0},
		{"retry after below the backoff", dag.Retry{}, 0, Outcome{Category: "x", RetryAfter: s(1)}, "retry", s(1), s(2)},
		{"retry after next to nothing", dag.Retry{}, 0, Outcome{Category: "x", RetryAfter: 20 * time.Millisecond}, "retry", s(0.5), s(1)},
		{"retry after", dag.Retry{}, 0, Outcome{Category: "x", RetryAfter: s(50)}, "retry", s(50), s(60)},
		{"retry after as long as the cap", dag.Retry{}, 0, Outcome{Category: "rate", RetryAfter: s(300)}, "retry", s(300), s(310)},
		{"retry after above the cap, and two attempts", dag.Retry{Attempts: 2}, 0, Outcome{Category: "x", RetryAfter: s(3600)}, "wait", s(3600), s(3600)},
		{"list of one", dag.Retry{Attempts: 5, Delays: lists.Delays[:1]}, 3, Outcome{Category: "x"}, "retry", s(1), s(1)},
		{"retry after above the cap", dag.Retry{}, 0, Outcome{Category: "x", RetryAfter: s(3600)}, "wait", s(3600), s(3600)},
		{"retry after of a year", dag.Retry{}, 0, Outcome{Category: "x", RetryAfter: 8760 * time.Hour}, "wait", 8760 * time.Hour, 8760 * time.Hour},
		{"negative retry after", dag.Retry{}, 0, Outcome{Category: "x", RetryAfter: -5}, "retry", s(5), s(6)},
		{"until", dag.Retry{}, 0, Outcome{Category: "quota", WaitUntil: epoch.Add(6 * time.Hour)}, "wait", 5 * time.Hour, 5 * time.Hour},
		{"until, any category", dag.Retry{}, 2, Outcome{Category: "x", WaitUntil: epoch.Add(6 * time.Hour)}, "wait", 5 * time.Hour, 5 * time.Hour},
		{"until a past instant", dag.Retry{}, 0, Outcome{Category: "quota", WaitUntil: epoch}, "wait", s(60), s(60)},
		{"until next year", dag.Retry{}, 0, Outcome{Category: "quota", WaitUntil: epoch.Add(9000 * time.Hour)}, "wait", 8999 * time.Hour, 8999 * time.Hour}, // X4: no "zero time"
		{"until the end of days", dag.Retry{}, 0, Outcome{Category: "quota", WaitUntil: epoch.AddDate(9000, 0, 0)}, "wait", farthest, farthest},
		{"retry after above the cap, and one attempt", dag.Retry{Attempts: 1}, 0, Outcome{Category: "x", RetryAfter: s(3600)}, "final", 0, 0},
		{"wait without an instant", dag.Retry{}, 0, Outcome{Category: "quota"}, "wait", s(60), s(72)},
	}
	for _, tt := range tests {
		b, d := settled(t, dag.Node{Retry: tt.retry}, tt.failures, tt.o)
		got := "now"
		switch {
		case b.Final:
			got = "final"
		case b.Stop:
			got = "stop"
		case !b.WaitUntil.IsZero():
			got = "wait"
		case !b.RetryAt.IsZero():
			got = "retry"
		}
		if got != tt.want || d < tt.min || d > tt.max {
			t.Errorf("%s: %s in %s; want %s in %s to %s", tt.name, got, d, tt.want, tt.min, tt.max)
		}
	}
}

func TestSettleKeepsMessagesShort(t *testing.T) {
	b, _ := settled(t, dag.Node{}, 0, Outcome{Category: "x", Message: "one\ntwo\r\nthree", Diagnostics: strings.Repeat("ü", 5000) + "end"})
	if b.Message != "one two three" || len([]rune(b.Diagnostics)) != 2000 || !strings.HasSuffix(b.Diagnostics, "üend") {
		t.Errorf("%q, %d characters", b.Message, len([]rune(b.Diagnostics)))
	}
}

func TestClipCountsCharacters(t *testing.T) {
	for _, n := range []int{1500, 2000} {
		b, _ := settled(t, dag.Node{}, 0, Outcome{Category: "x", Diagnostics: strings.Repeat("ü", n)})
		if len([]rune(b.Diagnostics)) != n {
			t.Errorf("%d of %d characters", len([]rune(b.Diagnostics)), n)
		}
	}
}

// An instant is never earlier than what was asked for, though it is kept in milliseconds.
func TestInstantsAreNotEarly(t *testing.T) {
	x := tell(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "k"}}})
	x.apply(&StartedBody{Node: "a", Generation: 1, Attempt: 1})
	for _, now := range []time.Time{epoch, epoch.Add(1), epoch.Add(999_999)} {
		for _, o := range []Outcome{{RetryAfter: time.Hour}, {WaitUntil: now.Add(time.Hour)}} {
			o.Status = dag.StatusFailed
			b := x.s.Settle("a", o, now).Body.(*FinishedBody)
			if late := b.WaitUntil.Sub(now) - time.Hour; late < 0 || late >= time.Millisecond {
				t.Errorf("%s late", late)
			}
		}
	}
}

// What was salvaged counts only where the node has failed for good; no other failure leaves values.
func TestSettleSalvaged(t *testing.T) {
	for _, tt := range []struct {
		o        Outcome
		salvaged int
		values   int
	}{
		{Outcome{Category: "x", Permanent: true, Body: FinishedBody{Salvaged: []string{"v"}, Values: raw("v", "1")}}, 1, 1},
		{Outcome{Category: "x", Body: FinishedBody{Salvaged: []string{"v"}, Values: raw("v", "1")}}, 0, 0},
		{Outcome{Status: dag.StatusLost, Body: FinishedBody{Salvaged: []string{"v"}, Values: raw("v", "1")}}, 0, 0},
		{Outcome{Category: "x", Body: FinishedBody{Values: raw("v", "1")}}, 0, 1},
	} {
		b, _ := settled(t, dag.Node{}, 0, tt.o)
		if len(b.Salvaged) != tt.salvaged || len(b.Values) != tt.values {
			t.Errorf("%+v: %s, %d values", tt.o, b.Salvaged, len(b.Values))
		}
	}
}

// Design 6: unknown cost is not zero: the reservation stands; zero is a cost when it is reported.
func TestSettleCost(t *testing.T) {
	n := dag.Node{Reserve: dag.Amount{USD: 5e5, Tokens: 100}}
	for _, tt := range []struct {
		status dag.Status
		in     FinishedBody
		cost   dag.USD
		kind   dag.CostKind
	}{
		{dag.StatusCompleted, FinishedBody{}, 5e5, dag.CostAssumed},
		{dag.StatusLost, FinishedBody{}, 5e5, dag.CostAssumed},
		{dag.StatusFailed, FinishedBody{CostKind: dag.CostReported}, 0, dag.CostReported},
		{dag.StatusFailed, FinishedBody{CostUSD: 3}, 3, dag.CostReported},
		{dag.StatusCompleted, FinishedBody{CostUSD: 4, CostKind: "priced"}, 4, "priced"},
		{dag.StatusRejected, FinishedBody{}, 0, ""},
		{dag.StatusSkipped, FinishedBody{}, 0, ""},
	} {
		b, _ := settled(t, n, 0, Outcome{Status: tt.status, Category: "x", Body: tt.in})
		if b.CostUSD != tt.cost || b.CostKind != tt.kind {
			t.Errorf("%s: %s %s; want %s %s", tt.status, b.CostUSD, b.CostKind, tt.cost, tt.kind)
		}
	}
}

// A node that is told to wait again and again stops for a person in the end.
func TestWaitsAreBounded(t *testing.T) {
	x := tell(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "k"}}})
	now := epoch
	for k := 1; ; k++ {
		x.apply(&StartedBody{Node: "a", Generation: 1, Attempt: k})
		e := x.s.Settle("a", Outcome{Status: dag.StatusFailed, Category: "x", WaitUntil: now.Add(time.Hour)}, now)
		if err := x.s.Apply(&e); err != nil {
			t.Fatal(err)
		}
		if v, _ := x.s.NodeByID("a"); v.Status == Stopped {
			if k != waitsMost+1 {
				t.Errorf("stopped after %d waits", k-1)
			}
			return
		}
		if k > 1000 {
			t.Fatal("waits for ever")
		}
		now = now.Add(time.Hour)
	}
}

// The jitter is spread over its whole range and differs between neighbours.
func TestJitterIsSpread(t *testing.T) {
	var low, high int
	for _, node := range strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w x y z") {
		x := tell(t, &dag.Plan{Nodes: []dag.Node{{ID: node, Kind: "k"}}})
		x.apply(&StartedBody{Node: node, Generation: 1, Attempt: 1})
		b := x.s.Settle(node, Outcome{Status: dag.StatusFailed}, epoch).Body.(*FinishedBody)
		switch d := b.RetryAt.Sub(epoch); {
		case d < 5*time.Second || d > 6*time.Second:
			t.Errorf("%s: %s", node, d)
		case d < 5250*time.Millisecond:
			low++
		case d > 5750*time.Millisecond:
			high++
		}
	}
	if low < 2 || high < 2 {
		t.Errorf("%d of 26 in the lowest quarter, %d in the highest", low, high)
	}
}
