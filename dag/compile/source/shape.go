package source

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/errors"

	"dagrun.dev/internal/tree"
)

// shapePath is the end of the path of every setting that holds the shape of an answer or of an artifact. In CUE a type
// may stand there, which is no value and becomes the JSON Schema that says the same.
//
// encoding/jsonschema.Generate of CUE does the like for whole packages; it is not used because it leaves out of
// `required` what has one value or a default, keeps references and joins constraints by allOf.
var shapePath = regexp.MustCompile(`\.with\.(answer|shapes\[?\.?[0-9]+\]?)\.schema(\.|$)`)

func isShape(path string) bool {
	m := shapePath.FindStringIndex(path)
	return m != nil && m[1] == len(path) && path[m[1]-1] != '.'
}

func inShape(labels []string) bool { return shapePath.MatchString("." + strings.Join(labels, ".")) }

// concrete returns what keeps a pipeline from being data. The shapes of answers need only be without contradiction.
func concrete(p cue.Value) error {
	err := p.Validate(cue.Concrete(true))
	if err == nil {
		return nil
	}
	var left errors.Error
	for _, e := range errors.Errors(err) {
		if !inShape(e.Path()) {
			left = errors.Append(left, e)
		}
	}
	for _, e := range errors.Errors(p.Validate()) {
		if inShape(e.Path()) {
			left = errors.Append(left, e)
		}
	}
	if left == nil { // no error, not one that is nil
		return nil
	}
	return left
}

// shape turns the CUE type of an answer into JSON Schema. It is false where v is such a schema already.
func (k *walker) shape(out *tree.Value, v cue.Value, w *written, path string, depth int) bool {
	if typ, _ := v.LookupPath(cue.ParsePath("type")).String(); typ == "object" || v.IncompleteKind() != cue.StructKind {
		return false
	}
	out.Kind = tree.Map
	k.fill(out, v, w, path, depth)
	return true
}

// schema turns a CUE type into JSON Schema as data.
func (k *walker) schema(v cue.Value, w *written, path string, depth int, around tree.Pos) *tree.Value {
	out := &tree.Value{Kind: tree.Map, Pos: k.index.place(v, w, around)}
	if k.within(out, path, depth) {
		k.fill(out, v, w, path, depth)
	}
	return out
}

// fill writes what v says into out.
func (k *walker) fill(out *tree.Value, v cue.Value, w *written, path string, depth int) {
	as := v // as it is written: evaluated, a list has forgotten how long it may be
	v = v.Eval()
	op, args := v.Expr()
	switch kind := v.IncompleteKind(); {
	case op == cue.OrOp:
		k.anyOf(out, disjuncts(v), w, path, depth)
	case kind == cue.StructKind:
		k.object(out, v, w, path, depth)
	case kind == cue.ListKind, kind == cue.BottomKind && elements(as).Exists():
		set(out, "type", textValue("array"))
		if item := elements(as); item.Exists() {
			set(out, "items", k.schema(item, w.field("0"), path+"[]", depth+1, out.Pos))
		} else if n, err := v.Len().Int64(); err != nil || n > 0 {
			k.fail(out, path, "a list of the shape needs one type for all its items: [...string]")
		}
		k.constraints(out, as, path)
	case op == cue.NoOp && len(args) == 1 && v.Kind() != cue.BottomKind && kind != cue.NullKind && !hasDefault(v):
		set(out, "const", k.value(v, nil, path, 0, out.Pos))
	case jsonTypes[kind] != "":
		set(out, "type", textValue(jsonTypes[kind]))
		k.constraints(out, v, path)
	case kind == cue.TopKind:
	default:
		k.fail(out, path, "the shape of an answer cannot say "+kind.String()+"; want types that JSON has")
	}
}

// elements is the type of the elements of a list. It may be found in a part only: CUE takes an open list for an
// empty one, which contradicts list.MinItems(1).
func elements(v cue.Value) cue.Value {
	item := v.LookupPath(cue.MakePath(cue.AnyIndex))
	if op, args := v.Expr(); op == cue.AndOp {
		for i := 0; i < len(args) && !item.Exists(); i++ {
			item = elements(args[i])
		}
	}
	return item
}

var jsonTypes = map[cue.Kind]string{
	cue.StringKind: "string", cue.IntKind: "integer", cue.NumberKind: "number", cue.FloatKind: "number",
	cue.BoolKind: "boolean", cue.NullKind: "null",
}

func hasDefault(v cue.Value) bool { _, ok := v.Default(); return ok && !v.Equals(v) }

// disjuncts are the parts of a disjunction, those of parts that are some themselves included.
func disjuncts(v cue.Value) (list []cue.Value) {
	op, args := v.Eval().Expr()
	if op != cue.OrOp {
		return []cue.Value{v}
	}
	for _, a := range args {
		list = append(list, disjuncts(a)...)
	}
	return list
}

// anyOf writes a disjunction: constants are an enum.
func (k *walker) anyOf(out *tree.Value, list []cue.Value, w *written, path string, depth int) {
	var schemas, values []*tree.Value
	for _, a := range list {
		s := k.schema(a, w, path, depth, out.Pos)
		if c := s.Get("const"); c != nil {
			values = append(values, c)
		} else {
			schemas = append(schemas, s)
		}
	}
	if len(schemas) == 0 {
		set(out, "enum", &tree.Value{Kind: tree.List, Items: values, Pos: out.Pos})
		return
	}
	if len(values) > 0 {
		enum := &tree.Value{Kind: tree.Map, Pos: out.Pos}
		set(enum, "enum", &tree.Value{Kind: tree.List, Items: values, Pos: out.Pos})
		schemas = append([]*tree.Value{enum}, schemas...)
	}
	if len(schemas) == 1 {
		out.Fields = append(out.Fields, schemas[0].Fields...)
		return
	}
	set(out, "anyOf", &tree.Value{Kind: tree.List, Items: schemas, Pos: out.Pos})
}

func (k *walker) object(out *tree.Value, v cue.Value, w *written, path string, depth int) {
	set(out, "type", textValue("object"))
	properties := &tree.Value{Kind: tree.Map, Pos: out.Pos}
	required := &tree.Value{Kind: tree.List, Pos: out.Pos}
	it, err := v.Fields(cue.Optional(true))
	if err != nil {
		k.fail(out, path, err.Error())
		return
	}
	for it.Next() {
		name := it.Selector().Unquoted()
		s := k.schema(it.Value(), w.field(name), tree.Join(path, name), depth+1, out.Pos)
		if doc := docOf(it.Value()); doc != "" && s.Get("description") == nil {
			set(s, "description", textValue(doc))
		}
		pos := k.index.key(w.field(name), s.Pos)
		properties.Fields = append(properties.Fields, tree.Field{Name: name, Pos: pos, Value: s})
		if !it.IsOptional() {
			required.Items = append(required.Items, &tree.Value{Kind: tree.String, Str: name, Pos: s.Pos})
		}
	}
	if len(properties.Fields) > 0 {
		set(out, "properties", properties)
	}
	if len(required.Items) > 0 {
		set(out, "required", required)
	}
	if further := v.LookupPath(cue.MakePath(cue.AnyString)); further.Exists() {
		below := &tree.Value{Kind: tree.Bool, Bool: true}
		if further.IncompleteKind() != cue.TopKind {
			below = k.schema(further, nil, path+"[_]", depth+1, out.Pos)
		}
		set(out, "additionalProperties", below)
	}
}

func docOf(v cue.Value) string {
	var lines []string
	for _, group := range v.Doc() {
		lines = append(lines, strings.TrimSpace(group.Text()))
	}
	return strings.Join(lines, "\n")
}

// bounds are the keywords of CUE's bounds, and of its functions.
var (
	bounds = map[cue.Op]string{
		cue.GreaterThanEqualOp: "minimum", cue.LessThanEqualOp: "maximum",
		cue.GreaterThanOp: "exclusiveMinimum", cue.LessThanOp: "exclusiveMaximum", cue.RegexMatchOp: "pattern",
	}
	boundCalls = map[string]string{
		"strings.MinRunes": "minLength", "strings.MaxRunes": "maxLength",
		"list.MinItems": "minItems", "list.MaxItems": "maxItems",
	}
)

// constraints writes the bounds of a value. A list is made of its items, which are looked at elsewhere.
func (k *walker) constraints(out *tree.Value, v cue.Value, path string) {
	op, args := v.Expr()
	switch keyword := bounds[op]; {
	case op == cue.AndOp:
		for _, a := range args {
			k.constraints(out, a, path)
		}
	case keyword != "" && unbounded(out, op, args[len(args)-1]):
	case keyword != "":
		set(out, keyword, k.value(args[len(args)-1], nil, path, 0, out.Pos))
	case op == cue.NotRegexMatchOp:
		refused(out, k.value(args[len(args)-1], nil, path, 0, out.Pos))
	case op == cue.CallOp && len(args) == 2 && boundCalls[fmt.Sprint(args[0])] != "":
		set(out, boundCalls[fmt.Sprint(args[0])], k.value(args[1], nil, path, 0, out.Pos))
	case op == cue.NoOp:
	case op == cue.SelectorOp:
		k.constraints(out, v.Eval(), path)
	default:
		k.fail(out, path, "the shape of an answer cannot say this ("+strconv.Quote(op.String())+"); want types, values, "+
			">=, >, <=, <, =~, !~, strings.MinRunes, strings.MaxRunes, list.MinItems, list.MaxItems")
	}
}

// unbounded reports whether a bound says no more than that an integer fits 64 bits, as all do: CUE's int64 and uint64
// are such bounds.
func unbounded(out *tree.Value, op cue.Op, bound cue.Value) bool {
	n, err := bound.Int(nil)
	switch typ := out.Get("type"); {
	case err != nil || typ == nil || typ.Str != "integer":
		return false
	case op == cue.GreaterThanEqualOp:
		return n.Cmp(big.NewInt(math.MinInt64)) <= 0
	case op == cue.LessThanEqualOp:
		return n.Cmp(big.NewInt(math.MaxInt64)) >= 0
	}
	return false
}

// refused writes a pattern that must not match; several are alternatives of one.
func refused(out, pattern *tree.Value) {
	if was := out.Get("not"); was != nil {
		pattern.Str = was.Get("pattern").Str + "|" + pattern.Str
	}
	not := &tree.Value{Kind: tree.Map}
	set(not, "pattern", pattern)
	set(out, "not", not)
}

func set(out *tree.Value, name string, v *tree.Value) {
	if v.Pos == (tree.Pos{}) {
		v.Pos = out.Pos
	}
	out.Set(name, out.Pos, v)
}

func textValue(s string) *tree.Value { return &tree.Value{Kind: tree.String, Str: s} }
