package reuse

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag"
)

// DoLeft is said of a node that would run, and that the selected part leaves out.
const DoLeft = "left out"

// A Part is what is asked of a plan: which of its nodes may run, and which run again though they have a result.
type Part struct {
	dag.Selection
	Rerun []string `json:"rerun,omitempty"` // nodes and groups, see dag.Selection; what depends on them runs again too
	// Repeat says that effects which must not happen twice unasked may.
	Repeat bool `json:"repeat,omitempty"`
}

// Everything reports whether nothing is left out and nothing runs again.
func (p *Part) Everything() bool { return p.All() && len(p.Rerun) == 0 }

// Fresh is the comparison with a run that does not exist yet: all nodes run. It names no plan.
func Fresh(g *dag.Graph) *Diff {
	d := &Diff{Graph: g, Nodes: make([]NodeDiff, g.Len())}
	for i := range d.Nodes {
		n := g.Node(int32(i))
		d.Nodes[i] = NodeDiff{ID: n.ID, Do: DoRun, Effect: n.Effect}
	}
	return d
}

// Take narrows d, which compares a run (nil: none yet) with a plan, to the part: what runs again is said to run, and
// what would run and is left out is DoLeft. All that speaks against the part is returned at once: a node of it that
// would wait for one that is left out and has no result, contradictions, and effects that would happen twice.
func (p *Part) Take(run Run, d *Diff) error {
	t := taking{p: p, g: d.Graph, left: p.LeftOut(d.Graph), rerun: make([]bool, d.Graph.Len()),
		result: make([]bool, d.Graph.Len()), nodes: make([]*NodeDiff, d.Graph.Len())}
	for k := range d.Nodes {
		if i, ok := t.g.Index(d.Nodes[k].ID); ok {
			t.nodes[i] = &d.Nodes[k]
		}
	}
	t.contradictions()
	t.runAgain(run)
	for i, n := range t.nodes {
		if o := index(run, n.ID); o >= 0 && n.Do == DoReuse {
			r := run.Record(o)
			t.result[i] = r.Settled && r.End != Cancelled // others get a fresh start
		}
		if t.isLeft(int32(i)) && !t.result[i] && n.Do != DoRemoved {
			n.Do, n.Why, n.Changes, n.Maybe = DoLeft, nil, nil, false
		}
		n.Runs = !t.result[i] && n.Do != DoLeft && n.Do != DoRemoved
	}
	for i := range t.nodes {
		t.needs(int32(i))
	}
	return errors.Join(t.problems...)
}

// index is that of a node in the graph of a run; -1 = it is not there, or there is no run.
func index(run Run, id string) int32 {
	if run == nil {
		return -1
	}
	i, ok := run.Graph().Index(id)
	if !ok {
		return -1
	}
	return i
}

type taking struct {
	p        *Part
	g        *dag.Graph
	left     []bool // nil = none
	rerun    []bool // begins anew because the part says so
	result   []bool // it has a result that stands
	nodes    []*NodeDiff
	problems []error
}

func (t *taking) problem(format string, args ...any) {
	t.problems = append(t.problems, fmt.Errorf(format, args...))
}

func (t *taking) isLeft(i int32) bool { return t.left != nil && t.left[i] }

func (t *taking) contradictions() {
	p := t.p
	if len(p.Only) > 0 && len(p.From)+len(p.Until) > 0 {
		t.problem("--only names all that is to run: leave out --from and --until, or name all of it with --only")
	}
	if len(p.From) > 0 && len(p.Until) > 0 {
		t.between("--from %s: it leads to nothing that --until names (%s)", p.From, p.Until, t.g.Dependents)
		t.between("--until %s: nothing that --from names (%s) leads to it", p.Until, p.From, t.g.Needs)
	}
	for _, i := range t.g.Named(p.Rerun...) {
		if t.isLeft(i) {
			t.problem("--rerun %s: it is left out by %s", t.g.Node(i).ID, p.Selection)
		}
	}
}

// between complains of each name from which next leads to none of the others.
func (t *taking) between(format string, names, others []string, next func(int32) []int32) {
	ends := t.g.Named(others...)
	for _, name := range names {
		reached := t.g.Reach(t.g.Named(name), next)
		if !slices.ContainsFunc(ends, func(i int32) bool { return reached[i] }) {
			t.problem(format, name, strings.Join(others, ", "))
		}
	}
}

func (t *taking) runAgain(run Run) {
	for _, name := range t.p.Rerun {
		begun := false
		for i, reached := range t.g.Redone(t.g.Named(name), -1) {
			n := t.nodes[i]
			o := index(run, n.ID)
			if !reached || o < 0 || !run.Record(o).Begun {
				continue
			}
			begun = true
			if name == dag.All && t.g.Node(int32(i)).Costly() && run.Record(o).Ended {
				if n.Do == DoReuse {
					n.Do, n.Maybe = DoRun, true
				}
				continue
			}
			if n.Effect == dag.Once && !t.p.Repeat && !t.rerun[i] {
				t.problem("--rerun %s: %s would happen again, and its effect must not be repeated unasked (effect: once); "+
					"add --yes if that is meant", name, n.ID)
			}
			t.rerun[i] = true
			n.Maybe = false
			if n.Do == DoReuse || n.Do == DoRun {
				n.Do, n.Why = DoRun, []string{"--rerun " + name}
			}
		}
		if !begun {
			t.problem("--rerun: %s has not started, so it runs without being told to", name)
		}
	}
}

// needs complains where a node of the part would wait for one that is left out.
func (t *taking) needs(i int32) {
	n := t.nodes[i]
	if t.left == nil || t.left[i] || n.Do == DoReuse && t.result[i] || n.Do == DoRemoved {
		return
	}
	var missing []int32
	needs := t.g.Needs(i)
	for _, j := range needs {
		if t.left[j] && !t.result[j] {
			missing = append(missing, j)
		}
	}
	node := t.g.Node(i)
	if len(missing) == 0 || node.AtLeast > 0 && !node.WaitAll && len(needs)-len(missing) >= node.AtLeast {
		return
	}
	for _, j := range missing {
		why := "has no result yet"
		if t.rerun[j] {
			why = "runs again"
		}
		id := t.g.Node(j).ID
		t.problem("%s needs %s, which %s and is left out by %s: name it too, or use --until %s, which takes along what is "+
			"needed", n.ID, id, why, t.p.Selection, n.ID)
	}
}
