package shape

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"dagrun.dev/internal/tree"
)

// limits of an answer: it becomes values of events.
var limits = tree.Limits{Bytes: 4 << 20, Depth: 64, Values: 100_000}

// Parse reads an answer and holds it against the shape. What it returns is made of map[string]any, []any,
// string, bool, nil, int64 and float64: whole numbers are exact. A null where the shape asks for a field that may be
// left out is taken for the field left out. The error is one line; root is what it calls the answer.
func (s *Shape) Parse(raw []byte, root string) (map[string]any, error) {
	v, err := tree.ParseJSON("", bytes.TrimSpace(raw), limits)
	if err != nil {
		var d tree.Diagnostic
		if errors.As(err, &d) {
			return nil, fmt.Errorf("%s is no JSON object: line %d, column %d: %s", root, d.Pos.Line, d.Pos.Col, d.Text)
		}
		return nil, fmt.Errorf("%s is no JSON object: %w", root, err)
	}
	if v.Kind != tree.Map {
		return nil, fmt.Errorf("%s: want a JSON object", root)
	}
	object := v.NativeFunc(exactly).(map[string]any)
	dropNulls(s.top, object)
	if err := s.check(object, root); err != nil {
		return nil, err
	}
	outputs := s.Outputs()
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if f, ok := object[name].(float64); ok && strings.HasPrefix(outputs[name], "int") {
			return nil, fmt.Errorf("%s.%s: %g does not fit 64 bits", root, name, f)
		}
	}
	return object, nil
}

// exactly returns a number as the integer that it is where a double would round it ("9007199254740993.0").
func exactly(v *tree.Value) any {
	if f := math.Abs(v.Float); f < 1<<53 || f > 1<<63 {
		return v.Float
	}
	r, ok := new(big.Rat).SetString(v.Str)
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return v.Float
	}
	return r.Num().Int64()
}

// dropNulls takes out the nulls that stand for fields left out: services that want every field ask models for them.
func dropNulls(schema any, v any) {
	s, _ := schema.(map[string]any)
	switch v := v.(type) {
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name, below := range properties {
			if x, given := v[name]; given && x == nil && !requires(s, name) && !slices.Contains(typesOf(below), "null") {
				delete(v, name)
			} else {
				dropNulls(below, x)
			}
		}
	case []any:
		for _, x := range v {
			dropNulls(s["items"], x)
		}
	}
	alternatives, _ := s["anyOf"].([]any)
	for _, below := range alternatives {
		dropNulls(below, v)
	}
}
