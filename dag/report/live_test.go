package report

import (
	"fmt"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/testing/disktest"
	"dagrun.dev/internal/testing/night"
)

// A look at a run of 10,000 nodes, and a drawing of it.
func BenchmarkLive(b *testing.B) {
	p := &dag.Plan{Format: dag.Format, Name: "big", Phases: []dag.Phase{{Name: "all", Group: "g", Counts: &dag.Counted{Label: "pass", Unit: "passes"}}}}
	for i := range 10000 {
		p.Nodes = append(p.Nodes, dag.Node{ID: fmt.Sprint("n", i), Kind: "exec", Effect: "pure", Group: "g",
			Labels: map[string]string{"role": fmt.Sprint("r", i%3)}, Estimate: dag.Estimate{Seconds: 1}})
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		b.Fatal(err)
	}
	r, err := run.Create(night.Options(disktest.NewMem()), run.New{Graph: g, RunID: "run-1", Seed: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Abandon()
	var s *Status
	b.Run("look", func(b *testing.B) {
		for range b.N {
			s = NewStatus(r, "out", night.Start)
		}
	})
	b.Run("draw", func(b *testing.B) {
		for range b.N {
			s.Later(night.Start).Live(100, 24)
		}
	})
}
