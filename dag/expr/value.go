package expr

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"dagrun.dev/internal/tree"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// typed returns v as a value of a declared type. Null is no value of any type but "any".
func typed(v *tree.Value, typ string) (ref.Val, error) {
	if strings.HasPrefix(typ, itemsPrefix) {
		typ = "list"
	}
	if ok := fits(v, typ); !ok {
		return nil, fmt.Errorf("is declared %s and holds %s", typ, kindNames[v.Kind])
	}
	if typ == "number" && v.Kind == tree.Int {
		return types.Double(v.Int), nil
	}
	return types.DefaultTypeAdapter.NativeToValue(v.Native()), nil
}

var kindNames = [...]string{"null", "bool", "int", "number", "string", "list", "map"}

// fits says whether v is a value of a declared type.
func fits(v *tree.Value, typ string) bool {
	switch typ {
	case "any":
		return true
	case "number":
		return v.Kind == tree.Int || v.Kind == tree.Float
	}
	return typ == kindNames[v.Kind]
}

// toTree returns the result of an expression as a value without a place. Whole numbers become
// Int, as in JSON; names of maps are sorted.
func toTree(v ref.Val) (*tree.Value, error) {
	budget := maxResult
	return appendTree(v, &budget)
}

func appendTree(v ref.Val, budget *int) (*tree.Value, error) {
	if *budget -= 8; *budget < 0 {
		return nil, fmt.Errorf("the result is larger than %d bytes", maxResult)
	}
	switch v := v.(type) {
	case types.String:
		*budget -= len(v)
		return &tree.Value{Kind: tree.String, Str: string(v)}, nil
	case types.Int:
		return &tree.Value{Kind: tree.Int, Int: int64(v)}, nil
	case types.Bool:
		return &tree.Value{Kind: tree.Bool, Bool: bool(v)}, nil
	case types.Null:
		return &tree.Value{Kind: tree.Null}, nil
	case types.Uint:
		if v > math.MaxInt64 {
			return nil, fmt.Errorf("%d does not fit 64 bits", uint64(v))
		}
		return &tree.Value{Kind: tree.Int, Int: int64(v)}, nil
	case types.Double:
		f := float64(v)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("the result is %v, which is not a number JSON has", f)
		}
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return &tree.Value{Kind: tree.Int, Int: int64(f)}, nil
		}
		return &tree.Value{Kind: tree.Float, Float: f}, nil
	case *types.Optional:
		if !v.HasValue() {
			return nil, errors.New("there is no value; write .orValue(...) to say what then")
		}
		return appendTree(v.GetValue(), budget)
	case traits.Mapper:
		return appendMap(v, budget)
	case traits.Lister:
		out := &tree.Value{Kind: tree.List, Items: []*tree.Value{}}
		for it := v.Iterator(); it.HasNext() == types.True; {
			x, err := appendTree(it.Next(), budget)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, x)
		}
		return out, nil
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("the result is a %s, which JSON does not have; write string(...)", v.Type().TypeName())
}

func appendMap(v traits.Mapper, budget *int) (*tree.Value, error) {
	out := &tree.Value{Kind: tree.Map}
	for it := v.Iterator(); it.HasNext() == types.True; {
		k := it.Next()
		name, ok := k.(types.String)
		if !ok {
			return nil, fmt.Errorf("a map with a key of type %s; want strings", k.Type().TypeName())
		}
		*budget -= len(name)
		x, err := appendTree(v.Get(k), budget)
		if err != nil {
			return nil, err
		}
		out.Fields = append(out.Fields, tree.Field{Name: string(name), Value: x})
	}
	// For determinism: maps have no order of their own.
	slices.SortFunc(out.Fields, func(a, b tree.Field) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
