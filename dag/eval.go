package dag

import "encoding/json"

// An Evaluator evaluates the expressions of a plan. The machine never does: it asks its
// host to, and the result is recorded before anything uses it. Package dag/expr implements
// it with CEL. All methods may be called from any goroutine.
type Evaluator interface {
	// Condition evaluates a node's When. An error is category config, never false.
	Condition(src string, sc Scope) (bool, error)
	// Value evaluates any expression; the result is JSON, nil where an optional expression has no value.
	Value(src string, sc Scope) (json.RawMessage, error)
	// Resolve returns with, with every ${...} in its strings replaced. A string that is one
	// ${...} and nothing else takes the type of the expression.
	Resolve(with json.RawMessage, sc Scope) (json.RawMessage, error)
	// Expand returns the nodes of a run-time Foreach, complete with needs and defaults,
	// in item order.
	Expand(n *Node, sc Scope) ([]Node, error)
}

// A Scope is what an expression may read. Reading an id outside the scope is an error.
type Scope interface {
	// View returns the record of a node as the current generation has it.
	View(id string) (View, bool)
	// Run returns facts of the run: "spentUSD" etc. Keys are documented in dag/expr.
	Run() map[string]any
}

// A View is what expressions see of a node: nodes['id'].status, .out.name, .category, .generation, .items.
type View struct {
	Status     Status // one of ViewStatuses
	Category   string // of the failure, if any
	Generation int
	Out        map[string]json.RawMessage // recorded values
	Items      func() []Item              // of a run-time foreach, expanded, in the order of its list; else nil
}

// An Item is what expressions see of one item of a run-time foreach.
type Item struct {
	Key     string
	Status  Status                     // one of ViewStatuses
	Out     map[string]json.RawMessage // recorded values
	Outputs map[string]string          // declared: name -> type, see OutputType
}
