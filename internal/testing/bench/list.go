package main

import (
	"sort"
	"time"
)

// listSchedule is the makespan of list scheduling, longest path to the end first, on m slots.
func listSchedule(g []task, m int) time.Duration {
	index := map[string]int{}
	for i, t := range g {
		index[t.id] = i
	}
	rank, kids, open := make([]float64, len(g)), make([][]int, len(g)), make([]int, len(g))
	for i, t := range g {
		open[i] = len(t.needs)
		for _, p := range t.needs {
			kids[index[p]] = append(kids[index[p]], i)
		}
	}
	for _, i := range reverseTopological(kids, open) {
		for _, k := range kids[i] {
			rank[i] = max(rank[i], rank[k])
		}
		rank[i] += g[i].seconds
	}

	type running struct {
		end float64
		i   int
	}
	var ready []int
	var run []running
	for i := range g {
		if open[i] == 0 {
			ready = append(ready, i)
		}
	}
	now := 0.0
	for len(ready)+len(run) > 0 {
		sort.SliceStable(ready, func(a, b int) bool { return rank[ready[a]] > rank[ready[b]] })
		for len(ready) > 0 && len(run) < m {
			run = append(run, running{now + g[ready[0]].seconds, ready[0]})
			ready = ready[1:]
		}
		sort.Slice(run, func(a, b int) bool { return run[a].end < run[b].end })
		now = run[0].end
		for _, k := range kids[run[0].i] {
			if open[k]--; open[k] == 0 {
				ready = append(ready, k)
			}
		}
		run = run[1:]
	}
	return time.Duration(now * float64(time.Second))
}

func reverseTopological(kids [][]int, open []int) []int {
	left := append([]int(nil), open...)
	var order []int
	for i := range left {
		if left[i] == 0 {
			order = append(order, i)
		}
	}
	for at := 0; at < len(order); at++ {
		for _, k := range kids[order[at]] {
			if left[k]--; left[k] == 0 {
				order = append(order, k)
			}
		}
	}
	for i, j := 0, len(order)-1; i < j; i, j = i+1, j-1 {
		order[i], order[j] = order[j], order[i]
	}
	return order
}
