// Package expr evaluates the expressions of a plan: conditions, templates and run-time
// expansion, in CEL. It is the only importer of cel-go.
//
// It does not read specifications, does not complete nodes (its caller says how, see
// Evaluator.Finish) and keeps nothing of a run: what an expression may read comes with each call.
package expr

import (
	"encoding/json"

	"dagrun.dev/dag"
)

// An Evaluator evaluates the expressions of one plan. It implements dag.Evaluator. Compiled
// expressions are cached by source; it may be used from any goroutine.
type Evaluator struct {
	// Finish completes and checks a node that Expand made from its template: package
	// dag/compile applies schema, kind and defaults (see compile.NewEvaluator). Nil = nothing.
	Finish func(parent, n *dag.Node) error
}

var _ dag.Evaluator = (*Evaluator)(nil)

// New returns an evaluator for the expressions of a compiled plan.
func New(p *dag.Plan) *Evaluator { panic("contract") }

// Condition implements dag.Evaluator.
func (e *Evaluator) Condition(src string, sc dag.Scope) (bool, error) { panic("contract") }

// Value implements dag.Evaluator.
func (e *Evaluator) Value(src string, sc dag.Scope) (json.RawMessage, error) { panic("contract") }

// Resolve implements dag.Evaluator. $${ stands for a literal ${.
func (e *Evaluator) Resolve(with json.RawMessage, sc dag.Scope) (json.RawMessage, error) {
	panic("contract")
}

// Expand implements dag.Evaluator. Ids are <parent>/<key>; an empty, malformed or repeated key
// and a list longer than Foreach.Most are errors.
func (e *Evaluator) Expand(n *dag.Node, sc dag.Scope) ([]dag.Node, error) { panic("contract") }

// RunFacts are the keys of the variable run and their types. Conditions and route rules may
// read them; settings may not, because nothing that differs between an undisturbed and a
// resumed run may enter a prompt or an artifact.
var RunFacts = map[string]string{
	"name":         "string", // of the pipeline
	"spentUSD":     "number", // settled so far, assumed costs included
	"reservedUSD":  "number", // held for attempts under way
	"capUSD":       "number", // 0 = no cap
	"spentTokens":  "int",    // all four classes together
	"capTokens":    "int",    // 0 = no cap
	"completed":    "int",    // nodes that ended well in their current generation
	"failed":       "int",    // nodes that failed for good
	"skipped":      "int",
	"seconds":      "number", // of activity, pauses not counted
	"compensation": "int",    // compensations so far
}
