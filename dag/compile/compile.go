// Package compile turns a specification into a plan, or into diagnostics that each name one place. It runs nothing and
// writes nothing; it reads the input files that a specification names. What languages there are is package source's
// business, what the format is that of package schema.
//
// The way of a specification: read loads it and checks it by the rules; without takes out what is in error; parameters
// are resolved; foreach blocks are expanded; each node gets its defaults and is described by its kind; expressions are
// typed against what the nodes they read declare; the graph is checked.
package compile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/compile/source"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// Options say what to compile.
type Options struct {
	Path      string   // file or folder of a CUE package; empty = the current folder's spec (see source.Load)
	Pipeline  string   // name of the pipeline when the file holds several
	Set       []string // overrides of declared parameters: path=value; the last one wins
	Values    []string // YAML or JSON files of overrides, applied before Set, in order
	Untrusted bool     // evaluate CUE in a child process with limits
	Kinds     *nodes.Registry
}

// A Result is a compiled specification. It may be read from any goroutine.
type Result struct {
	Plan     *dag.Plan
	Graph    *dag.Graph
	Source   source.Source
	Sources  []string         // files that it was made of, settings of parameters too, below Dir and relative to it
	Dir      string           // absolute folder of the spec: input files are relative to it
	Notes    [][]string       // per node of Plan: facts worth showing, e.g. "files: F3, F4, F5, F1, F2"
	Warnings tree.Diagnostics // what is right but probably not meant
}

// Compile reads, checks and expands a specification. All mistakes are returned together, as tree.Diagnostics sorted by
// place, the first hundred and the number of the others; any other error is about reading the files. The same
// specification and options give the same plan, whatever the language it is written in.
func Compile(o Options) (*Result, error) {
	s, err := schema.For(o.Kinds)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	load := source.Options{Pipeline: o.Pipeline, Untrusted: o.Untrusted}
	c, err := read(s, o.Path, load)
	if err == nil && c.Language == "cue" && len(o.Set)+len(o.Values) > 0 {
		first := newBuilder(s, c.Source, nil)
		first.params(c.Tree, o.Values, o.Set)
		if load.Given = given(c.Loaded, first.plan.Params); !first.failed() && len(load.Given) > 0 {
			c, err = read(s, o.Path, load)
		}
	}
	var unreadable tree.Diagnostics
	switch {
	case errors.As(err, &unreadable):
		return nil, firstOf(unreadable, "mistakes")
	case err != nil:
		return nil, err
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("compile: %w", err)
	}
	defer root.Close()
	b := newBuilder(s, c.Source, root)
	b.sources = sourcesIn(c.Dir, slices.Concat(c.Files, o.Values))
	b.without(c.Tree, c.wrong)
	res := b.build(c.Tree, o)
	mistakes := append(c.mistakes, b.independent(c.mistakes)...)
	if len(mistakes) > 0 {
		return nil, firstOf(mistakes, "mistakes")
	}
	return res, nil
}

// sourcesIn returns those of the files that lie below a folder, relative to it.
func sourcesIn(dir string, files []string) (below []string) {
	resolved := func(name string) string {
		name, _ = filepath.Abs(name)
		if to, err := filepath.EvalSymlinks(name); err == nil {
			return to
		}
		return name
	}
	dir = resolved(dir)
	for _, file := range files {
		if name, err := filepath.Rel(dir, resolved(file)); err == nil && filepath.IsLocal(name) {
			below = append(below, filepath.ToSlash(name))
		}
	}
	return below
}

// A checked is a specification held against the rules.
type checked struct {
	source.Loaded
	mistakes tree.Diagnostics
	wrong    []string // paths of the values that are not what they should be
}

// read loads a specification and checks it. What the language finds wrong comes first: the rules add what they say of
// the rest. All of it is one list of mistakes.
func read(s *schema.Schema, path string, o source.Options) (c checked, err error) {
	c.Loaded, err = source.Load(s, path, o)
	if err != nil {
		return c, err
	}
	mistakes, doubts := s.Rule("Pipeline").CheckTemplates(c.Tree, "")
	known := pathsOf(c.Faults)
	for _, path := range c.Hidden {
		known[path] = true
	}
	c.mistakes = c.Faults
	for _, d := range mistakes {
		if !known.cover(d.Path) {
			c.mistakes = append(c.mistakes, d)
		}
	}
	c.wrong = c.Hidden
	for _, d := range c.mistakes {
		c.wrong = append(c.wrong, d.Path)
	}
	c.Warnings = append(c.Warnings, doubts...)
	return c, nil
}

// given returns the values of parameters that are not their defaults, as JSON, by the place of the default.
func given(c source.Loaded, values []dag.Param) map[tree.Pos]string {
	out := map[tree.Pos]string{}
	for _, v := range values {
		d := c.Tree.Get("params")
		for _, name := range strings.Split(v.Name, ".") {
			d = d.Get(name)
		}
		def := d.Get("default")
		if def == nil {
			continue
		}
		if raw, err := dag.AppendCanonical(nil, def.AppendJSON(nil)); err == nil && string(raw) != string(v.Value) {
			for _, place := range c.Defaults[v.Name] {
				out[place] = string(v.Value)
			}
		}
	}
	return out
}

// build makes the plan of a pipeline. Without a plan b.all says why. The work goes on after a mistake,
// beside it: what depends on a mistake is left out of what follows, see unknowns.
func (b *builder) build(p *tree.Value, o Options) *Result {
	b.params(p, o.Values, o.Set)
	p = b.resolvePipeline(p)
	b.pipeline(p)
	b.nodes(p)
	b.expand(p)
	b.completeAll()
	b.listed(p)
	b.connect()
	b.typeAll()
	b.state(p)
	if b.failed() || b.unknown.any {
		b.partialGraph()
		return nil
	}
	b.phases(p)
	b.neverIdle(p.Get("ticks"))
	return b.finish()
}

// completeAll makes the nodes of the plan and frees each one's tree, which is larger than the node: here a large
// specification needs most memory.
func (b *builder) completeAll() {
	b.plan.Nodes = make([]dag.Node, len(b.drafts))
	for i, d := range b.drafts {
		d.node = &b.plan.Nodes[i]
		if b.unknown.affects(d) {
			d.bad, d.node.ID = true, d.id
			continue
		}
		whole := b.complete(d)
		b.names(d)
		if whole {
			b.readings(d)
		}
		d.bad = !whole || len(b.unknown.fields[d.id]) > 0
		d.tree, d.with = nil, nil
	}
}

// failed says whether there are mistakes.
func (b *builder) failed() bool { return len(b.mistakes) > 0 }

// finish indexes the plan and puts what belongs to nodes into its order.
func (b *builder) finish() *Result {
	g, err := dag.NewGraph(b.plan)
	if err != nil {
		b.partialGraph()
		return nil
	}
	res := &Result{Plan: g.Plan, Graph: g, Source: b.src, Sources: b.sources, Dir: b.src.Dir,
		Notes: make([][]string, g.Len())}
	for _, d := range b.drafts {
		i, _ := g.Index(d.id)
		res.Notes[i] = d.notes
	}
	b.vain(g)
	b.undone(g)
	b.asked(g)
	res.Warnings = firstOf(append(b.src.Warnings, b.warnings...), "warnings")
	return res
}

// graphMistakes gives the problems of a graph their places.
func (b *builder) graphMistakes(err error) {
	if err == nil {
		return
	}
	var many interface{ Unwrap() []error }
	if errors.As(err, &many) {
		for _, e := range many.Unwrap() {
			b.graphMistakes(e)
		}
		return
	}
	var ne *dag.NodeError
	if errors.As(err, &ne) {
		if d := b.byID[fold(ne.Node)]; d != nil {
			b.fail(d.place(ne.Field), tree.Join(d.path, ne.Field), "%s", ne.Text)
			return
		}
	}
	b.fail(tree.Pos{File: tree.FileOf(b.src.Path)}, "", "%v", err)
}
