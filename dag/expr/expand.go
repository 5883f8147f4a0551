package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

var goodKey = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// Expand implements dag.Evaluator. Ids are <id of n>/<key>; an empty, malformed or repeated key
// (case does not count) and a list longer than Foreach.Most are errors.
func (e *Evaluator) Expand(n *dag.Node, sc dag.Scope) ([]dag.Node, error) {
	f := n.Foreach
	if f == nil || e.Finish == nil {
		return nil, errors.New("nothing to expand here")
	}
	x, err := e.expander(f)
	if err != nil {
		return nil, err
	}
	list, err := x.in.Eval(nil, sc)
	if err != nil {
		return nil, fmt.Errorf("in: %w", err)
	}
	if list.Kind != tree.List {
		return nil, fmt.Errorf("in: want a list, got %s", kindNames[list.Kind])
	}
	if len(list.Items) > f.Most {
		return nil, fmt.Errorf("in: %d items; want at most %d (see `most`)", len(list.Items), f.Most)
	}
	out := make([]dag.Node, 0, len(list.Items))
	seen := map[string]int{}
	for i, v := range list.Items {
		node, err := x.item(n, v, i, len(list.Items), sc, seen, e.Finish)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		out = append(out, node)
	}
	return out, nil
}

// expander is a run-time foreach, compiled.
type expander struct {
	variable string
	in, key  *Program
	node     *Template
}

func (e *Evaluator) expander(f *dag.Foreach) (*expander, error) {
	in, err := e.lang.program(f.In, e.decls(false), "list")
	if err != nil {
		return nil, fmt.Errorf("in: %w", err)
	}
	lang, err := e.lang.With(f.Var)
	if err != nil {
		return nil, err
	}
	key, err := lang.program(f.Key, e.decls(false), "")
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	v, err := tree.ParseJSON("", f.Template, tree.Limits{})
	if err != nil {
		return nil, err
	}
	m, mistakes := lang.Template(v, "node", false, e.decls(false))
	if len(mistakes) > 0 {
		return nil, placeless(mistakes[0])
	}
	return &expander{f.Var, in, key, m}, nil
}

func (x *expander) item(n *dag.Node, v *tree.Value, i, count int, sc dag.Scope, seen map[string]int,
	finish func(*dag.Node, string, *tree.Value) (dag.Node, error)) (dag.Node, error) {
	value := v.Native()
	vars := map[string]any{x.variable: Item(value, "", i, count)}
	key, err := Key(x.key, vars, sc, seen, i)
	if err != nil {
		return dag.Node{}, err
	}
	vars[x.variable] = Item(value, key, i, count)
	spec, err := x.node.Fill(vars, sc, true)
	if err != nil {
		return dag.Node{}, placeless(err)
	}
	return finish(n, n.ID+"/"+key, spec)
}

// Key evaluates the key of item i and enters it into seen; a repeated key is an error that
// names both items.
func Key(p *Program, vars map[string]any, sc dag.Scope, seen map[string]int, i int) (string, error) {
	v, err := p.Eval(vars, sc)
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	key, err := Text(v)
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	if !goodKey.MatchString(key) {
		return "", fmt.Errorf("key %s: want ASCII letters, digits, '.', '_', '-', starting with a letter or digit; "+
			"slug(text) makes such a key of any text", quoteShort(key))
	}
	folded := strings.ToLower(key) // ids name files, and not every file system tells cases apart
	if first, dup := seen[folded]; dup {
		return "", fmt.Errorf("key %q: item %d has it already; .distinct() makes one of equal items", key, first+1)
	}
	seen[folded] = i
	return key, nil
}
