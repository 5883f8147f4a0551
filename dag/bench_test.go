package dag

import (
	"encoding/json"
	"fmt"
	"testing"
)

// bigPlan has layers of 1,000 nodes, each needing three nodes of the layer before.
func bigPlan(n int) *Plan {
	p := &Plan{Format: Format, Name: "big"}
	for i := range n {
		x := Node{ID: fmt.Sprintf("layer%d/node%d", i/1000, i), Kind: "exec", Effect: "idempotent", Pool: "cpu",
			With: json.RawMessage(`{"argv":["/bin/true"]}`), Writes: []string{fmt.Sprint("out/", i)}, Labels: map[string]string{"role": "x"}}
		if i >= 1000 {
			base := i/1000*1000 - 1000
			for k := range 3 {
				need := base + (i+k*7)%1000
				x.Needs = append(x.Needs, p.Nodes[need].ID)
				x.Reads = append(x.Reads, p.Nodes[need].Writes[0])
			}
		}
		p.Nodes = append(p.Nodes, x)
	}
	return p
}

// B-11: plans of 100,000 nodes are indexed, encoded and read in well under a second each.
func BenchmarkPlan100k(b *testing.B) {
	p := bigPlan(100_000)
	enc, err := p.Encode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("graph", func(b *testing.B) {
		for b.Loop() {
			if _, err := NewGraph(p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(enc)))
		for b.Loop() {
			if _, err := p.Encode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(enc)))
		for b.Loop() {
			if _, err := DecodePlan(enc); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// One accumulator that 50,000 unordered nodes append to and 100 later ones read.
func BenchmarkManyAppenders(b *testing.B) {
	p := &Plan{Format: Format}
	join := Node{ID: "join"}
	for i := range 50_000 {
		p.Nodes = append(p.Nodes, Node{ID: fmt.Sprint("a", i), Appends: []string{"log"}})
		join.Needs = append(join.Needs, p.Nodes[i].ID)
	}
	p.Nodes = append(p.Nodes, join)
	for i := range 100 {
		p.Nodes = append(p.Nodes, Node{ID: fmt.Sprint("r", i), Needs: []string{"join"}, Reads: []string{"log"}})
	}
	for b.Loop() {
		if _, err := NewGraph(p); err != nil {
			b.Fatal(err)
		}
	}
}
