// Package schedule knows how long tasks take that wait for one another, without running them: it reads recorded
// workflows and schedules them as textbooks do, which is what tests and measurements compare with.
package schedule

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
)

// Read reads a recorded workflow (see testdata/workflows).
func Read(path string) (*Tasks, error) {
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
	return New(p, seconds)
}

// Tasks are what is to be scheduled.
type Tasks struct {
	Graph   *dag.Graph // with the seconds as its weights
	Seconds []float64  // of each node of the graph
}

// New returns the tasks of a plan; seconds are by id.
func New(p *dag.Plan, seconds map[string]float64) (*Tasks, error) {
	g, err := dag.NewGraph(p)
	if err != nil {
		return nil, err
	}
	x := &Tasks{Seconds: make([]float64, g.Len())}
	for i := range x.Seconds {
		x.Seconds[i] = seconds[g.Node(int32(i)).ID]
	}
	x.Graph = g.Reweigh(func(i int32) (float64, bool) { return x.Seconds[i], true })
	return x, nil
}

// Bound is what no schedule on so many slots is shorter than, in seconds: the critical path, or all the work shared
// evenly.
func (x *Tasks) Bound(slots int) (bound float64) {
	for _, s := range x.Seconds {
		bound += s / float64(slots)
	}
	for i := range x.Seconds {
		bound = max(bound, x.Graph.Rank(int32(i)))
	}
	return bound
}

// List is how long list scheduling takes in seconds: whenever a slot is free, the ready task of the highest rank
// starts.
func (x *Tasks) List(slots int, rank func(i int32) float64) (clock float64) {
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
