package dag

import (
	"testing"
	"time"
)

// One resolver says what goes before what: the node on the category, the table, the node, the default; a formula
// replaces delays and delays a formula; zero is a value (e-work/11).
func TestPolicyFor(t *testing.T) {
	second := func(n float64) *Duration { return new(Duration(n * float64(time.Second))) }
	none := Retry{Attempts: 3, Base: 0, Factor: 2, Cap: 0, Jitter: 0}
	list := Retry{Attempts: 3, Delays: []Duration{*second(20)}}
	tests := []struct {
		name  string
		node  Retry
		table *RetryChange
		on    *RetryChange
		want  Retry
		own   bool
	}{
		{name: "default", want: DefaultRetry},
		{name: "zero in on", on: &RetryChange{Base: second(0), Cap: second(0), Jitter: new(0.0)}, want: none, own: true},
		{name: "zero in the table", table: &RetryChange{Base: second(0), Cap: second(0), Jitter: new(0.0)}, want: none, own: true},
		{name: "zero over the table", table: &RetryChange{Base: second(60)}, on: &RetryChange{Base: second(0), Cap: second(0), Jitter: new(0.0)}, want: none, own: true},
		{name: "a formula replaces delays", node: list, on: &RetryChange{Factor: new(1.0), Cap: second(1), Jitter: new(0.0)},
			want: Retry{Attempts: 3, Factor: 1, Cap: *second(1)}, own: true},
		{name: "in the table too", node: list, table: &RetryChange{Cap: second(1)}, want: Retry{Attempts: 3, Cap: *second(1)}, own: true},
		{name: "a longest delay of zero", on: &RetryChange{Cap: second(0)}, want: Retry{Attempts: 3, Factor: 2, Jitter: 0.2}, own: true},
		{name: "a longest delay of zero, and of more for this category", table: &RetryChange{Cap: second(0)}, on: &RetryChange{Base: second(7), Cap: second(9)},
			want: Retry{Attempts: 3, Base: *second(7), Factor: 2, Cap: *second(9), Jitter: 0.2}, own: true},
		{name: "jitter alone does not", node: list, on: &RetryChange{Jitter: new(0.5)}, want: Retry{Attempts: 3, Jitter: 0.5, Delays: list.Delays}},
		{name: "delays replace a formula", table: &RetryChange{Delays: list.Delays},
			want: Retry{Attempts: 3, Base: DefaultRetry.Base, Factor: 2, Cap: DefaultRetry.Cap, Jitter: 0.2, Delays: list.Delays}, own: true},
	}
	for _, tt := range tests {
		n := Node{Retry: tt.node}
		if tt.on != nil {
			n.Retry.On = []CategoryPolicy{{Category: "other", Retry: RetryChange{Attempts: 9}}, {Category: "x", Retry: *tt.on}}
		}
		p := Plan{Categories: []Category{{Name: "x", Class: "hard", Retry: tt.table}}}
		got := p.PolicyFor(&n, "x")
		a, err := AppendJSON(nil, got.Retry)
		b, _ := AppendJSON(nil, tt.want)
		if err != nil || string(a) != string(b) || got.Own != tt.own || got.Class != "hard" {
			t.Errorf("%s: got %s own %v (%v), want %s own %v", tt.name, a, got.Own, err, b, tt.own)
		}
	}
}

// A plan keeps what is zero and what is not said apart (e-work/11).
func TestRetryChangeJSON(t *testing.T) {
	for _, want := range []string{`{}`, `{"base":"0s","cap":"0s","factor":1,"jitter":0}`, `{"delays":["1s"]}`} {
		var c RetryChange
		if err := DecodeJSON([]byte(want), &c); err != nil {
			t.Fatal(err)
		}
		if got, err := AppendJSON(nil, c); err != nil || string(got) != want {
			t.Errorf("%s became %s (%v)", want, got, err)
		}
	}
}
