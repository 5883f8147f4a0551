package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/dag/run"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/exec"
)

// noop is a kind of node that does nothing.
type noop struct{}

func (noop) Traits() nodes.Traits {
	return nodes.Traits{Effect: "pure"}
}
func (noop) Run(context.Context, *nodes.Task) (*nodes.Result, error) { return &nodes.Result{}, nil }

// benchPlan is a plan of n nodes in layers of width, each needing up to three of the layer before;
// width 0 is one root with all others after it.
func benchPlan(n, width int, node dag.Node) *dag.Plan {
	p := &dag.Plan{Format: dag.Format, Name: "bench"}
	for i := range n {
		node := node
		node.ID = fmt.Sprintf("n%06d", i)
		switch {
		case width == 0 && i > 0:
			node.Needs = []string{"n000000"}
		case width > 0 && i >= width:
			for k := range 3 {
				node.Needs = append(node.Needs, fmt.Sprintf("n%06d", i/width*width-width+(i+k)%width))
			}
		}
		p.Nodes = append(p.Nodes, node)
	}
	return p
}

func benchRun(b *testing.B, p *dag.Plan, jobs int) {
	for b.Loop() {
		dir := b.TempDir()
		g, err := dag.NewGraph(p)
		if err != nil {
			b.Fatal(err)
		}
		r, err := run.Create(run.Options{Dir: dir, Command: "bench", Now: time.Now()}, run.New{Graph: g, Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		eval, err := expr.New(p)
		if err != nil {
			b.Fatal(err)
		}
		err = Run(context.Background(), Options{Run: r, Kinds: nodes.NewRegistry(kindOf("noop", noop{}), exec.Kind), Eval: eval, Jobs: jobs, SpecDir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if v := r.State().Run(); v.Status != "completed" {
			b.Fatalf("%+v", v)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(p.Nodes)), "µs/node")
}

// BenchmarkTrue runs 10,000 /bin/true two at a time with the durable log on.
func BenchmarkTrue(b *testing.B) {
	node := dag.Node{Kind: "exec", Effect: "idempotent", With: json.RawMessage(`{"argv":["/bin/true"]}`)}
	for _, c := range []struct {
		name  string
		width int
	}{{"fan", 0}, {"layered", 100}} {
		b.Run(c.name, func(b *testing.B) { benchRun(b, benchPlan(10_000, c.width, node), 2) })
	}
}

// BenchmarkNoop runs nodes that do nothing: what the host and the durable log take.
func BenchmarkNoop(b *testing.B) {
	node := dag.Node{Kind: "noop", Effect: "pure"}
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchRun(b, benchPlan(n, 100, node), 2) })
	}
}
