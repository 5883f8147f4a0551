package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

func world() *nodetest.Host {
	return &nodetest.Host{
		Files: map[string]string{
			"t.md":     "Hi {WHO}.\n",
			"a/one.md": "\ufeffone\r\nline {WHO}\r\n",
			"two.md":   "two",
			"css.css":  ".a{color:red}",
			"bad":      "a\xffb",
		},
		Artifacts: map[string]string{"page.html": "<html>{WHO}</html>"},
		Accumulators: map[string][]nodes.Entry{"layer": {
			{Text: "first", Meta: map[string]string{"title": "E1"}},
			{Text: "second", Meta: map[string]string{"title": "E2"}},
			{Text: "third"},
		}, "blank": {{Text: ""}}},
	}
}

// C-6: a prompt is assembled from a template and variables.
func settingsOf(t *testing.T, with string) *Settings {
	t.Helper()
	s, err := Kind.Parse([]byte(with))
	if err != nil {
		t.Fatal(err)
	}
	return s.(*Settings)
}

func TestAssemble(t *testing.T) {
	tests := []struct{ name, with, want string }{
		{"text", `{"text":"Hi {WHO}!","vars":{"WHO":"you"}}`, "Hi you!"},
		{"template file", `{"file":"t.md","vars":{"WHO":{"text":"you"}}}`, "Hi you.\n"},
		{"css, json and script are text", `{"text":".a{color:red} {\"a\":{\"b\":1}} if (x) {return} {a} {A} {Aa} {A-B} { X_Y }","vars":{}}`,
			`.a{color:red} {"a":{"b":1}} if (x) {return} {a} {A} {Aa} {A-B} { X_Y }`},
		{"placeholder inside json", `{"text":"{\"a\":{WHO}} {\"a\":{\"b\":{WHO}}}","vars":{"WHO":"1"}}`, `{"a":1} {"a":{"b":1}}`},
		{"escaped", `{"text":"{{WHO}} {{{WHO}}} {{NOT_DECLARED}}","vars":{"WHO":"x"}}`, "{WHO} {{WHO}} {NOT_DECLARED}"},
		{"unpaired braces stay", `{"text":"{{WHO} {WHO}}","vars":{"WHO":"x"}}`, "{x x}"},
		{"dollar is a script's", "{\"text\":\"`${PRICE}` {WHO}\",\"vars\":{\"WHO\":\"x\"}}", "`${PRICE}` x"},
		{"values are not expanded again", `{"text":"{AA} {BB}","vars":{"AA":"{BB} {UNKNOWN_X}","BB":"b"}}`, "{BB} {UNKNOWN_X} b"},
		{"file contents are not expanded", `{"text":"{FF}","vars":{"FF":{"file":"a/one.md"}}}`, "one\nline {WHO}\n"},
		{"line ends and byte order mark of a template", `{"text":"\ufeffa\r\n{WHO}\rb","vars":{"WHO":"x"}}`, "a\nx\nb"},
		{"numbers, booleans, lists from expressions", `{"text":"{AA} {BB} {CC} {DD}","vars":{"AA":3,"BB":true,"CC":["x","y"],"DD":{"text":{"a":1}}}}`, "3 true x\ny {\n  \"a\": 1\n}"},
		{"files with headings and mark", `{"text":"{FF}","vars":{"FF":{"files":["a/one.md",{"path":"two.md","label":"Two"}],"firstMark":" (PRIMACY POSITION)"}}}`,
			"## [1/2] one (PRIMACY POSITION)\n\none\nline {WHO}\n\n## [2/2] Two\n\ntwo"},
		{"own heading and join", `{"text":"{FF}","vars":{"FF":{"files":["a/one.md","two.md"],"heading":"<{LABEL}>","lastMark":"!","join":"\n"}}}`,
			"<one>\n\none\nline {WHO}\n<two>\n\ntwo"},
		{"last file only", `{"text":"{FF}","vars":{"FF":{"files":["a/one.md","two.md"],"last":1,"firstMark":" *"}}}`, "## [1/1] two *\n\ntwo"},
		{"order of files", `{"text":"{OO}","vars":{"FF":{"files":["two.md","a/one.md"]},"OO":{"order":"FF","after":" order"}}}`, "two → one order"},
		{"artifact", `{"text":"{PP}","vars":{"PP":{"artifact":"page.html","before":"<<","after":">>"}}}`, "<<<html>{WHO}</html>>>"},
		{"missing artifact with else", `{"text":"{PP}","vars":{"PP":{"artifact":"nope","else":"none yet","before":"B"}}}`, "none yet"},
		{"accumulator", `{"text":"{LL}","vars":{"LL":{"accumulator":"layer"}}}`, "### E1\n\nfirst\n\n### E2\n\nsecond\n\nthird"},
		{"last entries", `{"text":"{LL}","vars":{"LL":{"accumulator":"layer","last":2,"join":"\n--\n"}}}`, "### E2\n\nsecond\n--\nthird"},
		{"first and last entries", `{"text":"{LL}","vars":{"LL":{"accumulator":"layer","first":1,"last":1}}}`, "### E1\n\nfirst\n\nthird"},
		{"empty accumulator", `{"text":"[{LL}]","vars":{"LL":{"accumulator":"none","before":"## Layer\n"}}}`, "[]"},
		{"empty text shows nothing around it", `{"text":"[{TT}]","vars":{"TT":{"text":"","before":"## T\n","else":"-"}}}`, "[-]"},
		{"dollar before an escaped one", `{"text":"${{WHO}}","vars":{"WHO":"x"}}`, "${WHO}"},
		{"other brackets and signs stay", `{"text":"\\{WHO} {WHO-A} {WHO.A} {WHO|A} {\u200bWHO} {{! WHO }}","vars":{"WHO":"x"}}`, "\\x {WHO-A} {WHO.A} {WHO|A} {\u200bWHO} {{! WHO }}"},
		{"signs of replacements are text", `{"text":"{AA}","vars":{"AA":"$1 \\1 ${AA} %s"}}`, "$1 \\1 ${AA} %s"},
		{"a label is not expanded", `{"text":"{FF}","vars":{"FF":{"files":[{"path":"two.md","label":"{INDEX}"}],"heading":"{LABEL} {INDEX} {FOO}"}}}`, "{INDEX} 1 {FOO}\n\ntwo"},
		{"none of the files", `{"text":"[{FF}]","vars":{"FF":{"files":["two.md"],"first":0,"before":"B","else":"E"}}}`, "[E]"},
		{"an empty entry", `{"text":"[{LL}]","vars":{"LL":{"accumulator":"blank","before":"B","else":"E"}}}`, "[E]"},
		{"not UTF-8", `{"text":"{FF}","vars":{"FF":{"file":"bad"}}}`, "a\ufffdb"},
		{"used twice", `{"text":"{AA}{AA}","vars":{"AA":"é"}}`, "éé"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := world()
			p, err := settingsOf(t, tt.with).Assemble(w.Task(t, "prompt", tt.with))
			if err != nil {
				t.Fatal(err)
			}
			if p.Text != tt.want {
				t.Errorf("got  %q\nwant %q", p.Text, tt.want)
			}
			if n := int64(utf8.RuneCountInString(p.Text)); p.Chars != n || p.Tokens != (n+3)/4 {
				t.Errorf("estimate %d chars %d tokens, text has %d", p.Chars, p.Tokens, n)
			}
		})
	}
}

// borders divide a prompt into blocks whose concatenation is the text.
func TestBorders(t *testing.T) {
	for _, tt := range []struct{ text, aa, want string }{
		{"one", "", "one"},
		{"one\n{BORDER}\ntwo", "", "one\n|two"},
		{"one\n \t{BORDER}  \r\ntwo\n", "", "one\n|two\n"},
		{"{BORDER}\none\n{BORDER}", "", "one\n"},
		{"one\n{BORDER}\n{BORDER}\n\n{BORDER}\ntwo", "", "one\n\n|two"},
		{"\n{BORDER}\none", "", "\none"},
		{"one\n{BORDER}\n{AA}\n{BORDER}\ntwo", "", "one\n\n|two"},
		{"one\n{BORDER}\n{AA}\n{BORDER}\ntwo", "{BORDER}\n", "one\n|{BORDER}\n\n|two"},
		{"{{BORDER}}\n{BORDER}\n${{BORDER}}", "", "{BORDER}\n|${BORDER}"},
		{"{AA}\n{BORDER}\n", "", "\n"},
	} {
		with, _ := json.Marshal(map[string]any{"text": tt.text, "vars": map[string]string{"AA": tt.aa}})
		w := world()
		p, err := settingsOf(t, string(with)).Assemble(w.Task(t, "prompt", string(with)))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(p.Blocks, "|"); got != tt.want || p.Text != strings.Join(p.Blocks, "") {
			t.Errorf("%q: blocks %q, want %q; text %q", tt.text, got, tt.want, p.Text)
		}
		if n := int64(utf8.RuneCountInString(p.Text)); p.Chars != n {
			t.Errorf("%q: %d characters counted, %d there", tt.text, p.Chars, n)
		}
	}
}

// the blocks in front that hold nothing that a run wrote are counted.
func TestFixedBlocks(t *testing.T) {
	for text, want := range map[string]int{
		"a": 1, "{FF}\n{BORDER}\nb\n{BORDER}\n{PP}\n{BORDER}\nc": 2, "{PP}\n{BORDER}\na": 0, "a\n{BORDER}\n{EE}\n{BORDER}\nb": 1,
		"a\n{BORDER}\n{NN}\n{BORDER}\nb": 1, "a {LL}\n{BORDER}\nb": 0, "\n{BORDER}\n{PP}": 0, "\n{BORDER}\n{FF}": 1,
	} {
		with, _ := json.Marshal(map[string]any{"text": text, "vars": map[string]any{
			"FF": map[string]string{"file": "two.md"}, "PP": map[string]string{"artifact": "page.html"},
			"EE": map[string]string{"artifact": "none", "else": "-"}, "LL": map[string]string{"accumulator": "layer"},
			"NN": map[string]string{"artifact": "none", "else": "none yet"},
		}})
		w := world()
		p, err := settingsOf(t, string(with)).Assemble(w.Task(t, "prompt", string(with)))
		if err != nil || p.Fixed() != want {
			t.Errorf("%q: %+v %v, want %d fixed", text, p, err, want)
		}
	}
}

// a border stands alone on its line, and no variable has its name.
func TestBorderMistakes(t *testing.T) {
	problems, _ := settingsOf(t, `{"text":"a {BORDER}\n{BORDER}\n{BORDER}{BORDER}"}`).CheckFiles(world().OpenFile)
	want := "{BORDER}: want it alone on its line, where it divides the prompt into blocks"
	if len(problems) != 3 || problems[0].Text != "prompt text:1:3: "+want || problems[1].Text != "prompt text:3:1: "+want {
		t.Errorf("%v", problems)
	}
	tr := settingsOf(t, `{"text":"{BORDER}","vars":{"BORDER":"x"}}`).Block()
	if len(tr.Problems) != 1 || tr.Problems[0].Path != "vars.BORDER" {
		t.Errorf("%v", tr.Problems)
	}
}

// C-6: an unknown or unresolved placeholder is an error naming template and line.
func TestPlaceholderMistakes(t *testing.T) {
	tests := []struct{ name, with, want string }{
		{"unknown", `{"file":"b.md","vars":{"VERIFIER_NOTES":"x"}}`, `b.md:2:4: {VERIFER_NOTES}: no such variable; did you mean "VERIFIER_NOTES"?`},
		{"none declared", `{"text":"{LOST_ONE}"}`, "prompt text:1:1: {LOST_ONE}: no such variable; none is declared"},
		{"dollar before a declared name", `{"text":"a\né ${WHO}","vars":{"WHO":"x"}}`, "prompt text:2:3: ${WHO} is not a placeholder; write {WHO}, or ${{WHO}} for this text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := world()
			w.Files["b.md"] = "{VERIFIER_NOTES}\néé {VERIFER_NOTES}\n"
			_, err := settingsOf(t, tt.with).Assemble(w.Task(t, "prompt", tt.with))
			var e *nodes.Error
			if !errors.As(err, &e) || e.Category != "config" || e.Message != tt.want {
				t.Errorf("got %v", err)
			}
			problems, _ := settingsOf(t, tt.with).CheckFiles(w.OpenFile)
			if len(problems) != 1 || problems[0].Text != tt.want {
				t.Errorf("at plan time: %v", problems)
			}
		})
	}
}

func TestSourcesThatCannotBeRead(t *testing.T) {
	for with, want := range map[string]string{
		`{"file":"gone.md"}`: "file gone.md: open gone.md: file does not exist",
		`{"text":"{AA}","vars":{"AA":{"file":"gone.md"}}}`:             "variable AA: file gone.md: open gone.md: file does not exist",
		`{"text":"{AA}","vars":{"AA":{"artifact":"gone.html"}}}`:       "variable AA: artifact gone.html: open gone.html: file does not exist",
		`{"text":"{AA}","vars":{"AA":{"first":1}}}`:                    "variable AA: prompt: variable AA has no source",
		`{"text":"{AA}","vars":{"AA":{"files":["two.md","gone.md"]}}}`: "variable AA: file gone.md: open gone.md: file does not exist",
	} {
		_, err := settingsOf(t, with).Assemble(world().Task(t, "prompt", with))
		var e *nodes.Error
		if !errors.As(err, &e) || e.Category != "config" || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", with, err, want)
		}
	}
}

// C-6: what a plan warns of.
func TestCheckWarns(t *testing.T) {
	with := `{"text":"{USED} {used} { Used }","vars":{"USED":"x","NEVER":"y"}}`
	problems, warnings := settingsOf(t, with).CheckFiles(world().OpenFile)
	want := []string{
		"prompt text: variable NEVER is never used",
		"prompt text:1:8: {used} stays as text; a placeholder is {USED}",
		"prompt text:1:15: { Used } stays as text; a placeholder is {USED}",
	}
	if len(problems) != 0 || !reflect.DeepEqual(warnings, want) {
		t.Errorf("problems %v\nwarnings %q\nwant     %q", problems, warnings, want)
	}
}

// C-7: the ladder is taken in order, step by step, only as far as needed.
func TestTrimLadder(t *testing.T) {
	file := strings.Repeat("123456789\n", 100) // 1,000 characters, 250 tokens
	w := &nodetest.Host{
		Files: map[string]string{"1": file, "2": file, "3": file, "4": file, "5": file},
		Accumulators: map[string][]nodes.Entry{
			"layer": {{Text: strings.Repeat("a", 396)}, {Text: strings.Repeat("b", 396)}},
			"log":   {{Text: strings.Repeat("c", 400)}},
		},
	}
	with := func(limit string) string {
		return `{"text":"{FF}{LAYER}{LOG}","limit":` + limit + `,"vars":{
			"FF":{"files":["1","2","3","4","5"],"heading":"","join":""},
			"LAYER":{"accumulator":"layer","join":"----"},"LOG":{"accumulator":"log","before":"LOG:"}},
			"trim":[{"var":"LAYER","by":"oldest"},{"var":"FF","by":"valley","cut":""},{"var":"LOG","by":"drop"}]}`
	}
	tests := []struct {
		limit  string
		tokens int64
		steps  []string
	}{
		{"1549", 1549, nil},
		{"1548", 1449, []string{"LAYER entry"}},
		{"1449", 1449, []string{"LAYER entry"}},
		{"1448", 1350, []string{"LAYER entry", "LAYER entry"}},
		{"1349", 1225, []string{"LAYER entry", "LAYER entry", "FF file 3"}},
		{"1224", 1100, []string{"LAYER entry", "LAYER entry", "FF file 3", "FF file 4"}},
		{"1000", 999, []string{"LAYER entry", "LAYER entry", "FF file 3", "FF file 4", "LOG variable LOG"}},
	}
	for _, tt := range tests {
		p, err := settingsOf(t, with(tt.limit)).Assemble(w.Task(t, "prompt", with(tt.limit)))
		if err != nil {
			t.Errorf("limit %s: %v", tt.limit, err)
			continue
		}
		var steps []string
		for _, n := range p.Notes {
			if n.Log != "decision" || n.Type != "trim-prompt" {
				t.Errorf("note %+v", n)
			}
			step := n.Fields["variable"].(string)
			for _, what := range []string{"entry", "file", "variable"} {
				if which, ok := n.Fields[what].(string); ok && (what != "variable" || n.Fields["by"] == "drop") {
					step = strings.TrimSpace(step + " " + what + " " + which)
				}
			}
			steps = append(steps, step)
		}
		if !reflect.DeepEqual(steps, tt.steps) || p.Tokens != tt.tokens {
			t.Errorf("limit %s: %d tokens after %q, want %d after %q", tt.limit, p.Tokens, steps, tt.tokens, tt.steps)
		}
		if n := strings.Count(p.Text, "123456789"); n < 3*100+2*50 {
			t.Errorf("limit %s: only %d lines of files left", tt.limit, n)
		}
	}

	_, err := settingsOf(t, with("10")).Assemble(w.Task(t, "prompt", with("10")))
	var e *nodes.Error
	if !errors.As(err, &e) || e.Category != "input_too_big" || !e.Permanent {
		t.Errorf("above the limit after all trimming: %v", err)
	}
}

// C-7: the valley, and never a file dropped whole.
func TestValley(t *testing.T) {
	for n, want := range map[int][]int{0: nil, 1: nil, 2: nil, 3: {1}, 4: {2}, 5: {2, 3}, 7: {3, 4, 5}} {
		if got := valley(n, nil); !reflect.DeepEqual(got, want) {
			t.Errorf("valley of %d: %v, want %v", n, got, want)
		}
	}
	if got := valley(3, []int{1, 3, 9}); !reflect.DeepEqual(got, []int{0, 2}) {
		t.Errorf("declared positions: %v", got)
	}
	empty := ""
	for text, want := range map[string]string{
		"ab\ncd\nef\ngh": "ab\ncd",
		"abcdefgh":       "abcd",
		"éééé":           "éé",
		"ab\ncdefghij":   "ab",
	} {
		if got, ok := firstHalf(text, &empty); got != want || !ok {
			t.Errorf("first half of %q: %q", text, got)
		}
	}
	if got, ok := firstHalf("short", nil); ok {
		t.Errorf("a cut that makes it longer: %q", got)
	}
}

func TestDescribe(t *testing.T) {
	tr, err := Kind.Describe([]byte(`{"file":"t.md","to":"out/p.md","vars":{
		"CC":{"files":["b.md","a.md"]},"AA":{"artifact":"page.html"},"LL":{"accumulator":"layer"},"TT":"abc","SS":{"file":"a.md"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := nodes.Traits{
		Effect: "pure", Outputs: map[string]string{"chars": "int", "tokens": "int"},
		Files: []string{"t.md", "b.md", "a.md"}, Reads: []string{"page.html", "layer"}, Writes: []string{"out/p.md"},
		Notes: []string{"CC: b, a"},
	}
	if !reflect.DeepEqual(tr, want) {
		t.Errorf("got  %+v\nwant %+v", tr, want)
	}
}

func TestDescribeProblems(t *testing.T) {
	tests := []struct{ with, path, text string }{
		{`{}`, "", "want exactly one of file, text"},
		{`{"file":"a","text":"b"}`, "", "want exactly one of file, text"},
		{`{"text":"","vars":{"AA":{"first":1}}}`, "vars.AA", "want exactly one of text, file, files, order, artifact, accumulator"},
		{`{"text":"","vars":{"AA":{"text":"","file":"x"}}}`, "vars.AA", "want exactly one of text, file, files, order, artifact, accumulator"},
		{`{"text":"","vars":{"AA":{"order":"BA"},"BB":{"files":[]}}}`, "vars.AA.order", `"BA" is not a variable with files; declared: AA, BB`},
		{`{"text":"","limit":1,"trim":[{"var":"LAYR","by":"drop"}],"vars":{"LAYER":""}}`, "trim.0.var", `no variable "LAYR"; did you mean "LAYER"?`},
		{`{"text":"","limit":1,"trim":[{"var":"AA","by":"oldest"}],"vars":{"AA":""}}`, "trim.0.by", "oldest needs an accumulator; AA is none"},
		{`{"text":"","limit":1,"trim":[{"var":"AA","by":"valley"}],"vars":{"AA":""}}`, "trim.0.by", "valley needs files; AA has none"},
		{`{"text":"","limit":1,"trim":[{"var":"AA","by":"valley","positions":[3]}],"vars":{"AA":{"files":["x"]}}}`, "trim.0.positions", "no position 3: AA has 1 files"},
		{`{"text":"","trim":[{"var":"AA","by":"drop"}],"vars":{"AA":""}}`, "trim.0", "nothing is trimmed without a limit"},
	}
	for _, tt := range tests {
		tr := settingsOf(t, tt.with).Block()
		if len(tr.Problems) != 1 || tr.Problems[0] != (nodes.Problem{Path: tt.path, Text: tt.text}) {
			t.Errorf("%s:\n got %+v", tt.with, tr.Problems)
		}
	}
	if tr, _ := (Kind).Describe([]byte(`{"text":"x"}`)); len(tr.Problems) != 1 || tr.Problems[0].Path != "to" {
		t.Errorf("a node without to: %+v", tr.Problems)
	}
	if _, err := Kind.Describe([]byte(`{"fiel":"x"}`)); err == nil {
		t.Error("an unknown field is read")
	}
}

func TestRunWritesTheArtifact(t *testing.T) {
	w := world()
	task := w.Task(t, "prompt", `{"file":"t.md","to":"sub/p.md","vars":{"WHO":"you"}}`)
	res, err := Kind.Run(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(task.Out, res.Writes["sub/p.md"]))
	if err != nil || string(got) != "Hi you.\n" {
		t.Errorf("wrote %q, %v", got, err)
	}
	if res.Values["chars"] != int64(8) || res.Values["tokens"] != int64(2) {
		t.Errorf("values %v", res.Values)
	}
}

func FuzzAssemble(f *testing.F) {
	for _, s := range []string{"{AA}", "{{AA}}", "${AA}", "{{{BB}", "a{\"x\":{AA}}", "\ufeff{BB}\r\n{CC}"} {
		f.Add(s, "value {BB}", uint16(3))
	}
	f.Fuzz(func(t *testing.T, template, value string, limit uint16) {
		w := &nodetest.Host{
			Files:        map[string]string{"t": template, "v": value},
			Accumulators: map[string][]nodes.Entry{"layer": {{Text: value}, {Text: "x"}}},
		}
		s := &Settings{File: "t", Limit: int64(limit), Vars: map[string]variable{
			"AA": {From: accept.From{File: "v"}}, "BB": {Files: &[]inputFile{{"v", "v"}, {"v", "w"}, {"v", "x"}}}, "CC": {Accumulator: "layer"},
		}, Trim: []trimStep{{Var: "CC", By: "oldest"}, {Var: "BB", By: "valley"}, {Var: "AA", By: "drop"}}}
		p, err := s.Assemble(w.Task(t, "prompt", ""))
		if err != nil {
			var e *nodes.Error
			if !errors.As(err, &e) {
				t.Fatalf("not a failure of the attempt: %v", err)
			}
			return
		}
		if n := int64(utf8.RuneCountInString(p.Text)); n != p.Chars {
			t.Fatalf("estimated %d characters of %d", p.Chars, n)
		}
		if limit > 0 && p.Tokens > int64(limit) {
			t.Fatalf("%d tokens above %d", p.Tokens, limit)
		}
	})
}
