package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"dagrun.dev/internal/printable"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
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
	if err := s.check.Validate(object); err != nil {
		return nil, Mistakes(err, root)
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

// mostMistakes is how many mistakes of one answer are said: all that a model is likely to make at once.
const mostMistakes = 5

// Mistakes says in one line where a value does not fit, by path, and what was wanted there; root is what it calls the
// value.
func Mistakes(err error, root string) error {
	lines := leaves(err, func(at []string) string { return root + dotted(at) })
	slices.Sort(lines) // the checker ranges over maps
	lines = slices.Compact(lines)
	if n := len(lines) - mostMistakes; n > 0 {
		lines = append(lines[:mostMistakes], fmt.Sprintf("and %d more", n))
	}
	return errors.New(strings.Join(lines, "; "))
}

// schemaProblems are what JSON Schema itself finds wrong with a schema.
func schemaProblems(err error) []nodes.Problem {
	var problems []nodes.Problem
	for _, line := range leaves(err, dotted) {
		path, text, _ := strings.Cut(line, ": ")
		problems = append(problems, nodes.Problem{Path: strings.TrimPrefix(path, "."), Text: text})
	}
	if problems == nil {
		problems = []nodes.Problem{{Text: err.Error()}}
	}
	return problems
}

// leaves returns a line for each mistake that is not made of others: its place, as name writes it, and what was wanted.
func leaves(err error, name func(at []string) string) (lines []string) {
	var bad *jsonschema.SchemaValidationError
	if errors.As(err, &bad) {
		err = bad.Err
	}
	var e *jsonschema.ValidationError
	if !errors.As(err, &e) {
		return nil
	}
	causes := e.Causes
	if len(causes) == 0 {
		return []string{name(e.InstanceLocation) + ": " + wanted(e.ErrorKind)}
	}
	if _, ok := e.ErrorKind.(*kind.AnyOf); ok {
		// That the value is of no other alternative's type helps nobody, and that it is not null least of all.
		null := func(t *kind.Type) bool { return slices.Equal(t.Want, []string{"null"}) }
		causes = without(causes, e.InstanceLocation, func(*kind.Type) bool { return true })
		causes = without(causes, e.InstanceLocation, null)
	}
	for _, c := range causes {
		lines = append(lines, leaves(c, name)...)
	}
	return lines
}

// without returns the causes but for such types that are wanted in the place itself; all of them where there are no
// others.
func without(
	causes []*jsonschema.ValidationError, at []string, such func(*kind.Type) bool,
) []*jsonschema.ValidationError {
	rest := slices.DeleteFunc(slices.Clone(causes), func(c *jsonschema.ValidationError) bool {
		t, ok := c.ErrorKind.(*kind.Type)
		return ok && len(c.InstanceLocation) == len(at) && such(t)
	})
	if len(rest) == 0 {
		return causes
	}
	return rest
}

// dotted writes a place as .fixes[2].class.
func dotted(at []string) string {
	var b strings.Builder
	for _, step := range at {
		if _, err := strconv.Atoi(step); err == nil {
			b.WriteString("[" + step + "]")
		} else {
			b.WriteString("." + step)
		}
	}
	return b.String()
}

// wanted says what was wanted at a place and what stands there.
func wanted(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("want %s, got %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Enum:
		return fmt.Sprintf("want one of %s, got %s", shown(k.Want...), shown(k.Got))
	case *kind.Const:
		return fmt.Sprintf("want %s, got %s", shown(k.Want), shown(k.Got))
	case *kind.Required:
		return "missing " + strings.Join(k.Missing, ", ")
	case *kind.AdditionalProperties:
		return "no field is named " + strings.Join(k.Properties, ", ")
	case *kind.Pattern:
		return fmt.Sprintf("want a text that matches %s, got %s", k.Want, shown(k.Got))
	}
	return k.LocalizedString(printer)
}

// shown lists values for a message.
func shown(values ...any) string {
	list := make([]string, len(values))
	for i, v := range values {
		raw, err := json.Marshal(v)
		if err != nil {
			raw = fmt.Append(nil, v)
		}
		list[i] = printable.Clip(string(raw), 60)
	}
	return strings.Join(list, ", ")
}
