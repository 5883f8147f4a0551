package yamltree

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dagrun.dev/internal/tree"
)

// TestCases loads the inputs of the failure cases d-libs/01, 02, 04, 05 and 11. What each must
// come to stands in the front matter of its expect.md.
func TestCases(t *testing.T) {
	ran := 0
	dirs, _ := filepath.Glob("testdata/cases/*")
	for _, dir := range dirs {
		for _, want := range expectations(t, dir) {
			if want.File == "" {
				continue
			}
			ran++
			t.Run(filepath.Base(dir)+"/"+want.File, func(t *testing.T) {
				data, err := os.ReadFile(filepath.Join(dir, want.File))
				if err != nil {
					t.Fatal(err)
				}
				v, _, err := Parse(want.File, data, tree.Defaults)
				if ok := want.Outcome == "ok"; ok != (err == nil) {
					t.Fatalf("got %v, want %s", err, want.Outcome)
				}
				if err == nil {
					if p := v.Get("nodes").Get("draft").Get("prompt"); want.Prompt != "" && p.Str != want.Prompt {
						t.Errorf("prompt is %q", p.Str)
					}
					return
				}
				first := err.(tree.Diagnostics)[0]
				if !strings.HasPrefix(err.Error(), want.File+":") || !strings.Contains(err.Error(), want.Hint) {
					t.Errorf("%v does not name the file or %q", err, want.Hint)
				}
				if len(want.lines) > 0 && !slices.Contains(want.lines, int(first.Pos.Line)) {
					t.Errorf("%v is not in line %v", err, want.lines)
				}
			})
		}
	}
	if ran < 15 {
		t.Errorf("only %d inputs", ran)
	}
}

type expectation struct {
	File, Table, Outcome, Prompt, Hint string
	Line                               json.RawMessage
	lines                              []int
}

func expectations(t *testing.T, dir string) []expectation {
	text, err := os.ReadFile(filepath.Join(dir, "expect.md"))
	if err != nil {
		t.Fatal(err)
	}
	var out []expectation
	for _, line := range strings.Split(string(text), "\n") {
		line, ok := strings.CutPrefix(line, "  - {")
		if !ok {
			continue
		}
		var e expectation
		if err := json.Unmarshal([]byte("{"+line), &e); err != nil {
			t.Fatal(err)
		}
		if len(e.Line) > 0 && json.Unmarshal(e.Line, &e.lines) != nil {
			e.lines = make([]int, 1)
			if err := json.Unmarshal(e.Line, &e.lines[0]); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, e)
	}
	return out
}

// TestImplicitTypes: where a string is wanted, a word or number is that text or is refused,
// never another value (case d-libs/07).
func TestImplicitTypes(t *testing.T) {
	table, err := os.ReadFile("testdata/cases/07-yaml-implicit-types/types.tsv")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(strings.TrimSpace(string(table)), "\n")[1:]
	want := []string{
		"starts with 0", "float", "no", "on", "2026-03-10", "a", "a #b", "null", "float", "int", "not supported", "yes",
	}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, %d expectations", len(rows), len(want))
	}
	for i, row := range rows {
		text, _, _ := strings.Cut(row, "\t")
		v, warnings, err := Parse("f.yaml", []byte(text+"\n"), tree.Defaults)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case v.Fields[0].Value.Kind == tree.String:
			got = v.Fields[0].Value.Str
		default: // refused by the rule of a string
			got = [...]string{"null", "bool", "int", "float"}[v.Fields[0].Value.Kind]
		}
		if got != want[i] && (err == nil || !strings.Contains(got, want[i])) {
			t.Errorf("%s: got %s, want %s", row, got, want[i])
		}
		if cut := text == "label: a #b"; cut != (len(warnings) == 1) {
			t.Errorf("%s: warnings %v", text, warnings)
		}
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: [x, 2.5, true, ~]\nc: {d: e}":                `{"a":1,"b":["x",2.5,true,null],"c":{"d":"e"}}`,
		"a: |\n  x\n  y\n":                                     `{"a":"x\ny\n"}`,
		"a: >-\n  x\n  y\n":                                    `{"a":"x y"}`,
		"a: 0o17\nb: 0x1F\nc: -3\nd: +4":                       `{"a":15,"b":31,"c":-3,"d":4}`,
		"a: !!str 12\nb: !!int \"3\"":                          `{"a":"12","b":3}`,
		"a: &x {b: 1}\nc: *x":                                  `{"a":{"b":1},"c":{"b":1}}`,
		"a: &x {b: 1, c: 2}\nd: {<<: *x, c: 3}":                `{"a":{"b":1,"c":2},"d":{"c":3,"b":1}}`,
		"a: &x {b: 1}\ny: &y {b: 2, c: 3}\nd:\n  <<: [*x, *y]": `{"a":{"b":1},"y":{"b":2,"c":3},"d":{"b":1,"c":3}}`,
		"\"<<\": 1":                         `{"<<":1}`,
		"a: \"0123\"\nb: '1:30'\nc: 1:30":   `{"a":"0123","b":"1:30","c":"1:30"}`,
		"\ufeffa: 1\r\nb: 2\r\n":            `{"a":1,"b":2}`,
		"# c\n--- \na: 1\n...\n":            `{"a":1}`,
		"%YAML 1.2\n---\na: 1\n":            `{"a":1}`,
		"%YAML 1.1\n---\na: yes\n":          `{"a":"yes"}`,
		"# c\n\n%YAML 1.2 # d\r\n---\na: 1": `{"a":1}`,
		"\ufeff%YAML 1.2\n---\na: 1\n":      `{"a":1}`,
		"a: |\n  %YAML 1.2\n":               `{"a":"%YAML 1.2\n"}`,
	} {
		v, _, err := Parse("f.yaml", []byte(text), tree.Defaults)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if got := string(v.AppendJSON(nil)); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"a:\n  b: 1\n   c: 2\n":             "f.yaml:3:4: indented deeper than the line above, which has a value already",
		"a:\n  x: 1\n y: 2\n":               "f.yaml:3:2: indented like no line above it",
		"a:\n  x: b: c\n":                   "f.yaml:2:7: a second ': ' in one value; put the text in quotes",
		"a:\n  x: b: c: d\n":                "f.yaml:2:7: a second ': ' in one value; put the text in quotes",
		"a: {x: b, y: @c}\n":                "f.yaml:1:14: a text that starts with @ wants quotes around all of it",
		"a: {x: b?, y: c}\n":                "f.yaml:1:1: a bracket of this line is never closed, a ',' is missing, or a text with ': ' or '?' in it is not in quotes",
		"a: {x: b: c}\n":                    "f.yaml:1:1: a bracket of this line is never closed, a ',' is missing, or a text with ': ' or '?' in it is not in quotes",
		"a:\n  x:b\n  y: c\n":               "f.yaml:2:3: want key: value here, with a space behind the ':'",
		"a: \"x\" y\n":                      "f.yaml:1:4: the text goes on behind its closing quote; use the other quotes around all of it, or a block (|)",
		"a: 'it's'\n":                       "f.yaml:1:4: the text goes on behind its closing quote; use the other quotes around all of it, or a block (|)",
		"a: *.txt\n":                        "f.yaml:1:4: a text that starts with * wants quotes around all of it",
		"- [ -f x ] && y\n":                 "f.yaml:1:3: a text that starts with [ wants quotes around all of it",
		"a: >x y\n":                         "f.yaml:1:4: a text that starts with > wants quotes around all of it",
		"a: - y\n":                          "f.yaml:1:4: a text that starts with - wants quotes around all of it",
		"a: 1\n\tb: 2\n":                    "f.yaml:2:1: tab used for indentation; YAML allows only spaces here",
		"a:\n\tb: 2\n":                      "f.yaml:2:1: tab used for indentation; YAML allows only spaces here",
		"a: 'x\n":                           "f.yaml:1:4: the quote that opens here is never closed",
		"x: 1\na: [*deps]\n":                "f.yaml:2:5: unknown anchor 'deps' referenced",
		"a: @x\n":                           "f.yaml:1:4: a text that starts with @ wants quotes around all of it",
		"a: b: c\n":                         "f.yaml:1:5: a second ': ' in one value; put the text in quotes",
		"1: x\n":                            "f.yaml:1:1: the key 1 reads as int; put it in quotes",
		"? [a]\n: b\n":                      "f.yaml:1:3: a key must be plain text; put text with {{ }} in quotes",
		"a: 1\nb: 2\na: 3\n":                "f.yaml:3:1: a: duplicate key; first set at f.yaml:1:1",
		"a: .inf\n":                         "f.yaml:1:4: a: .inf is out of the range of numbers; put it in quotes if it is text",
		"a: 123456789012345678901234567890": "f.yaml:1:4: a: 123456789012345678901234567890 does not fit 64 bits",
		"a: !foo x":                         "f.yaml:1:4: a: tag !foo is not supported",
		"a: !foo [x]":                       "f.yaml:1:4: a: tag !foo is not supported",
		"a: &a {b: *a}":                     "f.yaml:1:11: a.b: anchor \"a\" contains itself",
		"<<: 1\n":                           "f.yaml:1:5: a merge key wants a map or a list of maps",
		"a: 1\n---\nb: 2\n":                 "f.yaml:2:1: a second document starts here; a file holds one",
		"a: 1\n...\nb: 2\n":                 "f.yaml:3:1: text after the end of the document; a file holds one",
		"%YAML 1.3\n---\na: 1":              "f.yaml:1:1: this version of YAML is not known; want %YAML 1.2, or no such line",
		"# c\n%YAML 2.0\n---\na: 1":         "f.yaml:2:1: this version of YAML is not known; want %YAML 1.2, or no such line",
		"%YAML 1.2\n%YAML 1.2\n---\na: 1":   "f.yaml:2:1: a line that starts with % is a directive, and YAML does not know this one here; leave it out",
		"%FOO x\n---\na: 1":                 "f.yaml:1:1: a line that starts with % is a directive, and YAML does not know this one here; leave it out",
		"%YAML 1.2\na: 1":                   "f.yaml:2:1: after a directive (a line that starts with %) the line --- is wanted first",
		"a: 1\n---\n{":                      "f.yaml:3:1: a value is missing, or a bracket is never closed",
		"a: 1\nb: \x00":                     "f.yaml:2:4: not a text file: byte 0x00 is not UTF-8 text",
		"a: {b: [1, 2\nc: 3\n":              "f.yaml:1:1: a bracket of this line is never closed, a ',' is missing, or a text with ': ' or '?' in it is not in quotes",
		"a: {b: ${params.x}, c: 1}\n":       "f.yaml:1:8: put text with ${ } in quotes",
		"a: 1e999\n":                        "f.yaml:1:4: a: 1e999 is out of the range of numbers; put it in quotes if it is text",
		"a: 1e-999\n":                       "f.yaml:1:4: a: 1e-999 is out of the range of numbers; put it in quotes if it is text",
		"a: -1e999\n":                       "f.yaml:1:4: a: -1e999 is out of the range of numbers; put it in quotes if it is text",
		"a: &x {}\nb: {<<: *x, <<: *x}\n":   "f.yaml:2:13: b: duplicate key <<; first set at f.yaml:2:5; one << may have a list of maps",
		"\xff\xfea\x00":                     "f.yaml: the file is in UTF-16; save it as UTF-8",
		"\xfe\xff\x00a":                     "f.yaml: the file is in UTF-16; save it as UTF-8",
		"a:\n  " + strings.Repeat("k", 1100) + ": 1\n": "f.yaml:2:3: a key of more than 1024 characters, which YAML does not allow",
		"": "f.yaml: the file is empty (or holds only comments)",
	} {
		_, _, err := Parse("f.yaml", []byte(text), tree.Defaults)
		if err == nil || err.Error() != want {
			t.Errorf("%q:\n got %v\nwant %s", text, err, want)
		}
	}
	_, _, err := Parse("f.yaml", []byte("a: 0123\nb: .nan\nb: 1\n"), tree.Defaults)
	if ds, ok := err.(tree.Diagnostics); !ok || len(ds) != 3 {
		t.Errorf("three mistakes are told at once, got %v", err)
	}
}

// TestWork: what a hostile document makes is counted, and stopped at the limit.
func TestWork(t *testing.T) {
	merges := "b: &b {"
	for i := range 300 {
		merges += fmt.Sprintf("k%d: 1, ", i)
	}
	merges += "}\nm:\n" + strings.Repeat("  - {<<: *b}\n", 2000)
	bomb, err := os.ReadFile("testdata/cases/05-yaml-alias-bomb/bomb.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"merges": merges, "aliases": string(bomb)} {
		root, d := parse(tree.FileOf("f.yaml"), []byte(text))
		if d != nil {
			t.Fatal(d)
		}
		w := &walker{file: tree.FileOf("f.yaml"), lim: tree.Defaults}
		w.value(root)
		if len(w.found) != 1 || w.aliased > tree.Defaults.Aliases+1 {
			t.Errorf("%s: %d values through aliases, %v", name, w.aliased, w.found)
		}
	}
}

// TestSeparators: a document that could only be refused after gigabytes of nodes is refused
// before the parser sees it.
func TestSeparators(t *testing.T) {
	for _, text := range []string{
		"[" + strings.Repeat(",", 2000) + "]", strings.Repeat("- \n", 2000), strings.Repeat("a: b\n", 1000), strings.Repeat("[", 2000),
	} {
		_, _, err := Parse("f.yaml", []byte(text), tree.Limits{Values: 1500})
		if err == nil || err.Error() != "f.yaml: the file has more than about 1500 values" {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// FuzzParse: arbitrary text never panics, stays within the limits, and what is accepted is a
// value that JSON can hold.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1", "{{},<<}", "a: &a [*a]", "- a\n- b: {c: d}", "a: |\n x", "<<: {a: 1}", "? a\n: b", "a: !!binary x", "\ta: 1", "a: 'b", "%YAML 1.1\n---\na"} {
		f.Add([]byte(s))
	}
	lim := tree.Limits{Bytes: 1 << 16, Depth: 64, Values: 10_000, Aliases: 1_000}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, _, err := Parse("f", data, lim)
		if err != nil {
			if ds, ok := err.(tree.Diagnostics); !ok || len(ds) == 0 {
				t.Fatalf("%q: %v is no diagnostic", data, err)
			}
			return
		}
		text := v.AppendJSON(nil)
		if !json.Valid(text) {
			t.Fatalf("%q became %s", data, text)
		}
	})
}

// TestAliasesAfterNodesAreLetGo: what an anchor holds can be read again, whatever stood around it.
func TestAliasesAfterNodesAreLetGo(t *testing.T) {
	v, _, err := Parse("f.yaml", []byte("a: {p: &x {b: &y [1, {z: 2}], c: 3}}\nc: *x\nd: *y\ne: [*y, {<<: *x, c: 4}]\n"), tree.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"a":{"p":{"b":[1,{"z":2}],"c":3}},"c":{"b":[1,{"z":2}],"c":3},"d":[1,{"z":2}],"e":[[1,{"z":2}],{"c":4,"b":[1,{"z":2}]}]}`
	if got := string(v.AppendJSON(nil)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
