package schema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		if err != nil {
			t.Fatal(err)
		}
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
			if err != nil {
				t.Fatal(err)
			}
			r, err := compileRule(c.Schema, string(src))
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, c.Data))
			if err != nil {
				t.Fatal(err)
			}
			v, err := tree.ParseJSON(c.Data, data, tree.Defaults)
			if err != nil {
				t.Fatal(err)
			}
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
		"import \"list\"\n#W: {a: list.MaxItems(2) & [...int]}": "a conjunction of something else than types, bounds and patterns",
		"#W: {a: string, if a == \"x\" {b: int}}":               "a comprehension",
		"#W: {a?: #W}":                          "the definition contains itself",
		"#W: {a: bytes}":                        "a reference to something else than a definition",
		"#W: {a: int & (1 | 2 | >5)}":           "a conjunction of something else than types, bounds and patterns",
		"#W: {":                                 "expected",
		"#W: {a: string, b: a | int}":           "a reference to something else than a definition",
		"#W: {a: string, b: \"x\\(a)\"}":        "an expression of another form (*ast.Interpolation)",
		"#W: {a: string, if a != _|_ {b: int}}": "a comprehension",
		"#W: {a: string, let x = a, b: x}":      "a declaration of another form (*ast.LetClause)",
		"#W: {[k=string]: k}":                   "an expression of another form (*ast.Alias)",
		"#W: {a: string, (a): 1}":               "a computed or hidden field",
		"#V: {}":                                "a reference to #W, which is not defined",
	} {
		_, err := compileRule("w.cue", src)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", src, err, want)
		}
	}
}

// compileRule compiles #W of a CUE text, as it does those of the schema.
func compileRule(file, text string) (*rules.Rule, error) {
	s := &Schema{Library: map[string][]byte{file: []byte(text)}}
	c := newCompiler()
	if err := s.read(c, file); err != nil {
		return nil, err
	}
	r := c.definition("W", file)
	return r, c.err()
}
