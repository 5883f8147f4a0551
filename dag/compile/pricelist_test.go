package compile

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"dagrun.dev/dag"
)

func readPrices(t *testing.T, name string) (priceList, [][]string) {
	t.Helper()
	raw, err := os.ReadFile("testdata/prices/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	l, err := readPriceList(raw)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("testdata/prices/" + name + ".tsv")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
		rows = append(rows, strings.Split(line, "\t"))
	}
	return l, rows
}

// What a public list holds besides models: explanations, rules, models without a token price, prices per
// million by mistake. R-7
func TestPriceListTraps(t *testing.T) {
	l, rows := readPrices(t, "traps")
	for _, row := range rows {
		p, ok, why := l.price(row[1], row[0])
		got := "unknown"
		if ok {
			got = fmt.Sprintf("%v / %v", p.Input/1e6, p.Output/1e6)
		}
		switch want := row[2]; {
		case strings.Contains(want, "refused"):
			if ok || !strings.Contains(why, "dollars for one token") {
				t.Errorf("%v: %s, %q", row, got, why)
			}
		case strings.Contains(want, "accepted or skipped"):
			if !ok || got != "1e-06 / 1e-05" {
				t.Errorf("%v: %s, %q", row, got, why)
			}
		case !strings.HasPrefix(want, got):
			t.Errorf("%v: %s, %q", row, got, why)
		}
	}
	if _, _, why := l.price("q", "model-image"); !strings.Contains(why, "no price per token") {
		t.Errorf("%q", why)
	}
	if _, err := readPriceList([]byte("[]")); err == nil {
		t.Error("a list that is no object was read")
	}
	aliased, _ := readPriceList([]byte(`{"m":{"aliases":["m-20260101"],"litellm_provider":"p","input_cost_per_token":1e-7,"output_cost_per_token":2e-6,"x":{}}}`))
	if p, ok, _ := aliased.price("p", "m-20260101"); !ok || p.Input != 0.1 || p.Output != 2 || p.Model != "m-20260101" {
		t.Errorf("alias: %+v %v", p, ok)
	}
	for _, bad := range []string{`-1`, `"x"`, `1e999`, `"NaN"`, `true`, `{}`} {
		l, err := readPriceList([]byte(`{"m":{"input_cost_per_token":` + bad + `,"output_cost_per_token":1e-6}}`))
		if err != nil {
			t.Fatal(err)
		}
		if p, ok, why := l.price("", "m"); ok || why == "" {
			t.Errorf("%s: %+v", bad, p)
		}
	}
}

// M3: lists name the price of what is kept in the cache for an hour.
func TestPriceListOfAnHour(t *testing.T) {
	l, err := readPriceList([]byte(`{"m":{"input_cost_per_token":3e-6,"output_cost_per_token":1.5e-5,"cache_creation_input_token_cost":3.75e-6,
		"cache_creation_input_token_cost_above_1hr":6e-6,"input_cost_per_token_above_200k_tokens":6e-6,"cache_creation_input_token_cost_above_1hr_above_200k_tokens":1.2e-5}}`))
	if err != nil {
		t.Fatal(err)
	}
	if p, ok, why := l.price("", "m"); !ok || p.CacheWrite != 3.75 || p.CacheWriteHour != 6 || p.Step == nil || p.Step.CacheWriteHour != 12 {
		t.Errorf("%+v %+v, %s", p, p.Step, why)
	}
}

// The step of a list goes by all tokens of the prompt and holds for the whole request.
func TestPriceListStep(t *testing.T) {
	l, rows := readPrices(t, "step")
	p, ok, why := l.price("p", "model-a")
	if !ok {
		t.Fatal(why)
	}
	n := func(s string) int64 { v, _ := strconv.ParseInt(s, 10, 64); return v }
	for _, row := range rows {
		if got := p.Cost(dag.Usage{Input: n(row[0]), CacheRead: n(row[1]), Output: n(row[2])}).Float(); fmt.Sprint(got) != row[3] {
			t.Errorf("%v: %v", row, got)
		}
	}
}
