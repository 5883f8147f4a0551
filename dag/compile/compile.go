// Package compile turns a specification in CUE, YAML or JSON into a plan, or into diagnostics
// that each name one place. It is the only importer of CUE.
//
// It runs nothing and writes nothing; it reads the specification and the input files it names.
package compile

import (
	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// Options say what to compile.
type Options struct {
	Path     string   // file or folder of a CUE package; empty = the current folder's spec (see Load)
	Pipeline string   // name of the pipeline when the file holds several
	Set      []string // overrides of declared parameters: path=value; the last one wins
	Values   []string // YAML or JSON files of overrides, applied before Set, in order
	Kinds    *nodes.Registry
}

// A Result is a compiled specification. It may be read from any goroutine.
type Result struct {
	Plan     *dag.Plan
	Graph    *dag.Graph
	Dir      string           // absolute folder of the spec: input files are relative to it
	Notes    [][]string       // per node of Plan: facts worth showing, e.g. "files: F3, F4, F5, F1, F2"
	Warnings tree.Diagnostics // what is right but probably not meant
}

// Compile reads, checks and expands a specification. All mistakes are returned together, as
// tree.Diagnostics sorted by place; any other error is about reading the files. The same
// specification and options give the same plan, whatever the language it is written in.
func Compile(o Options) (*Result, error) { panic("contract") }

// NewEvaluator returns the evaluator that a host gives to a run of plan p. It completes the
// nodes of a run-time foreach with the schema, defaults and kinds that Compile uses.
func NewEvaluator(p *dag.Plan, kinds *nodes.Registry) (dag.Evaluator, error) { panic("contract") }
