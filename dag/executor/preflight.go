package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"syscall"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// Preflight looks for what the nodes need that run according to d, a comparison that a part was taken of, before any of
// them has cost anything: those that run on a condition too, the nodes of a foreach, and undo actions. Nodes whose
// results stand, and what is left out, need nothing. m.Scratch is made for it below the folder for temporary files.
// dirs are the folders that are written to; the first holds the run.
//
// What is missing is a problem. It is a warning where Need.Later says that an earlier node may make it, and one runs.
func Preflight(
	ctx context.Context, d *reuse.Diff, kinds *nodes.Registry, m nodes.Machine, dirs ...string,
) *nodes.Readiness {
	p := preflight{kinds: kinds, at: map[string]int{}}
	out := &nodes.Readiness{}
	var err error
	if m.Scratch, err = os.MkdirTemp("", "dagrun-preflight-"); err != nil {
		out.Problems = append(out.Problems, "the folder for temporary files cannot be written: "+err.Error())
		return out
	}
	defer os.RemoveAll(m.Scratch)
	runs := make([]bool, d.Graph.Len())
	for k := range d.Nodes {
		if i, ok := d.Graph.Index(d.Nodes[k].ID); ok {
			runs[i] = d.Nodes[k].Runs
		}
	}
	for i := range int32(d.Graph.Len()) {
		if runs[i] {
			n := d.Graph.Node(i)
			later := slices.ContainsFunc(d.Graph.Needs(i), func(j int32) bool { return runs[j] })
			p.node(n, later)
		}
	}
	for _, need := range p.list {
		found, warnings, err := need.Find(ctx, m)
		for _, w := range warnings {
			out.Warnings = append(out.Warnings, printable.Line(w))
		}
		switch by := " (needed by " + printable.Some(need.by, 3) + ")"; {
		case err != nil && need.later:
			out.Warnings = append(out.Warnings, printable.Line(err.Error()+"; a node before may make it"+by))
		case err != nil:
			out.Problems = append(out.Problems, printable.Line(err.Error()+by))
		case found != "":
			out.Found = append(out.Found, printable.Line(found))
		}
	}
	folders(out, d.Graph.Plan, p.paid, dirs)
	return out
}

type preflight struct {
	kinds *nodes.Registry
	list  []*needed
	at    map[string]int
	paid  bool
}

// A needed is a Need with the nodes that have it.
type needed struct {
	nodes.Need
	later bool // all of them come after a node that runs
	by    []string
}

func (p *preflight) node(n *dag.Node, later bool) {
	p.paid = p.paid || n.Paid
	p.kind(n.ID, n.Kind, n.With, later)
	if n.Undo != nil {
		p.kind(n.ID, n.Undo.Kind, n.Undo.With, true)
	}
	var item struct {
		Kind string          `json:"kind"`
		With json.RawMessage `json:"with"`
	}
	if n.Foreach != nil && json.Unmarshal(n.Foreach.Template, &item) == nil {
		p.kind(n.ID, item.Kind, item.With, later)
	}
	for _, name := range n.Secrets {
		p.add(n.ID, nodes.SecretNeed(name), false)
	}
}

func (p *preflight) kind(node, kind string, with json.RawMessage, later bool) {
	k, ok := p.kinds.Kind(kind)
	if !ok {
		return
	}
	s, _ := k.Parse(with) // settings that hold a ${...} yet, as far as they can be read
	if pre, ok := s.(nodes.Preflighter); ok {
		for _, need := range pre.Needs() {
			p.add(node, need, later && need.Later)
		}
	}
}

func (p *preflight) add(node string, need nodes.Need, later bool) {
	k, known := p.at[need.Name]
	if !known {
		k = len(p.list)
		p.at[need.Name] = k
		p.list = append(p.list, &needed{Need: need, later: later})
	}
	n := p.list[k]
	n.later = n.later && later
	if last := len(n.by) - 1; last < 0 || n.by[last] != node { // a node may need it twice, for its undo action too
		n.by = append(n.by, node)
	}
}

// folders looks whether folders can be written, and whether the disk of the first has room for the inputs of the plan
// and, where calls are paid for, for an answer.
func folders(out *nodes.Readiness, plan *dag.Plan, paid bool, dirs []string) {
	for _, dir := range dirs {
		if err := disk.Writable(dir); err != nil {
			out.Problems, out.Disk = append(out.Problems, printable.Line(fmt.Sprintf("%s cannot be written: %v", dir, err))), err
		}
	}
	if len(dirs) == 0 {
		return
	}
	want := int64(0)
	if paid {
		want = leastRoom
	}
	for _, f := range plan.Files {
		want += f.Size
	}
	switch free := disk.Free(disk.Existing(dirs[0])); {
	case free < want:
		out.Problems = append(out.Problems, fmt.Sprintf("the disk of %s has %d MiB free, and the run wants %d MiB at least: "+
			"free some, or name another folder with --output-dir", printable.Line(dirs[0]), free>>20, (want+1<<20-1)>>20))
		out.Disk = syscall.ENOSPC
	case free < 1<<60:
		out.Found = append(out.Found, fmt.Sprintf("%.1f GiB free", float64(free)/(1<<30)))
	}
}
