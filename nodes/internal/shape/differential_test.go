package shape

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dagrun.dev/internal/tree"
)

var schemas = flag.Int("schemas", 1000, "how many schemas TestDifferential makes")

// reference is a schema as a checker of all of JSON Schema reads it.
func reference(t *testing.T, raw []byte) (*jsonschema.Schema, error) {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("test:schema", v); err != nil {
		return nil, err
	}
	return c.Compile("test:schema")
}

// places returns where a value does not fit.
func places(e *jsonschema.ValidationError) (paths []string) {
	if len(e.Causes) == 0 {
		path := ""
		for _, step := range e.InstanceLocation {
			if regexp.MustCompile(`^\d+$`).MatchString(step) {
				path += "[" + step + "]"
			} else {
				path = tree.Join(path, step)
			}
		}
		return []string{path}
	}
	for _, c := range e.Causes {
		paths = append(paths, places(c)...)
	}
	return paths
}

// schemas and values are valid where they are for a checker of all of JSON Schema, and do not fit in the same
// places.
func TestDifferential(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	g := generator{random}
	valid, wrong, refused := 0, 0, 0
	for range *schemas {
		raw, _ := json.Marshal(g.schema(3))
		want, err := reference(t, raw)
		got, problems := Compile(raw)
		if (err == nil) != (problems == nil) {
			t.Fatalf("%s: got %v, want %v", raw, problems, err)
		}
		if err != nil {
			refused++
			continue
		}
		for range 10 {
			text, _ := json.Marshal(g.value(3))
			v, _ := decode(text)
			err, _ := want.Validate(v).(*jsonschema.ValidationError)
			mistakes := got.mistakes(got.top, v, "")
			if (err == nil) != (mistakes == nil) {
				t.Fatalf("%s of %s: got %v, want %v", text, raw, mistakes, err)
			}
			if err == nil {
				valid++
				continue
			}
			wrong++
			var paths []string
			for _, p := range mistakes {
				paths = append(paths, p.Path)
			}
			all := places(err)
			slices.Sort(paths)
			slices.Sort(all)
			// Of alternatives only the nearest ones' mistakes are said.
			if same := slices.Equal(slices.Compact(paths), slices.Compact(all)); !same && !strings.Contains(string(raw), "anyOf") {
				t.Fatalf("%s of %s: got %v, want %v", text, raw, mistakes, err)
			}
		}
	}
	if min(valid, wrong, refused) < *schemas/20 {
		t.Errorf("%d values fit, %d do not, and %d schemas are refused: want some of each", valid, wrong, refused)
	}
}

// A generator makes schemas of which one in some is wrong, and values of which some fit.
type generator struct{ *rand.Rand }

func (g generator) one(of ...any) any { return of[g.IntN(len(of))] }

// holders are keywords with schemas. A truth value is one in JSON Schema, and none in a shape.
var holders = []string{"additionalProperties", "anyOf", "items", "not", "properties"}

func (g generator) schema(depth int) any {
	s := map[string]any{}
	for range g.IntN(4) {
		name := keywords[g.IntN(len(keywords))]
		if depth == 0 && slices.Contains(holders, name) {
			continue
		}
		s[name] = g.keyword(name, depth)
		if g.IntN(40) == 0 && !slices.Contains(holders, name) {
			s[name] = g.value(1)
		}
	}
	return s
}

func (g generator) keyword(name string, depth int) any {
	switch name {
	case "additionalProperties":
		return g.one(true, false, g.schema(depth-1))
	case "anyOf":
		return []any{g.schema(depth - 1), g.schema(depth - 1)}[g.IntN(2):]
	case "const":
		return g.value(2)
	case "enum":
		return []any{g.value(1), g.value(0), g.value(0)}[g.IntN(4):]
	case "items", "not":
		return g.schema(depth - 1)
	case "pattern":
		return g.one("^a", "b$", "é", "(", "x{2}")
	case "properties":
		return map[string]any{"a": g.schema(depth - 1), "b": g.schema(depth - 1)}
	case "required":
		return []any{g.one("a", "b", "é"), g.one("a", "c")}[g.IntN(3):]
	case "title", "description":
		return "a text"
	case "type":
		types := []any{"array", "boolean", "integer", "null", "number", "object", "string"}
		return g.one(g.one(types...), []any{g.one(types...), g.one(types...)})
	}
	return g.one(json.Number("1.0"), json.Number("2e0"), 0, 1, 2, 3, json.Number("-1"), json.Number("2.5"))
}

func (g generator) value(depth int) any {
	if depth == 0 || g.IntN(3) == 0 {
		return g.one(nil, true, false, "", "a", "ab", "éé", "xx", 0, -1, 1, 2, json.Number("1.0"), json.Number("1e0"), json.Number("2.5"),
			json.Number("9007199254740993"), json.Number("9007199254740992.0"), json.Number("-1e400"))
	}
	if g.IntN(2) == 0 {
		return []any{g.value(depth - 1), g.value(depth - 1), g.value(depth - 1)}[g.IntN(4):]
	}
	v := map[string]any{"a": g.value(depth - 1), "b": g.value(depth - 1), "c": g.value(depth - 1), "é": g.value(0)}
	for range g.IntN(4) {
		delete(v, g.one("a", "b", "c", "é").(string))
	}
	return v
}

// what the tests of JSON Schema's own authors say of schemas that a shape may be.
func TestOfficialSuite(t *testing.T) {
	raw, err := os.ReadFile("testdata/suite.json")
	if err != nil {
		t.Fatal(err)
	}
	var groups []struct {
		Description string
		Schema      json.RawMessage
		Tests       []struct {
			Description string
			Data        json.RawMessage
			Valid       bool
		}
	}
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range groups {
		s, problems := Compile(g.Schema)
		if s == nil {
			t.Errorf("%s: %v", g.Description, problems)
			continue
		}
		for _, test := range g.Tests {
			n++
			v, _ := decode(test.Data)
			if err := s.check(v, "it"); (err == nil) != test.Valid {
				t.Errorf("%s: %s: got %v, want valid %v", g.Description, test.Description, err, test.Valid)
			}
		}
	}
	if n < 350 {
		t.Errorf("%d tests, want more", n)
	}
}

// a number that nobody could write out is a mistake of the answer. It takes no time, and it ends nothing.
func TestEndlessNumbers(t *testing.T) {
	for _, schema := range []string{`{"maximum": 5}`, `{"type": "integer"}`, `{"enum": [1]}`, `{"const": 1}`, `{"anyOf": [{"type": "integer"}, {"minimum": 1}]}`} {
		for _, answer := range []string{"1e999999999", "-1e-999999999", "1" + strings.Repeat("0", 1<<20)} {
			s, problems := Compile(json.RawMessage(schema))
			if s == nil {
				t.Fatal(problems)
			}
			v, _ := decode(json.RawMessage(answer))
			if err := s.check(v, "it"); err == nil || !strings.HasPrefix(err.Error(), "it: want a number of at most a thousand digits") {
				t.Errorf("%.20s of %s: got %v", answer, schema, err)
			}
		}
	}
	if _, problems := Compile(json.RawMessage(`{"minimum": 1e999999999}`)); fmt.Sprint(problems) != "[{minimum want a number of at most a thousand digits, got 1e999999999}]" {
		t.Errorf("got %v", problems)
	}
}
