package compile

import (
	"strconv"

	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// settingTypes holds the types of expressions that stand for a whole setting against what the
// rules allow there: a number where a text is wanted would be found out only while running.
func (b *builder) settingTypes(lang *expr.Lang, r *rules.Rule, v *tree.Value, path string, d expr.Decls) {
	switch v.Kind {
	case tree.String:
		b.settingType(lang, r, v, path, d)
	case tree.List:
		for i, x := range v.Items {
			b.settingTypes(lang, ruleBelow(r, strconv.Itoa(i)), x, tree.At(path, i), d)
		}
	case tree.Map:
		for _, f := range v.Fields {
			b.settingTypes(lang, ruleBelow(r, f.Name), f.Value, tree.Join(path, f.Name), d)
		}
	}
}

func (b *builder) settingType(lang *expr.Lang, r *rules.Rule, v *tree.Value, path string, d expr.Decls) {
	allowed := typesOf(r)
	if allowed == 0 || !expr.HasTemplate(v) {
		return
	}
	pieces, err := expr.Split(v.Str)
	if err != nil || len(pieces) != 1 || pieces[0].Source == "" {
		return
	}
	e, problems := lang.Parse(pieces[0].Source)
	if len(problems) > 0 {
		return // told by the mold
	}
	p, problems := e.Check(d, "")
	if len(problems) > 0 {
		return
	}
	got, known := exprTypes[p.Type]
	if !known || allowed&got != 0 {
		return
	}
	hint := ""
	if allowed.Has(tree.String) {
		hint = "; write string(...)"
	}
	b.fail(v.Pos, path, "in %q: want %s, got %s%s", v.Str, allowed, p.Type, hint)
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
