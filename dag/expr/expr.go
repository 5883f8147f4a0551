// Package expr evaluates the expressions of a plan: conditions, templates and run-time
// expansion, in CEL. It is the only importer of cel-go.
//
// It does not read specifications, does not complete nodes (its caller says how, see
// Evaluator.Finish) and keeps nothing of a run: what an expression may read comes with each call.
//
// An expression sees
//
//	params.a.b                 a declared parameter
//	nodes['id'].out.name       a value that a node before this one recorded
//	nodes['id'].?out.name      the same as an optional value, where there may be none:
//	                           nodes['id'].?out.name.orValue(0)
//	nodes['id'].status         completed, failed, skipped, cancelled, ... (also .category, .generation)
//	nodes['id'].items          of a run-time foreach, in the order of its list: [{key, status, out: {name: value}}]
//	run.spentUSD               a fact of the run (see Facts), in conditions and routes only
//	and the variables of a foreach.
//
// Ids are literal, so that a plan knows what is read. Numbers declared "number" are doubles;
// whole numbers within lists and maps are ints: write double(x) to mix them in a sum.
package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
	"github.com/google/cel-go/common/types"
)

// An Evaluator evaluates the expressions of one plan. It implements dag.Evaluator. Compiled
// expressions are cached; it may be used from any goroutine.
type Evaluator struct {
	// Finish completes and checks a node that Expand made: it turns the spec form with the
	// given id into a node of the plan. See compile.NewEvaluator.
	Finish func(parent *dag.Node, id string, spec *tree.Value) (dag.Node, error)

	plan  *dag.Plan
	lang  *Lang
	nodes func() map[string]int // index in plan.Nodes by id
}

var _ dag.Evaluator = (*Evaluator)(nil)

// New returns an evaluator for the expressions of a compiled plan.
func New(p *dag.Plan) (*Evaluator, error) {
	lang, err := NewLang(p.Params)
	if err != nil {
		return nil, err
	}
	lang.adopted = true
	return &Evaluator{plan: p, lang: lang, nodes: sync.OnceValue(func() map[string]int {
		m := make(map[string]int, len(p.Nodes))
		for i := range p.Nodes {
			m[p.Nodes[i].ID] = i
		}
		return m
	})}, nil
}

// decls types values by what the plan declares. Whether a value may be missing was settled when
// the plan was made; one that is missing all the same is an error of the evaluation.
func (e *Evaluator) decls(run bool) Decls {
	return Decls{Run: run, Node: func(id string) (NodeDecl, error) {
		if i, ok := e.nodes()[id]; ok {
			n := &e.plan.Nodes[i]
			if n.Foreach == nil {
				return NodeDecl{Outputs: n.Outputs}, nil
			}
			return NodeDecl{Outputs: n.Outputs, Items: &Items{Open: true}}, nil
		}
		return NodeDecl{Open: true}, nil // of a run-time foreach
	}}
}

// program compiles src, or finds it compiled.
func (l *Lang) program(src string, d Decls, want string) (*Program, error) {
	x, problems := l.Parse(src)
	if len(problems) == 0 {
		var p *Program
		if p, problems = x.Check(d, want); len(problems) == 0 {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s: %s", quoteShort(src), problems[0])
}

// Condition implements dag.Evaluator.
func (e *Evaluator) Condition(src string, sc dag.Scope) (bool, error) {
	p, err := e.lang.program(src, e.decls(true), "bool")
	if err != nil {
		return false, err
	}
	v, err := p.Eval(nil, sc)
	if err != nil {
		return false, err
	}
	if v.Kind != tree.Bool {
		return false, fmt.Errorf("%s: want true or false, got %s", quoteShort(src), kindNames[v.Kind])
	}
	return v.Bool, nil
}

// Value implements dag.Evaluator.
func (e *Evaluator) Value(src string, sc dag.Scope) (json.RawMessage, error) {
	p, err := e.lang.program(src, e.decls(true), "")
	if err != nil {
		return nil, err
	}
	v, err := p.Val(nil, sc)
	if o, ok := v.(*types.Optional); ok && !o.HasValue() {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	t, err := p.toTree(v)
	if err != nil {
		return nil, err
	}
	return t.AppendJSON(nil), nil
}

// Resolve implements dag.Evaluator. $${ stands for a literal ${.
func (e *Evaluator) Resolve(with json.RawMessage, sc dag.Scope) (json.RawMessage, error) {
	v, err := tree.ParseJSON("", with, tree.Limits{})
	if err != nil {
		return nil, err
	}
	m, mistakes := e.lang.Template(v, "with", false, e.decls(true))
	if len(mistakes) > 0 {
		return nil, placeless(mistakes[0])
	}
	if v, err = m.Fill(nil, sc, false); err != nil {
		return nil, placeless(err)
	}
	return v.AppendJSON(nil), nil
}

// placeless drops places, which JSON of a plan does not have.
func placeless(err error) error {
	var d tree.Diagnostic
	if errors.As(err, &d) {
		d.Pos = tree.Pos{}
		return d
	}
	return err
}
