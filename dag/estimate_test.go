package dag

import "testing"

// M4: what a prompt reads is as long as the node that writes it may answer; an accumulator grows with those that
// append to it, up to its cap. The money is the price of the model, whatever the specification estimates, and the
// specification's estimate where there is no price.
func TestEstimatesReadWhatOthersWrite(t *testing.T) {
	call := func(model string, most int64, reads ...string) *Call {
		return &Call{Model: model, Chars: 400, MaxOutput: most, Reads: reads}
	}
	p := &Plan{
		Prices:       []Price{{Model: "cheap", Input: 1, Output: 5}, {Model: "dear", Input: 5, Output: 25}},
		Accumulators: []Accumulator{{Name: "notes", Cap: 1}},
		Nodes: []Node{
			{ID: "page", Paid: true, Call: call("cheap", 1000), Writes: []string{"page"}, Appends: []string{"notes"}},
			{ID: "shot", Writes: []string{"shot"}, Appends: []string{"notes"}},
			{ID: "cheap", Paid: true, Call: call("cheap", 100, "page"), Estimate: Estimate{USD: 9e6}},
			{ID: "dear", Paid: true, Call: call("dear", 100, "page"), Estimate: Estimate{USD: 9e6}},
			{ID: "unpriced", Paid: true, Call: call("other", 100, "page"), Estimate: Estimate{USD: 9e6}},
			{ID: "notes", Paid: true, Call: call("cheap", 100, "notes")},
			{ID: "shots", Paid: true, Call: call("cheap", 100, "shot")},
			{ID: "nobody", Paid: true, Call: call("cheap", 100, "nowhere")},
			{ID: "total", Paid: true, Call: call("cheap", 100), Estimate: Estimate{Tokens: 1100}, Retry: Retry{Attempts: 1, Stated: true}},
		},
		Categories: []Category{{Name: "again", Then: "retry", Attempts: 4}},
	}
	e := NewEstimator(p)
	for i, want := range []struct {
		usd   [3]USD // 4 attempts at most
		from  string
		known bool
	}{
		2: {[3]USD{100 + 100 + 50, 100 + 500 + 250, 4 * (100 + 1000 + 500)}, "priced", true},
		3: {[3]USD{5 * 250, 5 * 850, 5 * 4 * 1600}, "priced", true},
		4: {[3]USD{9e6, 9e6, 4 * 9e6}, "estimate", true},
		5: {[3]USD{100 + 50, 100 + 250 + 250, 4 * (100 + 500 + 500)}, "priced", true},
		6: {[3]USD{100 + 200 + 50, 100 + 1000 + 250, 4 * (100 + 2000 + 500)}, "priced", true},
		7: {[3]USD{150, 350, 4 * 600}, "priced", false},
		8: {[3]USD{100 + 5000, 100 + 5000, 100 + 5000}, "priced", true},
	} {
		if want.from == "" {
			continue
		}
		if r := e.Node(&p.Nodes[i]); r.USD != want.usd || r.From != want.from || r.Known != want.known {
			t.Errorf("%s: %v %s, known %v; want %v %s, known %v", p.Nodes[i].ID, r.USD, r.From, r.Known, want.usd, want.from, want.known)
		}
	}
}

// M3: what is kept for an hour has a price of its own; without one it is twice the input price, above a step that of
// the step.
func TestCacheWritesOfAnHour(t *testing.T) {
	u := Usage{Input: 10, CacheRead: 20, CacheWrite: 30, CacheWriteHour: 20, Output: 1}
	for _, c := range []struct {
		name string
		p    Price
		want USD
	}{
		{"no price of its own", Price{Input: 4, CacheRead: 1, CacheWrite: 5, Output: 20}, 40 + 20 + 10*5 + 20*8 + 20},
		{"one of its own", Price{Input: 4, CacheRead: 1, CacheWrite: 5, CacheWriteHour: 7, Output: 20}, 40 + 20 + 10*5 + 20*7 + 20},
		{"above a step", Price{Input: 4, CacheWrite: 5, CacheWriteHour: 7, Output: 20, Step: &Step{Above: 50, Input: 8, CacheWriteHour: 16}}, 80 + 160 + 10*5 + 20*16 + 20},
		{"nothing costs nothing", Price{}, 0},
	} {
		if got := c.p.Cost(u); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if got := (Price{Input: 1}).Cost(Usage{CacheWrite: 5, CacheWriteHour: 50}); got != 10 {
		t.Errorf("more for an hour than there is: %d", got)
	}
}
