package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"dagrun.dev/internal/testing/schedule"
)

// A task is one node of a benchmark graph. Parents come first.
type task struct {
	id      string
	needs   []string
	argv    []string
	seconds float64 // expected; 0 = unknown
}

func name(i int) string { return "n" + strconv.Itoa(i) }

// shape makes a graph of n nodes that run argv: chain, fan (one root, one sink) or layered
// (layers of sqrt(n), three parents in the layer above).
func shape(kind string, n int, argv ...string) []task {
	g := make([]task, n)
	r, width := rand.New(rand.NewPCG(1, 0)), int(math.Sqrt(float64(n))) // the same graph on every machine
	for i := range g {
		g[i] = task{id: name(i), argv: argv}
		switch {
		case i == 0:
		case kind == "chain":
			g[i].needs = []string{name(i - 1)}
		case kind == "fan" && i < n-1:
			g[i].needs = []string{name(0)}
		case kind == "fan":
			for j := 1; j < n-1; j++ {
				g[i].needs = append(g[i].needs, name(j))
			}
		case kind == "layered" && i >= width:
			lo := (i/width - 1) * width
			seen := map[int]bool{}
			for len(seen) < min(3, width) {
				if p := lo + r.IntN(width); !seen[p] {
					seen[p] = true
					g[i].needs = append(g[i].needs, name(p))
				}
			}
		}
	}
	return g
}

// asSleeps are the tasks of a workflow as sleeps of scale seconds a second.
func asSleeps(x *schedule.Tasks, scale float64) []task {
	g := make([]task, len(x.Seconds))
	for i, n := range x.Graph.Plan.Nodes {
		at, _ := x.Graph.Index(n.ID)
		s := x.Seconds[at] * scale
		g[i] = task{id: "n" + n.ID, argv: []string{"sleep", strconv.FormatFloat(s, 'f', 6, 64)}, seconds: s}
		for _, need := range n.Needs {
			g[i].needs = append(g[i].needs, "n"+need)
		}
	}
	return g
}

// write puts the graph into dir as spec.json, Makefile and build.ninja.
func write(dir string, g []task) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for file, render := range map[string]func(*bufio.Writer, []task){
		"spec.json": renderSpec, "Makefile": renderMake, "build.ninja": renderNinja,
	} {
		f, err := os.Create(filepath.Join(dir, file))
		if err != nil {
			return err
		}
		w := bufio.NewWriter(f)
		render(w, g)
		if err := w.Flush(); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

func renderSpec(w *bufio.Writer, g []task) {
	fmt.Fprint(w, `{"pipeline":{"name":"bench","nodes":{`)
	for i, t := range g {
		node := map[string]any{"kind": "exec", "with": map[string]any{"argv": t.argv}}
		if len(t.needs) > 0 {
			node["needs"] = t.needs
		}
		if t.seconds > 0 {
			node["estimate"] = map[string]any{"seconds": t.seconds}
		}
		b, _ := json.Marshal(node) // a map of strings, lists and numbers
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(w, "\n%q:%s", t.id, b)
	}
	fmt.Fprint(w, "}}}\n")
}

func renderMake(w *bufio.Writer, g []task) {
	fmt.Fprintf(w, "all: %s\n.PHONY: all", leaves(g))
	for _, t := range g {
		fmt.Fprint(w, " ", t.id)
	}
	w.WriteByte('\n')
	for _, t := range g {
		fmt.Fprintf(w, "%s: %s\n\t@%s\n", t.id, strings.Join(t.needs, " "), strings.Join(t.argv, " "))
	}
}

func renderNinja(w *bufio.Writer, g []task) {
	fmt.Fprint(w, "rule r\n  command = $cmd\n")
	for _, t := range g {
		fmt.Fprintf(w, "build %s: r %s\n  cmd = %s\n", t.id, strings.Join(t.needs, " "), strings.Join(t.argv, " "))
	}
	fmt.Fprintf(w, "build all: phony %s\ndefault all\n", leaves(g))
}

func leaves(g []task) string {
	used := map[string]bool{}
	for _, t := range g {
		for _, p := range t.needs {
			used[p] = true
		}
	}
	var out []string
	for _, t := range g {
		if !used[t.id] {
			out = append(out, t.id)
		}
	}
	return strings.Join(out, " ")
}
