package expr

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/nodes"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
)

// Formulas compiles the expressions that a kind evaluates itself, in the order of x.List, or says what is wrong with
// them. One that is a field is typed before those that read it, whatever their order.
func (l *Lang) Formulas(x *nodes.Formulas) ([]nodes.Formula, []nodes.Problem) {
	fields := map[string]string{} // by name; "" = of a formula, and not typed yet
	maps.Copy(fields, x.Fields)
	for _, f := range x.List {
		if f.Field != "" {
			fields[f.Field] = ""
		}
	}
	out := make([]nodes.Formula, len(x.List))
	var problems []nodes.Problem
	left := make([]int, len(x.List))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		typed, err := l.about(x, fields)
		if err != nil {
			return nil, append(problems, nodes.Problem{Text: err.Error()})
		}
		waits := slices.DeleteFunc(slices.Clone(left), func(i int) bool {
			f, done, text := typed.formula(x, &x.List[i])
			switch {
			case text != "":
				problems = append(problems, nodes.Problem{Path: x.List[i].Path, Text: text})
				f.Type = "any" // what is said of it is said once
			case !done:
				return false
			}
			if out[i] = f; x.List[i].Field != "" {
				fields[x.List[i].Field] = f.Type
			}
			return true
		})
		if len(waits) == len(left) {
			return nil, append(problems, nodes.Problem{Path: x.List[left[0]].Path,
				Text: fmt.Sprintf("%s.%s depends on itself", x.Var, x.List[left[0]].Field)})
		}
		left = waits
	}
	return out, problems
}

// about returns the language with the variables of formulas. Fields without a type can be parsed, and not typed.
func (l *Lang) about(x *nodes.Formulas, fields map[string]string) (*Lang, error) {
	out, err := l.With()
	if err != nil {
		return nil, err
	}
	out.subject = x.Var
	out.fields = maps.Clone(fields)
	var opts []cel.EnvOption
	for name, typ := range fields { // a set
		if typ != "" {
			opts = append(opts, cel.Variable(x.Var+"."+name, celType(typ)))
		}
	}
	for name, typ := range x.Also { // a set
		out.vars[name] = typ
		opts = append(opts, cel.Variable(name, celType(typ)))
	}
	out.env, err = l.env.Extend(opts...)
	return out, err
}

func celType(typ string) *cel.Type {
	if typ == "timestamp" {
		return cel.TimestampType
	}
	if t, ok := valueTypes[typ]; ok {
		return t.cel
	}
	return cel.DynType
}

// formula compiles one; done is false where it reads a field that is not typed yet.
func (l *Lang) formula(x *nodes.Formulas, t *nodes.FormulaText) (f nodes.Formula, done bool, problem string) {
	if strings.Contains(t.Text, "${") {
		return f, true, "this is an expression and no template: write it without ${}"
	}
	e, problems := l.Parse(t.Text)
	if len(problems) > 0 {
		return f, true, problems[0]
	}
	for _, r := range e.Refs() {
		if r.Root != "params" {
			return f, true, fmt.Sprintf("%s cannot be read here: an expression of these settings is about %s, and may read "+
				"parameters", r, x.Var)
		}
	}
	for _, name := range e.shaped.reads {
		if typ, is := l.fields[name]; is && typ == "" {
			return f, false, ""
		}
	}
	p, problems := e.Check(Decls{}, "")
	if len(problems) > 0 {
		return f, true, problems[0]
	}
	switch name := strings.TrimPrefix(p.kind.TypeName(), "google.protobuf."); {
	case name != p.kind.TypeName(): // Timestamp, Duration
		return f, true, fmt.Sprintf("want a value of JSON, got a %s: write string(...)", strings.ToLower(name))
	case p.Type == "optional":
		return f, true, "there may be no value; write .orValue(...) to say what then"
	case len(t.Want) > 0 && p.Type != "any" && !slices.Contains(t.Want, p.Type):
		return f, true, fmt.Sprintf("want %s, got %s", strings.Join(t.Want, " or "), p.Type)
	}
	f = nodes.Formula{Type: p.Type, Reads: e.shaped.reads, Digest: p.digest(l, x, t)}
	eval := func(value func(string) (any, error)) (any, error) { return p.about(x.Var+".", value) }
	if field, is := strings.CutPrefix(t.Text, x.Var+"."); is && l.fields[field] == p.Type {
		eval = func(value func(string) (any, error)) (any, error) { return value(field) } // nothing is to be computed
	}
	f.Eval = func(value func(string) (any, error)) (any, error) {
		v, err := eval(value)
		if n, whole := v.(int64); whole && p.Type == "number" {
			v = float64(n)
		}
		if err == nil && len(t.Want) > 0 && p.Type == "any" && !slices.Contains(t.Want, typeOf(v)) {
			err = fmt.Errorf("want %s, got %s", strings.Join(t.Want, " or "), typeOf(v))
		}
		return v, err
	}
	return f, true, ""
}

// digest is over a formula, the types of what it reads, and the parameters.
func (p *Program) digest(l *Lang, x *nodes.Formulas, t *nodes.FormulaText) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q\n", t.Text, x.Var, t.Want, p.fns)
	for _, name := range p.expr.shaped.reads {
		fmt.Fprintf(h, "%q %q\n", name, l.fields[name])
	}
	for _, r := range p.expr.Refs() {
		fmt.Fprintf(h, "%s %s\n", r, l.params[r.Name].AppendJSON(nil))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// about evaluates a formula, whose fields are read under a prefix.
func (p *Program) about(prefix string, value func(name string) (any, error)) (any, error) {
	v, err := p.run(&activation{value: func(name string) (any, bool) {
		v, err := value(strings.TrimPrefix(name, prefix))
		if err != nil {
			v = types.WrapErr(err)
		}
		return v, true
	}}, nil)
	if err != nil {
		return nil, err
	}
	t, err := toTree(v)
	if err != nil {
		return nil, err
	}
	return t.Native(), nil
}

// typeOf names the type of a value as JSON is decoded.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "number"
	case []any:
		return "list"
	}
	return "map"
}
