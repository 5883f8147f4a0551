package expr

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Items says what the items of a run-time foreach record: nodes['id'].items is a list of
//
//	{key: string, status: string, out: {name: value, ...}}
//
// in the order of the foreach's list.
type Items struct {
	Outputs map[string]string // name -> type, see dag.OutputType
	Missing string            // why the values of an item may be missing: "they have a `when`"; empty: they never are
	Open    bool              // outputs that are not declared may be read too, as any
}

// itemsPrefix begins the names of the types of such lists; the rest tells one set of declarations from another. All of
// them are lists when they are evaluated.
const itemsPrefix = "items"

// itemsType enters the type of a list of items into the language and returns its name.
func (l *Lang) itemsType(it *Items) string {
	if it.Open {
		return "list"
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(it.Outputs)) {
		fmt.Fprintln(h, name, it.Outputs[name])
	}
	fmt.Fprintln(h, it.Missing)
	typ := fmt.Sprintf("%s%x", itemsPrefix, h.Sum(nil)[:8])
	l.mu.Lock()
	defer l.mu.Unlock()
	l.items[typ] = it
	return typ
}

// withItems returns an environment that has the functions fns of items beside those of env, and the declarations of
// these items by the names of their types.
func (l *Lang) withItems(env *cel.Env, fns []string) (*cel.Env, map[string]*Items, error) {
	var found map[string]*Items
	var opts []cel.EnvOption
	for _, fn := range fns {
		typ := fn[len("@ref_"):]
		if !strings.HasPrefix(typ, itemsPrefix) || found[typ] != nil {
			continue
		}
		if found == nil {
			found = map[string]*Items{}
		}
		l.mu.Lock()
		found[typ] = l.items[typ]
		l.mu.Unlock()
		list := cel.ListType(cel.ObjectType(typ))
		opts = append(opts, refGetter(refFunction(typ, false), "ref_"+typ, list),
			refGetter(refFunction(typ, true), "opt_"+typ, cel.OptionalType(list)))
	}
	if found == nil {
		return env, nil, nil
	}
	opts = append(opts, cel.CustomTypeProvider(itemTypes{env.CELTypeProvider(), found}))
	env, err := env.Extend(opts...)
	return env, found, err
}

// itemTypes gives items and their values types, so that CEL checks what is read of them.
type itemTypes struct {
	types.Provider
	items map[string]*Items
}

// outType is the type of the values of items.
func outType(typ string) string { return typ + ".out" }

func (p itemTypes) FindStructType(name string) (*types.Type, bool) {
	if p.items[strings.TrimSuffix(name, ".out")] != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

func (p itemTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	if it := p.items[name]; it != nil {
		switch field {
		case "key", "status":
			return &types.FieldType{Type: types.StringType}, true
		case "out":
			return &types.FieldType{Type: types.NewObjectType(outType(name))}, true
		}
		return nil, false
	}
	if it := p.items[strings.TrimSuffix(name, ".out")]; it != nil {
		typ, _ := dag.OutputType(it.Outputs[field])
		t, ok := valueTypes[typ]
		return &types.FieldType{Type: t.cel}, ok
	}
	return p.Provider.FindStructFieldType(name, field)
}

// noField words CEL's complaint about a field that items do not have.
func noField(text string, items map[string]*Items) string {
	field, ok := strings.CutPrefix(text, "undefined field '")
	if !ok || len(items) == 0 {
		return text
	}
	field = strings.TrimSuffix(field, "'")
	outputs := map[string]string{}
	for _, it := range items {
		maps.Copy(outputs, it.Outputs)
	}
	return fmt.Sprintf("no field %q: an item has key, status and out, and out has what the items declare; %s",
		field, suggest(field, outputs))
}

// outByName writes i.out['name'] as i.out.name, which CEL checks by the types of the fields.
func outByName(a *ast.AST) {
	fac := ast.NewExprFactory()
	ast.PostOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		fn, args := e.AsCall().FunctionName(), e.AsCall().Args()
		if fn != operators.Index && fn != operators.OptIndex || args[0].Kind() != ast.SelectKind ||
			args[0].AsSelect().FieldName() != "out" {
			return
		}
		name, ok := literalOf(args[1])
		switch {
		case !ok:
		case fn == operators.Index:
			e.SetKindCase(fac.NewSelect(e.ID(), args[0], name))
		default:
			e.SetKindCase(fac.NewCall(e.ID(), operators.OptSelect, args[0], args[1]))
		}
	}))
}

// itemsTree is a list of items as a value. Numbers are what they are declared as.
func itemsTree(list []dag.Item) (*tree.Value, error) {
	out := &tree.Value{Kind: tree.List, Items: make([]*tree.Value, 0, len(list))}
	for _, it := range list {
		values := &tree.Value{Kind: tree.Map}
		for _, name := range slices.Sorted(maps.Keys(it.Out)) {
			v, err := recorded(it.Out[name])
			if err != nil {
				return nil, err
			}
			if v == nil {
				continue
			}
			if typ, _ := dag.OutputType(it.Outputs[name]); typ == "number" && v.Kind == tree.Int {
				v = &tree.Value{Kind: tree.Float, Float: float64(v.Int)}
			}
			values.Set(name, tree.Pos{}, v)
		}
		item := &tree.Value{Kind: tree.Map}
		item.Set("key", tree.Pos{}, text(it.Key))
		item.Set("status", tree.Pos{}, text(string(it.Status)))
		item.Set("out", tree.Pos{}, values)
		out.Items = append(out.Items, item)
	}
	return out, nil
}
