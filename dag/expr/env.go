package expr

import (
	"crypto/sha256"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/ext"
)

// Bounds of one expression. They keep a mistake from taking all memory or time; no honest expression
// comes near them.
const (
	maxSource = 16 << 10  // bytes of source
	maxDepth  = 100       // nesting
	maxSteps  = 1_000_000 // of loops
	maxOutput = 4 << 20   // bytes of a text that is made
	maxResult = 16 << 20  // bytes of the result as JSON: the list of a large foreach
	maxList   = 100_000   // elements that range and rotate may make
	maxPad    = 64        // digits that pad may make
)

// baseEnv holds the functions of the language and no variable. Beside CEL's own: strings
// (join, split, format, replace, ...), lists (slice, flatten, sort, distinct, ...), math, sets,
// two-variable comprehensions, cel.bind, optional values, and these:
//
//	floor(x) -> int            the largest whole number not above x
//	rotate(list, n) -> list    the list shifted left by n, round and round; n may be negative
//	pad(n, width) -> string    n with leading zeros: pad(7, 3) is "007"
//	json(x) -> string          x as compact JSON, names sorted
//	slug(text) -> string       the text as a name that ids may have
//	list.sum() -> number       of its numbers: whole where all are
var baseEnv = sync.OnceValues(func() (*cel.Env, error) {
	opts := []cel.EnvOption{
		cel.OptionalTypes(), ext.Strings(ext.StringsMaxPrecision(100)),
		ext.Lists(ext.ListsMaxRangeSize(maxList)), ext.Math(), ext.Sets(),
		ext.TwoVarComprehensions(), ext.Bindings(),
		cel.CrossTypeNumericComparisons(true), cel.DefaultUTCTimeZone(true),
		cel.ParserExpressionSizeLimit(maxSource), cel.ParserRecursionLimit(maxDepth),
		cel.ExpressionNodeLimit(4000), cel.EnableMacroCallTracking(),
		cel.Variable(refsName, refsType),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	}
	return cel.NewCustomEnv(append(append(opts, cel.StdLib()), own()...)...)
})

func own() []cel.EnvOption {
	list := cel.ListType(cel.TypeParamType("T"))
	opts := []cel.EnvOption{
		cel.Function("floor",
			cel.Overload("floor_double", []*cel.Type{cel.DoubleType}, cel.IntType, cel.UnaryBinding(floor)),
			cel.Overload("floor_int", []*cel.Type{cel.IntType}, cel.IntType, cel.UnaryBinding(floor))),
		cel.Function("rotate",
			cel.Overload("rotate_list_int", []*cel.Type{list, cel.IntType}, list, cel.BinaryBinding(rotate))),
		cel.Function("pad",
			cel.Overload("pad_int_int", []*cel.Type{cel.IntType, cel.IntType}, cel.StringType, cel.BinaryBinding(pad))),
		cel.Function("json",
			cel.Overload("json_dyn", []*cel.Type{cel.DynType}, cel.StringType, cel.UnaryBinding(toJSON))),
		cel.Function("slug",
			cel.Overload("slug_string", []*cel.Type{cel.StringType}, cel.StringType, cel.UnaryBinding(slug))),
		cel.Function("sum",
			cel.MemberOverload("list_sum", []*cel.Type{cel.ListType(cel.DynType)}, cel.DynType, cel.UnaryBinding(sum))),
	}
	for name, t := range valueTypes {
		opts = append(opts,
			refGetter(refFunction(name, false), "ref_"+name, t.cel),
			refGetter(refFunction(name, true), "opt_"+name, cel.OptionalType(t.cel)))
	}
	return opts
}

// refGetter is a function that gives the value of a reference.
func refGetter(name, overload string, t *cel.Type) cel.EnvOption {
	return cel.Function(name, cel.Overload(overload, []*cel.Type{refsType, cel.IntType}, t, cel.BinaryBinding(getRef)))
}

// valueTypes are the types that outputs and parameters may be declared with, and how one writes a value
// of each that stands for none.
var valueTypes = map[string]struct {
	cel  *cel.Type
	none string
}{
	"string": {cel.StringType, "''"},
	"int":    {cel.IntType, "0"},
	"number": {cel.DoubleType, "0.0"},
	"bool":   {cel.BoolType, "false"},
	"list":   {cel.ListType(cel.DynType), "[]"},
	"map":    {cel.MapType(cel.StringType, cel.DynType), "{}"},
	"any":    {cel.DynType, "null"},
}

func floor(v ref.Val) ref.Val {
	switch v := v.(type) {
	case types.Int:
		return v
	case types.Double:
		f := math.Floor(float64(v))
		if math.IsNaN(f) || math.Abs(f) >= 1<<63 {
			return types.NewErr("floor: %v does not fit an int", float64(v))
		}
		return types.Int(f)
	}
	return types.MaybeNoSuchOverloadErr(v)
}

func rotate(l, by ref.Val) ref.Val {
	list, ok := l.(traits.Lister)
	n, isInt := by.(types.Int)
	if !ok || !isInt {
		return types.MaybeNoSuchOverloadErr(l)
	}
	size := int64(list.Size().(types.Int))
	if size > maxList {
		return types.NewErr("rotate: the list has more than %d elements", maxList)
	}
	out := make([]ref.Val, size)
	for i := range size {
		out[i] = list.Get(types.Int(((i+int64(n))%size + size) % size))
	}
	return types.NewRefValList(types.DefaultTypeAdapter, out)
}

func pad(n, width ref.Val) ref.Val {
	v, ok := n.(types.Int)
	w, ok2 := width.(types.Int)
	if !ok || !ok2 {
		return types.MaybeNoSuchOverloadErr(n)
	}
	if w < 0 || w > maxPad {
		return types.NewErr("pad: want a width from 0 to %d", maxPad)
	}
	if v < 0 { // the sign does not count
		return types.String("-" + strings.TrimPrefix(fmt.Sprintf("%0*d", int(w)+1, int64(v)), "-"))
	}
	return types.String(fmt.Sprintf("%0*d", int(w), int64(v)))
}

func toJSON(v ref.Val) ref.Val {
	x, err := toTree(v)
	if err != nil {
		return types.NewErr("json: %v", err)
	}
	return types.String(x.AppendJSON(nil))
}

var noName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// slug keeps what a name may hold. Where that is not all, a digest of the text keeps the names of two texts apart.
func slug(v ref.Val) ref.Val {
	text, ok := v.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	name := strings.TrimLeft(noName.ReplaceAllString(string(text), "-"), "._-")
	name = name[:min(len(name), 64)]
	if name != string(text) || name == "" {
		of := sha256.Sum256([]byte(text))
		name = strings.TrimLeft(fmt.Sprintf("%s-%x", strings.TrimRight(name, "-"), of[:4]), "-")
	}
	return types.String(name)
}

func sum(v ref.Val) ref.Val {
	list, ok := v.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(v)
	}
	whole, part, parts := types.IntZero, 0.0, false
	for it := list.Iterator(); it.HasNext() == types.True; {
		switch x := it.Next().(type) {
		case types.Int:
			v := whole.Add(x)
			if types.IsError(v) {
				return v
			}
			whole = v.(types.Int)
		case types.Double:
			part, parts = part+float64(x), true
		default:
			return types.NewErr("sum: want numbers, got a %s", x.Type().TypeName())
		}
	}
	if parts {
		return types.Double(whole) + types.Double(part)
	}
	return whole
}
