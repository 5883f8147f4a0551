package dagtest

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dagrun.dev/dag"
)

// readTasks reads a recorded workflow (see testdata/workflows).
func readTasks(path string) (*taskSet, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p := &dag.Plan{Format: dag.Format, Name: filepath.Base(path)}
	seconds := map[string]float64{}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line) // the run time, then the numbers of the parents
		n := dag.Node{ID: strconv.Itoa(len(p.Nodes)), Kind: "task", Needs: fields[1:]}
		if seconds[n.ID], err = strconv.ParseFloat(fields[0], 64); err != nil {
			return nil, fmt.Errorf("%s: task %s: %w", path, n.ID, err)
		}
		p.Nodes = append(p.Nodes, n)
	}
	return newTasks(p, seconds)
}

// A taskSet is tasks that wait for one another, with how long they take.
type taskSet struct {
	Graph   *dag.Graph // with the seconds as its weights
	Seconds []float64  // of each node of the graph
}

// newTasks returns the tasks of a plan; seconds are by id.
func newTasks(p *dag.Plan, seconds map[string]float64) (*taskSet, error) {
	g, err := dag.NewGraph(p)
	if err != nil {
		return nil, err
	}
	x := &taskSet{Seconds: make([]float64, g.Len())}
	for i := range x.Seconds {
		x.Seconds[i] = seconds[g.Node(int32(i)).ID]
	}
	x.Graph = g.Reweigh(func(i int32) (float64, bool) { return x.Seconds[i], true })
	return x, nil
}

// bound is what no schedule on so many slots is shorter than, in seconds: the critical path, or all the work shared
// evenly.
func (x *taskSet) bound(slots int) (least float64) {
	for _, s := range x.Seconds {
		least += s / float64(slots)
	}
	for i := range x.Seconds {
		least = max(least, x.Graph.Rank(int32(i)))
	}
	return least
}

// list is how long list scheduling takes in seconds: whenever a slot is free, the ready task of the highest rank
// starts.
func (x *taskSet) list(slots int, rank func(i int32) float64) (clock float64) {
	type end struct {
		at   float64
		task int32
	}
	var ready []int32
	var running []end
	open := make([]int, x.Graph.Len())
	for i := range open {
		if open[i] = len(x.Graph.Needs(int32(i))); open[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	for len(ready)+len(running) > 0 {
		slices.SortFunc(ready, func(a, b int32) int {
			return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(a, b))
		})
		for len(ready) > 0 && len(running) < slots {
			running = append(running, end{clock + x.Seconds[ready[0]], ready[0]})
			ready = ready[1:]
		}
		slices.SortFunc(running, func(a, b end) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.task, b.task))
		})
		clock = running[0].at
		for _, d := range x.Graph.Dependents(running[0].task) {
			if open[d]--; open[d] == 0 {
				ready = append(ready, d)
			}
		}
		running = running[1:]
	}
	return clock
}

// The recorded workflows have the lower bounds that their README states, and list scheduling keeps them.
func TestRecordedWorkflows(t *testing.T) {
	for name, want := range map[string]struct {
		scale, bound float64
	}{
		"rnaseq-dirt02": {0.008, 6.08}, "atacseq-dirt02": {0.006, 5.85},
		"soykb-chameleon-10fastq-10ch": {0.002, 5.86}, "srasearch-chameleon-50a": {0.0008, 6.59},
	} {
		x, err := readTasks("../../../testdata/workflows/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		bound, list := want.scale*x.bound(8), want.scale*x.list(8, x.Graph.Rank)
		if math.Abs(bound-want.bound) > 0.01 || list < bound-1e-6 || list > 1.3*bound {
			t.Errorf("%s: bound %.3f, want %.2f; list scheduling takes %.3f", name, bound, want.bound, list)
		}
	}
}
