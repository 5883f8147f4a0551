package compile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/parser"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// TestCompileRuleCases checks the data of the failure cases d-libs/08 and 10 against rules made
// of their CUE: missing fields are found, unknown ones told or doubted, alternatives told briefly.
func TestCompileRuleCases(t *testing.T) {
	ran := 0
	dirs, _ := filepath.Glob("testdata/cases/*")
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "expect.md"))
		must(t, err)
		for _, line := range strings.Split(string(text), "\n") {
			var c struct {
				Schema, Data, Outcome, Path string
				Has                         []string `json:"message_has"`
				Lines                       int      `json:"message_max_lines"`
			}
			if line, ok := strings.CutPrefix(line, "  - {"); !ok || json.Unmarshal([]byte("{"+line), &c) != nil {
				continue
			}
			ran++
			src, err := os.ReadFile(filepath.Join(dir, c.Schema))
			must(t, err)
			r, err := compileRule(c.Schema, string(src), "#W")
			must(t, err)
			data, err := os.ReadFile(filepath.Join(dir, c.Data))
			must(t, err)
			v, err := tree.ParseJSON(c.Data, data, tree.Defaults)
			must(t, err)
			mistakes := r.Check(v, "")
			_, doubts := r.CheckTemplates(v, "")
			got := map[bool]string{true: "ok", false: "invalid"}[len(mistakes) == 0]
			if len(mistakes) == 0 && len(doubts) > 0 {
				got = "ok_warn"
			}
			if got != c.Outcome {
				t.Errorf("%s with %s: %s, want %s: %v", c.Data, c.Schema, got, c.Outcome, mistakes)
			}
			said := mistakes.Error()
			for _, has := range append(c.Has, strings.ReplaceAll(c.Path, ".0.", "[0].")) {
				if !strings.Contains(said, has) {
					t.Errorf("%s with %s: %q does not say %s", c.Data, c.Schema, said, has)
				}
			}
			if c.Lines > 0 && len(mistakes) > c.Lines {
				t.Errorf("%d lines: %s", len(mistakes), said)
			}
		}
	}
	if ran != 7 {
		t.Errorf("%d of 7 inputs", ran)
	}
}

// TestCompileRuleRefuses: what a rule cannot say is an error, never a weaker rule.
func TestCompileRuleRefuses(t *testing.T) {
	for src, want := range map[string]string{
		"#W: {a: string, b: a}":                                 "a reference to something else than a definition",
		"import \"list\"\n#W: {a: list.MaxItems(2) & [...int]}": "a validator of lists",
		"#W: {a: string, if a == \"x\" {b: int}}":               "a comprehension",
		"#W: {a?: #W}":                          "the definition contains itself",
		"#W: {a: bytes}":                        "no rule for type bytes",
		"#W: {a: int & (1 | 2 | >5)}":           "alternatives inside a conjunction",
		"#W: {":                                 "expected",
		"#W: {a: string, b: a | int}":           "a reference to something else than a definition",
		"#W: {a: string, b: \"x\\(a)\"}":        "no rule for operator",
		"#W: {a: string, if a != _|_ {b: int}}": "a comprehension",
		"#W: {a: string, let x = a, b: x}":      "a let clause",
		"#W: {[k=string]: k}":                   "an alias",
		"#W: {a: string, (a): 1}":               "a computed field",
		"#V: {}":                                "field not found",
	} {
		_, err := compileRule("w.cue", src, "#W")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
	}
}

// TestLanguagesAgree (D-3): the same pipeline as CUE, YAML and JSON is the same tree.
func TestLanguagesAgree(t *testing.T) {
	t.Chdir(t.TempDir())
	s := testSchema(t)
	g := &generator{r: rand.New(rand.NewPCG(7, 0))}
	agreed := 0
	for agreed < 40 {
		v := g.value(s.Rule("Pipeline"), 0)
		if !s.Rule("Pipeline").Valid(v) {
			continue
		}
		var indented bytes.Buffer
		must(t, json.Indent(&indented, v.AppendJSON(nil), "", "  "))
		text := indented.String()
		must(t, writeFile("p.json", []byte(text)))
		must(t, writeFile("p.yaml", []byte("pipeline:\n  "+strings.ReplaceAll(text, "\n", "\n  ")+"\n")))
		must(t, writeFile("p.cue", []byte("import \"dagrun.dev/spec\"\n\npipeline: spec.#Pipeline & "+text+"\n")))
		var trees []*tree.Value
		for _, path := range []string{"p.json", "p.yaml", "p.cue"} {
			v, _, err := s.Load(path, LoadOptions{})
			if err != nil {
				t.Fatalf("%s: %v\n%s", path, err, text)
			}
			trees = append(trees, v)
		}
		if !tree.Equal(trees[0], trees[1]) || !tree.Equal(trees[0], trees[2]) {
			t.Fatalf("%s\n%s\n%s", trees[0].AppendJSON(nil), trees[1].AppendJSON(nil), trees[2].AppendJSON(nil))
		}
		places(t, trees[0], trees[2], "", 3)
		agreed++
	}
}

// places holds that CUE gives every value written out the line it stands in.
func places(t *testing.T, j, c *tree.Value, path string, ahead int) {
	for i := range j.Items {
		places(t, j.Items[i], c.Items[i], tree.At(path, i), ahead)
	}
	for _, f := range j.Fields {
		x := c.Get(f.Name)
		if x != nil && f.Pos != j.Pos { // not a default, which has the place of its map
			places(t, f.Value, x, tree.Join(path, f.Name), ahead)
		}
	}
	if int(j.Pos.Line)+ahead-1 != int(c.Pos.Line) {
		t.Errorf("%s: %s in JSON, %s in CUE", path, j.Pos, c.Pos)
	}
}

// FuzzLoadCUE: arbitrary text as a CUE file is a tree or diagnostics, and never panics. What
// can take long without bound (comprehensions, builtins, long files) is not evaluated.
func FuzzLoadCUE(f *testing.F) {
	for _, s := range []string{
		"pipeline: {name: \"a\"}", "name: \"a\"\nnodes: x: kind: \"exec\"", "pipeline: {name: x}\nx: \"y\"", "a: [...a]", "{}", "#a: 1\n_b: #a",
		"pipeline: {name: \"a\" | \"b\", nodes: [string]: {kind: \"exec\"}}", "a: b: c: \"\\(d)\"\nd: 1", "x: {y: x}", "import \"dagrun.dev/spec\"\nspec.#Pipeline",
	} {
		f.Add(s)
	}
	s := testSchema(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 300 || strings.Contains(src, "for") || strings.Contains(src, "(") || strings.Contains(src, "*") {
			return
		}
		path := filepath.Join(dir, "p.cue")
		must(t, os.WriteFile(path, []byte(src), 0o600))
		v, _, err := s.Load(path, LoadOptions{})
		if ds, ok := err.(tree.Diagnostics); err != nil && (!ok || len(ds) == 0) {
			t.Fatalf("%q: %v is no diagnostic", src, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n\n") {
			t.Fatalf("%q: %s", src, err)
		}
		if err == nil && !json.Valid(v.AppendJSON(nil)) {
			t.Fatalf("%q became %s", src, v.AppendJSON(nil))
		}
	})
}

// compileRule compiles one definition of a CUE text, as NewSchema does those of the schema.
func compileRule(file, source, definition string) (*rules.Rule, error) {
	f, err := parser.ParseFile(file, source, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", file, firstLine(err))
	}
	if what, at := inexpressible(f); what != "" {
		return nil, fmt.Errorf("%s:%d: a rule cannot express %s", file, at.Line(), what)
	}
	v := newContext().BuildFile(f)
	if definition != "" && v.Err() == nil {
		v = v.LookupPath(cue.ParsePath(definition))
	}
	if err := v.Err(); err != nil {
		return nil, fmt.Errorf("%s: %s", file, firstLine(err))
	}
	c := newRuleCompiler()
	r := c.value(v)
	if len(c.opaque) > 0 {
		return nil, fmt.Errorf("%s: a rule cannot express %s", file, strings.Join(c.opaque, "; "))
	}
	return r, nil
}
