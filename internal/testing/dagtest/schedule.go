package dagtest

import (
	"container/heap"
	"fmt"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Makespan runs a plan through the machine in virtual time: slots workers, node i taking
// seconds[i], the weights of g deciding what starts first. It returns how long the run takes.
func Makespan(g *dag.Graph, slots int, seconds []float64) (float64, error) {
	s := new(machine.State)
	apply := func(e machine.Event) error { return s.Apply(&e) }
	e := machine.New(Epoch, &machine.RunCreatedBody{RunID: "r", PlanDigest: "d"})
	e.Plan = g
	if err := apply(e); err != nil {
		return 0, err
	}
	var ends endHeap
	clock := 0.0
	for {
		at := Epoch.Add(time.Duration(clock * float64(time.Second)))
		s.Advance(at)
		cmds, _ := s.Decide(at, slots-len(ends))
		for _, c := range cmds {
			if c.Op == machine.Record {
				if err := apply(machine.New(at, c.Body)); err != nil {
					return 0, err
				}
				continue
			}
			started := &machine.StartedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt}
			if err := apply(machine.New(at, started)); err != nil {
				return 0, err
			}
			i, _ := g.Index(c.Node)
			heap.Push(&ends, endAt{clock + seconds[i], i})
		}
		if len(ends) == 0 {
			if s.Run().Status != machine.RunDone {
				return 0, fmt.Errorf("stands still: %+v", s.Run())
			}
			return clock, nil
		}
		first := heap.Pop(&ends).(endAt)
		clock = first.at
		if err := apply(s.Settle(g.Node(first.node).ID, machine.Outcome{Status: dag.StatusCompleted}, at)); err != nil {
			return 0, err
		}
	}
}

// ListMakespan is the reference: plain list scheduling, nodes with the highest rank first, ties in
// plan order.
func ListMakespan(g *dag.Graph, slots int, seconds, rank []float64) float64 {
	open := make([]int, g.Len())
	ready := readyHeap{rank: rank}
	for i := range open {
		if open[i] = len(g.Needs(int32(i))); open[i] == 0 {
			heap.Push(&ready, int32(i))
		}
	}
	var ends endHeap
	clock := 0.0
	for len(ready.nodes) > 0 || len(ends) > 0 {
		for len(ready.nodes) > 0 && len(ends) < slots {
			i := heap.Pop(&ready).(int32)
			heap.Push(&ends, endAt{clock + seconds[i], i})
		}
		first := heap.Pop(&ends).(endAt)
		clock = first.at
		for _, d := range g.Dependents(first.node) {
			if open[d]--; open[d] == 0 {
				heap.Push(&ready, d)
			}
		}
	}
	return clock
}

type endAt struct {
	at   float64
	node int32
}

type endHeap []endAt

func (h endHeap) Len() int { return len(h) }
func (h endHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].node < h[j].node
}
func (h endHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *endHeap) Push(x any)   { *h = append(*h, x.(endAt)) }
func (h *endHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

type readyHeap struct {
	nodes []int32
	rank  []float64
}

func (h *readyHeap) Len() int { return len(h.nodes) }
func (h *readyHeap) Less(i, j int) bool {
	a, b := h.nodes[i], h.nodes[j]
	return h.rank[a] > h.rank[b] || h.rank[a] == h.rank[b] && a < b
}
func (h *readyHeap) Swap(i, j int) { h.nodes[i], h.nodes[j] = h.nodes[j], h.nodes[i] }
func (h *readyHeap) Push(x any)    { h.nodes = append(h.nodes, x.(int32)) }
func (h *readyHeap) Pop() any {
	last := h.nodes[len(h.nodes)-1]
	h.nodes = h.nodes[:len(h.nodes)-1]
	return last
}
