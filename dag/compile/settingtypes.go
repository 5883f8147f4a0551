package compile

import (
	"strconv"

	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// settingTypes holds the types of expressions that stand for a whole setting against what the
// rules allow there: a number where a text is wanted would be found out only while running.
func (b *builder) settingTypes(r *rules.Rule, t *expr.Template) {
	allowed := typesOf(r)
	if got, known := exprTypes[t.Type()]; known && allowed != 0 && allowed&got == 0 {
		hint := ""
		if allowed.Has(tree.String) {
			hint = "; write string(...)"
		}
		b.fail(t.Value.Pos, t.Path, "in %q: want %s, got %s%s", t.Value.Str, allowed, t.Type(), hint)
	}
	for i, x := range t.Parts {
		label := strconv.Itoa(i)
		if t.Value.Kind == tree.Map {
			label = t.Value.Fields[i].Name
		}
		b.settingTypes(r.Below(label), x)
	}
}

var exprTypes = map[string]rules.Types{
	"string": rules.TypesOf(tree.String), "bool": rules.TypesOf(tree.Bool), "int": rules.TypesOf(tree.Int),
	"number": rules.Number, "list": rules.TypesOf(tree.List), "map": rules.TypesOf(tree.Map), "null": rules.TypesOf(tree.Null),
}

// typesOf returns the types a rule allows, alternatives included; 0 = any.
func typesOf(r *rules.Rule) rules.Types {
	if r == nil || r.Types != 0 || len(r.AnyOf) == 0 {
		if r == nil {
			return 0
		}
		return r.Types
	}
	var t rules.Types
	for _, a := range r.AnyOf {
		x := typesOf(a)
		if x == 0 {
			return 0
		}
		t |= x
	}
	return t
}
