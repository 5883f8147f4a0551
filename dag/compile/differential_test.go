package compile

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/build"
	"cuelang.org/go/cue/cuecontext"
	"cuelang.org/go/cue/parser"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

var (
	diffSpecs = flag.Int("diff.specs", 2000, "random specifications on which rules and CUE must agree")
	diffSeed  = flag.Uint64("diff.seed", 1, "seed of the random specifications")
)

// TestRulesAgreeWithCUE feeds random and randomly broken pipelines to CUE and to the rules
// compiled from it: both must accept the same ones and fill in the same defaults.
func TestRulesAgreeWithCUE(t *testing.T) {
	for _, c := range []struct {
		name  string
		kinds *nodes.Registry
		specs int
	}{
		{"constructs", nodes.NewRegistry(append(testKinds().Kinds(), oddKind)...), *diffSpecs / 2},
		{"built-in kinds", builtinSchemas(t), *diffSpecs / 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := schema.For(c.kinds)
			if err != nil {
				t.Fatal(err)
			}
			differ(t, s, c.specs)
		})
	}
}

// builtinSchemas is a registry of all kinds of this repository, by their schema files.
func builtinSchemas(t testing.TB) *nodes.Registry {
	files, _ := filepath.Glob("../../nodes/*/schema.cue")
	if len(files) == 0 {
		t.Fatal("no kinds")
	}
	var kinds []nodes.Kind
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, testKind(filepath.Base(filepath.Dir(f)), string(src)))
	}
	return nodes.NewRegistry(kinds...)
}

func differ(t *testing.T, s *schema.Schema, specs int) {
	g := &generator{r: rand.New(rand.NewPCG(*diffSeed, 0))}
	rule := s.Rule("Pipeline")
	schema := jsonSchema(t, s)
	var def, names cue.Value
	var ctx *cue.Context
	good, bad, wrong := 0, 0, 0
	for i := range specs {
		if i%500 == 0 { // a context keeps what it has seen
			def, names, ctx = pipelineOf(t, s.Library), pipelineOf(t, s.Names()), cuecontext.New()
		}
		v := g.value(rule, 0)
		for range g.r.IntN(4) {
			g.mutate(v)
		}
		text := v.AppendJSON(nil)
		v, err := tree.ParseJSON("p.json", text, tree.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		byCUE := def.Unify(ctx.CompileBytes(text))
		cueErr := byCUE.Validate(cue.Concrete(true))
		if ok := rule.Valid(v); ok != (schema.Validate(jsonValue(t, text)) == nil) {
			t.Errorf("spec %d: rules say %v, the JSON Schema says %v\n%s", i, ok, schema.Validate(jsonValue(t, text)), text)
		}
		ds := rule.Check(v, "")
		switch {
		case (cueErr == nil) != (len(ds) == 0):
			wrong++
			if wrong <= 5 {
				t.Errorf("spec %d: CUE says %v, rules say %v\n%s", i, cueErr, ds, text)
			}
		case cueErr != nil:
			bad++
		default:
			good++
			if filled := data(byCUE); !tree.Equal(filled, v) {
				t.Fatalf("spec %d: CUE fills in\n%s\nrules fill in\n%s", i, filled.AppendJSON(nil), v.AppendJSON(nil))
			}
			seen := names.Unify(ctx.CompileBytes(text))
			if err := seen.Validate(cue.Concrete(true)); err != nil {
				t.Fatalf("spec %d: with the names alone there are faults: %v\n%s", i, err, text)
			}
			if x := data(seen); rule.Check(x, "") != nil || !tree.Equal(x, v) {
				t.Fatalf("spec %d: with the names alone\n%s\nwith the schema\n%s", i, x.AppendJSON(nil), v.AppendJSON(nil))
			}
		}
	}
	t.Logf("%d good, %d bad, %d disagreements (seed %d)", good, bad, wrong, *diffSeed)
	if good < specs/20 || bad < specs/20 {
		t.Errorf("%d good and %d bad specs of %d: the test is too weak", good, bad, specs)
	}
}

// pipelineOf evaluates #Pipeline of a library.
func pipelineOf(t *testing.T, lib map[string][]byte) cue.Value {
	t.Helper()
	inst := build.NewContext().NewInstance("dagrun.dev/spec", nil)
	for path, src := range lib {
		if !strings.HasPrefix(path, "spec/") {
			continue
		}
		f, err := parser.ParseFile(path, src)
		must(t, err)
		must(t, inst.AddSyntax(f))
	}
	must(t, inst.Complete())
	pkg := cuecontext.New().BuildInstance(inst)
	must(t, pkg.Err())
	return pkg.LookupPath(cue.ParsePath("#Pipeline"))
}

// data returns what CUE makes of a specification.
func data(v cue.Value) *tree.Value {
	x := new(tree.Value)
	if b, err := v.MarshalJSON(); err != nil || x.UnmarshalJSON(b) != nil {
		return nil
	}
	return x
}

func jsonSchema(t *testing.T, s *schema.Schema) *jsonschema.Schema {
	t.Helper()
	doc := jsonValue(t, editorSchema(s))
	c := jsonschema.NewCompiler()
	if err := c.AddResource("pipeline.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("pipeline.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func jsonValue(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A generator makes values that mostly satisfy a rule, and breaks them.
type generator struct{ r *rand.Rand }

var words = []string{
	"a", "b/c", "x.md", "10s", "1h30m", "wait", "fail", "true", "${x}", "", "A B", "/abs", "exec", "ask", "odd",
	"agent", "prompt", "route", "approval", "none", "sim", "string", "int", "retry", "soft", "fenced", "..", "a..b", "é", "9", "text", "skip",
}

func (g *generator) value(r *rules.Rule, depth int) *tree.Value {
	switch {
	case r == nil || r.Types == 0 && len(r.AnyOf) == 0:
		return g.any(depth)
	case len(r.Enum) > 0:
		return r.Enum[g.r.IntN(len(r.Enum))].Clone()
	case len(r.AnyOf) > 0:
		return g.value(r.AnyOf[g.r.IntN(len(r.AnyOf))], depth)
	}
	var kinds []tree.Kind
	for k := tree.Null; k <= tree.Map; k++ {
		if r.Types.Has(k) {
			kinds = append(kinds, k)
		}
	}
	v := &tree.Value{Kind: kinds[g.r.IntN(len(kinds))]}
	switch v.Kind {
	case tree.Map:
		g.fields(v, r, depth)
	case tree.List:
		for _, p := range r.Prefix {
			v.Items = append(v.Items, g.value(p, depth+1))
		}
		for range g.r.IntN(3) {
			if r.Items != nil {
				v.Items = append(v.Items, g.value(r.Items, depth+1))
			}
		}
	default:
		for range 40 {
			g.scalar(v)
			if r.Valid(v) {
				break
			}
		}
	}
	return v
}

func (g *generator) fields(v *tree.Value, r *rules.Rule, depth int) {
	for i := range r.Fields {
		f := &r.Fields[i]
		if !f.Required && g.r.IntN(4+depth) > 1 && f.By == "" {
			continue
		}
		rule := f.Rule
		if f.By != "" {
			if by := v.Get(f.By); by != nil && f.Cases[by.Str] != nil {
				rule = f.Cases[by.Str]
			}
		}
		v.Fields = append(v.Fields, tree.Field{Name: f.Name, Value: g.value(rule, depth+1)})
	}
	for _, p := range r.Patterns {
		for range g.r.IntN(3) {
			key := g.value(p.Key, depth+1)
			if key.Kind == tree.String && v.Get(key.Str) == nil && r.Field(key.Str) == nil {
				v.Fields = append(v.Fields, tree.Field{Name: key.Str, Value: g.value(p.Rule, depth+1)})
			}
		}
	}
}

func (g *generator) scalar(v *tree.Value) {
	switch v.Kind {
	case tree.Bool:
		v.Bool = g.r.IntN(2) == 0
	case tree.Int:
		v.Int = []int64{0, 1, -1, 2, 3, 5, 10, 100, 101, 255, 256, 1000, 1001, 100000, 1000000, 1000001, 1 << 40}[g.r.IntN(17)]
	case tree.Float:
		v.Float = []float64{0.5, 0.25, 1.5, -0.1, 99.75, 1e9 + .5}[g.r.IntN(6)]
	case tree.String:
		v.Str = words[g.r.IntN(len(words))]
	}
}

func (g *generator) any(depth int) *tree.Value {
	v := &tree.Value{Kind: tree.Kind(g.r.IntN(int(tree.Map) + 1))}
	if depth > 4 && v.Kind >= tree.List {
		v.Kind = tree.String
	}
	g.scalar(v)
	for i := range g.r.IntN(3) {
		switch v.Kind {
		case tree.List:
			v.Items = append(v.Items, g.any(depth+1))
		case tree.Map:
			v.Fields = append(v.Fields, tree.Field{Name: fmt.Sprint("k", i), Value: g.any(depth + 1)})
		}
	}
	return v
}

// mutate breaks one place of v, often.
func (g *generator) mutate(v *tree.Value) {
	var all []*tree.Value
	var walk func(*tree.Value)
	walk = func(v *tree.Value) {
		all = append(all, v)
		for _, x := range v.Items {
			walk(x)
		}
		for _, f := range v.Fields {
			walk(f.Value)
		}
	}
	walk(v)
	at := all[g.r.IntN(len(all))]
	switch n := g.r.IntN(6); {
	case n == 0 && len(at.Fields) > 0: // a field less
		i := g.r.IntN(len(at.Fields))
		at.Fields = append(at.Fields[:i:i], at.Fields[i+1:]...)
	case n == 1 && at.Kind == tree.Map: // a field more
		name := words[g.r.IntN(len(words))]
		if at.Get(name) == nil && name != "" {
			at.Fields = append(at.Fields, tree.Field{Name: name, Value: g.any(2)})
		}
	case n == 2 && len(at.Fields) > 0: // a name misspelt
		f := &at.Fields[g.r.IntN(len(at.Fields))]
		if at.Get(f.Name+"x") == nil {
			f.Name += "x"
		}
	case n == 3 && at.Kind == tree.List:
		at.Items = append(at.Items, g.any(2))
	case n == 4:
		other := all[g.r.IntN(len(all))].Clone()
		if len(all) > 1 && at != v {
			*at = *other
		}
	default:
		*at = *g.any(2)
	}
}
