package dag

import (
	"testing"
	"time"
)

func TestPricesGoByTheWholePrompt(t *testing.T) {
	p := Price{Input: 1, Output: 10, CacheRead: 0.1, Step: &Step{Above: 200_000, Input: 2, Output: 15}}
	for _, c := range []struct {
		in, cached, out int64
		want            USD
	}{
		{100_000, 0, 1000, 110_000},
		{200_000, 0, 1000, 210_000},       // at the step is still below it
		{200_001, 0, 1000, 415_002},       // the step holds for the whole request
		{100_000, 150_000, 1000, 230_000}, // cached tokens count; no price of theirs above the step
	} {
		if got := p.Cost(Usage{Input: c.in, CacheRead: c.cached, Output: c.out}); got != c.want {
			t.Errorf("Cost(%d, %d, %d) = %d, want %d", c.in, c.cached, c.out, got, c.want)
		}
	}
	if got := (Price{Input: 3}).Cost(Usage{CacheRead: 1_000_000, CacheWrite: 1_000_000}); got != 6_000_000 {
		t.Errorf("without cache prices %d, want the input's: 6.00", got)
	}
}

func TestPriceLookupNeverGuesses(t *testing.T) {
	p := &Plan{Prices: []Price{{Model: "m", Input: 1}, {Model: "p/n", Input: 2}, {Model: "p/o"}, {Model: "q/o"}}}
	for model, want := range map[string]float64{"m": 1, "n": 2, "p/n": 2, "o": -1, "m-20260101": -1, "x/m": -1, "": -1} {
		got := -1.0
		if price, ok := PriceOf(p.Prices, model); ok {
			got = price.Input
		}
		if got != want {
			t.Errorf("PriceOf(%q) = %v, want %v", model, got, want)
		}
	}
}

func TestEstimates(t *testing.T) {
	usd := func(v float64) USD { u, _ := Dollars(v); return u }
	p := &Plan{
		Prices: []Price{{Model: "m", Input: 10, Output: 100}},
		Files:  []File{{Path: "f", Size: 3999}},
		Nodes: []Node{
			{Kind: "exec", Estimate: Estimate{Seconds: 4}, Retry: Retry{Attempts: 3}},
			{Kind: "agent", Paid: true, Call: &Call{Model: "m", Chars: 2, Files: []string{"f"}, MaxOutput: 1000}, Retry: Retry{Attempts: 2}},
			{Kind: "agent", Paid: true, Call: &Call{Model: "m", Chars: 4, Reads: []string{"page"}, MaxOutput: 1000}},
			{Kind: "agent", Paid: true, Call: &Call{Model: "?"}, Reserve: Amount{USD: usd(2)}, Retry: Retry{Attempts: 2}},
			{Kind: "agent", Paid: true},
			{Kind: "agent", Paid: true, Estimate: Estimate{USD: usd(1), Tokens: 50, Seconds: 10}, Reserve: Amount{USD: usd(3)},
				Retry: Retry{Attempts: 2}, Timeout: Timeout{Attempt: Duration(time.Minute)}},
		},
	}
	for i, want := range []struct {
		usd     [3]float64
		seconds [3]float64
		tokens  [3]int64
		known   bool
		from    string
	}{
		{seconds: [3]float64{4, 4, 12}, known: true, from: "free"},
		{usd: [3]float64{0.02001, 0.06001, 0.22002}, tokens: [3]int64{1101, 1501, 4002}, known: true, from: "priced"},
		{usd: [3]float64{0.01001, 0.05001, 0.30003}, tokens: [3]int64{101, 501, 3003}, from: "priced"},
		{usd: [3]float64{0, 2, 4}, tokens: [3]int64{200, 1000, 4000}, known: true, from: "reserve"},
		{tokens: [3]int64{200, 1000, 6000}, from: "reserve"},
		{usd: [3]float64{1, 1, 6}, seconds: [3]float64{10, 10, 120}, tokens: [3]int64{50, 50, 100}, known: true, from: "estimate"},
	} {
		got := NewEstimator(p).Node(&p.Nodes[i])
		if got.Known != want.known || got.From != want.from || got.Seconds != want.seconds || got.Tokens != want.tokens {
			t.Errorf("node %d: %+v, want %+v", i, got, want)
		}
		for k := range want.usd {
			if got.USD[k] != usd(want.usd[k]) {
				t.Errorf("node %d: %v USD, want %v", i, got.USD, want.usd)
				break
			}
		}
	}
}
