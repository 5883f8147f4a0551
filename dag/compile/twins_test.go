package compile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A map with an order, printed as JSON, as flow YAML or as CUE.
type ordered []pair

type pair struct {
	name  string
	value any
}

func (o ordered) write(b *strings.Builder, cue bool, r *rand.Rand, fixed bool) {
	fields := append(ordered{}, o...)
	if !fixed {
		r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	}
	b.WriteString("{\n")
	for i, f := range fields {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(b, "%q: ", f.name)
		write(b, f.value, cue, r, f.name == "nodes" || f.name == "vars")
	}
	if cue && r.IntN(4) == 0 {
		b.WriteString(" // a comment\n")
	}
	b.WriteString("}")
}

func write(b *strings.Builder, v any, cue bool, r *rand.Rand, fixed bool) {
	switch v := v.(type) {
	case ordered:
		v.write(b, cue, r, fixed)
	case []any:
		b.WriteString("[")
		for i, x := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			write(b, x, cue, r, false)
		}
		b.WriteString("]")
	default:
		s, _ := json.Marshal(v)
		b.Write(s)
	}
}

// specOf makes a random valid pipeline.
func specOf(r *rand.Rand) ordered {
	maybe := func(o ordered, name string, v any) ordered {
		if r.IntN(3) == 0 {
			o = append(o, pair{name, v})
		}
		return o
	}
	nodes := ordered{}
	for i := range 1 + r.IntN(6) {
		kind := []string{"sh", "ask"}[r.IntN(2)]
		with := ordered{{"values", ordered{{"x", "int"}, {"s", "string"}}}}
		with = maybe(with, "n", r.IntN(100))
		with = maybe(with, "cmd", []string{"a", "${params.who}", "é <&> \u2028 \"q\" \\", "$${HOME}", "1.10", "yes"}[r.IntN(6)])
		with = maybe(with, "model", "gpt-5-mini")
		with = maybe(with, "list", []any{"b", "", "${params.who}-${params.n}"})
		with = maybe(with, "m", ordered{{"z", 1}, {"a", []any{true, nil, 2.5, -3, 1e21, 1e-7, 9007199254740991}}, {"é", ordered{}}})
		node := ordered{{"kind", kind}, {"with", with}}
		if i > 0 {
			prev := fmt.Sprintf("n%d", i-1)
			node = maybe(node, "needs", []any{prev})
			node = maybe(node, "when", fmt.Sprintf("nodes['%s'].status == 'completed' || params.n > 3", prev))
		}
		node = maybe(node, "labels", ordered{{"b", true}, {"a", 3}, {"c", "x"}})
		node = maybe(node, "retry", ordered{{"attempts", "${params.n}"}, {"base", "90s"}})
		node = maybe(node, "timeout", "1h30m")
		node = maybe(node, "reserve", ordered{{"usd", 0.1}, {"tokens", 10}})
		node = maybe(node, "onFail", "continue")
		node = maybe(node, "writes", []any{fmt.Sprintf("out/%d.txt", i)})
		nodes = append(nodes, pair{fmt.Sprintf("n%d", i), node})
	}
	p := ordered{
		{"name", "twin"},
		{"params", ordered{{"who", ordered{{"type", "string"}, {"default", "me"}}}, {"n", ordered{{"type", "int"}, {"default", 1 + r.IntN(5)}}}}},
		{"nodes", nodes},
	}
	p = maybe(p, "budget", ordered{{"capUSD", 12.5}, {"wall", "2h"}})
	p = maybe(p, "pools", ordered{{"b", 2}, {"a", 3}})
	p = maybe(p, "defaults", ordered{{"*", ordered{{"labels", ordered{{"d", "e"}}}, {"timeout", ordered{{"total", "9h"}}}}}, {"ask", ordered{{"onFail", "skip"}}}})
	p = maybe(p, "foreach", []any{ordered{
		{"axes", []any{ordered{{"as", "i"}, {"in", 1 + r.IntN(3)}}, ordered{{"as", "c"}, {"in", []any{"x", "y"}}}}},
		{"vars", ordered{{"z", "i.n * 2"}, {"a", "z + 1"}}},
		{"id", "f/${c.key}${i.n}"},
		{"node", ordered{{"kind", "sh"}, {"with", ordered{{"n", "${a}"}, {"cmd", "${params.who} ${c.value}"}}}, {"labels", ordered{{"i", "${i.n}"}}}}},
	}})
	return p
}

// The same pipeline in CUE, YAML and JSON, whatever the order of fields, is the same plan.
func TestTwinsAreOnePlan(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		spec := specOf(r)
		dir := t.TempDir()
		digests := map[string]string{}
		for _, name := range []string{"a.yaml", "b.json", "c.cue", "d.cue"} {
			var b strings.Builder
			switch name {
			case "c.cue":
				b.WriteString("import \"dagrun.dev/spec\"\n\npipeline: spec.#Pipeline & ")
				spec.write(&b, true, r, false)
			case "d.cue":
				b.WriteString("pipeline: ")
				spec.write(&b, true, r, false)
			default:
				b.WriteString("{\"pipeline\": ")
				spec.write(&b, false, r, false)
				b.WriteString("}")
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			res, err := compileIn(dir, name)
			if err != nil {
				t.Fatalf("seed %d, %s: %v\n%s", seed, name, err, b.String())
			}
			digests[res.Plan.Digest()] += " " + name
		}
		if len(digests) != 1 || digests[""] != "" {
			t.Fatalf("seed %d: several plans: %v", seed, digests)
		}
	}
}
