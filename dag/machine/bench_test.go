package machine

import (
	"fmt"
	"testing"
	"time"

	"dagrun.dev/dag"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// drive runs a plan of no-op nodes through the machine with so many workers, all attempts taking
// no time, and returns the events.
func drive(tb testing.TB, g *dag.Graph, workers int) (*State, int) {
	tb.Helper()
	s := new(State)
	events := 0
	apply := func(b Body, plan *dag.Graph) {
		e := New(epoch, b)
		e.Plan = plan
		if err := s.Apply(&e); err != nil {
			tb.Fatal(err)
		}
		events++
	}
	apply(&RunCreatedBody{RunID: "r", Name: g.Plan.Name, PlanDigest: "d", Schema: 1}, g)
	started := make([]Command, 0, workers)
	for {
		s.Advance(epoch)
		cmds, wake := s.Decide(epoch, workers)
		if len(cmds) == 0 {
			if s.Run().Status != RunDone {
				tb.Fatalf("stands still at %+v, wake %v", s.Run(), wake)
			}
			return s, events
		}
		started = started[:0]
		for _, c := range cmds {
			switch c.Op {
			case Record:
				apply(c.Body, nil)
			case Start:
				apply(&StartedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt, Reserve: c.Reserve}, nil)
				started = append(started, c)
			default:
				tb.Fatalf("unexpected command %+v", c)
			}
		}
		for _, c := range started {
			e := s.Settle(c.Node, Outcome{Status: dag.StatusCompleted}, epoch)
			if err := s.Apply(&e); err != nil {
				tb.Fatal(err)
			}
			events++
		}
	}
}

func mustGraph(tb testing.TB, p *dag.Plan) *dag.Graph {
	tb.Helper()
	p.Format = dag.Format
	g, err := dag.NewGraph(p)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

func layered(n, width int) *dag.Plan {
	p := &dag.Plan{Name: "layered"}
	for i := range n {
		x := dag.Node{ID: fmt.Sprint("node", i), Kind: "noop", Effect: "pure"}
		if i >= width {
			base := i/width*width - width
			for k := range 3 {
				x.Needs = append(x.Needs, p.Nodes[base+(i+k*7)%width].ID)
			}
		}
		p.Nodes = append(p.Nodes, x)
	}
	return p
}

func chain(n int) *dag.Plan {
	p := &dag.Plan{Name: "chain"}
	for i := range n {
		x := dag.Node{ID: fmt.Sprint("node", i), Kind: "noop", Effect: "pure"}
		if i > 0 {
			x.Needs = []string{p.Nodes[i-1].ID}
		}
		p.Nodes = append(p.Nodes, x)
	}
	return p
}

func fan(n int) *dag.Plan {
	p := &dag.Plan{Name: "fan", Nodes: []dag.Node{{ID: "root", Kind: "noop"}}}
	last := dag.Node{ID: "join", Kind: "noop"}
	for i := range n {
		p.Nodes = append(p.Nodes, dag.Node{ID: fmt.Sprint("node", i), Kind: "noop", Needs: []string{"root"}})
		last.Needs = append(last.Needs, fmt.Sprint("node", i))
	}
	p.Nodes = append(p.Nodes, last)
	return p
}

// B-11: cost per node stays flat from 1,000 to 100,000 nodes, whatever the shape.
func BenchmarkNoop(b *testing.B) {
	for _, c := range []struct {
		name string
		plan *dag.Plan
	}{
		{"layered/1000", layered(1000, 100)}, {"layered/10000", layered(10_000, 100)}, {"layered/100000", layered(100_000, 100)},
		{"chain/1000", chain(1000)}, {"chain/10000", chain(10_000)}, {"chain/100000", chain(100_000)},
		{"fan/1000", fan(1000)}, {"fan/10000", fan(10_000)}, {"fan/100000", fan(100_000)},
	} {
		g := mustGraph(b, c.plan)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				drive(b, g, 8)
			}
			b.ReportMetric(float64(g.Len())*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(g.Len())/float64(b.N), "ns/node")
		})
	}
}

func TestDeepAndWide(t *testing.T) {
	for _, p := range []*dag.Plan{chain(10_000), fan(10_000), layered(5000, 50)} {
		s, events := drive(t, mustGraph(t, p), 4)
		if want := 2*len(p.Nodes) + 2; events != want || s.Count(Completed) != len(p.Nodes) {
			t.Errorf("%s: %d events, %d completed; want %d, %d", p.Name, events, s.Count(Completed), want, len(p.Nodes))
		}
	}
}
