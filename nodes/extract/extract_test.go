package extract

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

func TestJSON(t *testing.T) {
	const values = `"values":{"n":{"path":"a.n","type":"int"},"items":{"path":"items","type":"list"},"t":{"path":"items.0.t","type":"string","else":"none"}}`
	const good = `{"a":{"n":9007199254740993},"items":[{"t":"x"}]}`
	tests := []struct{ name, answer, with, outcome, class string }{
		{"block", "Here:\n```json\n" + good + "\n```\nbye", values, "ok", ""},
		{"whole answer", good, values, "ok", ""},
		{"in the text", "Result:\n" + good + "\nThat is {all}.", values, "ok", ""},
		{"same twice", "```\n" + good + "\n```\n```json\n " + good + "\n```", values, "ok", ""},
		{"two", "```\n{\"a\":1}\n```\n```\n{\"a\":2}\n```", "", "fail", "ambiguous"},
		{"last of two", "```\n{\"a\":1}\n```\n```\n" + good + "\n```", values + `,"policy":"last"`, "ok_warn", ""},
		{"largest of two", "```\n" + good + "\n```\n```\n{\"a\":1}\n```", values + `,"policy":"largest"`, "ok_warn", ""},
		{"none", "I cannot.", "", "fail", "no_artifact"},
		{"a sentence with braces", "Use {x} here, [1].", "", "fail", "no_artifact"},
		{"two without a line end", `{"a":1}{"b":2}`, "", "fail", "ambiguous"},
		{"a footnote before", "[1]: http://x\n" + good, values, "ok", ""},
		{"behind words", "Result: " + good + " as asked", values, "ok_warn", ""},
		{"in a list", "1. " + good, values, "ok", ""},
		{"quoted", "> " + good, "", "fail", "no_artifact"},
		{"in a string", `He wrote "{"a":1}" there.`, "", "fail", "no_artifact"},
		{"in thinking", "<think>{\"a\":2}</think>\n" + good, values, "ok", ""},
		{"comment in the block", "```json\n// c\n" + good + "\n```", values, "ok", ""},
		{"trailing comma", `{"a":1,}`, "", "ok_warn", ""},
		{"no number", `{"a":NaN}`, "", "fail", "no_artifact"},
		{"cut string in a closed block", "```json\n{\"a\":\"x\n```", "", "fail", "truncated"},
		{"cut", "```json\n{\"a\": [1, 2", "", "fail", "truncated"},
		{"duplicate key", `{"a":1,"b":{"x":1,"x":2}}`, "", "fail", "protocol"},
		{"same key in two objects", `{"a":{"x":1},"b":{"x":2},"c":[{"x":3},{"x":4}]}`, "", "ok", ""},
		{"missing path", `{"items":[]}`, values, "fail", "validation_failed"},
		{"wrong type", `{"a":{"n":1.5},"items":[]}`, values, "fail", "validation_failed"},
		{"else", `{"a":{"n":1},"items":[]}`, values, "ok", ""},
		{"whole number with a point", `{"a":{"n":3.0},"items":[]}`, values, "ok", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := accept.NewState(nil, tt.answer)
			with := `{"json":{"to":"v.json"` + strings.TrimSuffix(","+tt.with, ",") + `}}`
			err := newStep(t, with).Apply(s)
			if outcome, class := outcomeOf(t, s, err); outcome != tt.outcome || class != tt.class {
				t.Fatalf("%s %s, want %s %s: %v %q", outcome, class, tt.outcome, tt.class, err, s.Warnings)
			}
			if strings.Contains(tt.answer, good) && tt.with != "" {
				want := map[string]any{"n": int64(9007199254740993), "items": []any{map[string]any{"t": "x"}}, "t": "x"}
				if !reflect.DeepEqual(s.Values, want) || string(s.Artifacts["v.json"]) != good+"\n" {
					t.Errorf("values %v, artifact %q", s.Values, s.Artifacts["v.json"])
				}
			}
			if tt.name == "else" && s.Values["t"] != "none" {
				t.Errorf("values %v", s.Values)
			}
		})
	}
}

// C-13: the text of an answer and of its sections.
func TestTextAndSections(t *testing.T) {
	const answer = "<think>plan</think>\n# Report\n\n## Summary\nA. B. C.\n\n## Rest\nx\n<<<N\nnote\nN>>>\nend"
	const with = `{"text":{"to":"r.md","value":"head","maxChars":10},
		"sections":{"sum":{"heading":"summary","to":"s.md","value":"summary"},"no":{"heading":"Nothing","value":"none","missing":"LEVEL"}},
		"markers":{"n":{"start":"<<<N","end":"N>>>"}}}`
	s := accept.NewState(nil, answer)
	if err := newStep(t, strings.Replace(with, "LEVEL", "warn", 1)).Apply(s); err != nil {
		t.Fatal(err)
	}
	if got := string(s.Artifacts["r.md"]); got != "# Report\n\n## Summary\nA. B. C.\n\n## Rest\nx\n\nend\n" {
		t.Errorf("text %q", got)
	}
	if s.Texts["sum"] != "A. B. C." || string(s.Artifacts["s.md"]) != "A. B. C.\n" {
		t.Errorf("section %q %q", s.Texts["sum"], s.Artifacts["s.md"])
	}
	if want := map[string]any{"summary": "A. B. C.", "head": "# Report\n\n"}; !reflect.DeepEqual(s.Values, want) {
		t.Errorf("values %q", s.Values)
	}
	if want := []string{`no: no section "Nothing"`, "head: 45 characters cut to 10"}; !reflect.DeepEqual(s.Warnings, want) {
		t.Errorf("warnings %q", s.Warnings)
	}
	for answer, class := range map[string]string{answer: "sections_missing", "and then...": "truncated", "x <!-- rest": "truncated", " \n": "no_artifact"} {
		s := accept.NewState(nil, answer)
		if _, got := outcomeOf(t, s, newStep(t, strings.Replace(with, "LEVEL", "fail", 1)).Apply(s)); got != class {
			t.Errorf("%q: %s, want %s", answer, got, class)
		}
	}
}

func TestDescribe(t *testing.T) {
	const with = `{"html":{"to":"p.html"},"json":{"values":{"n":{"type":"int"}}},"text":{"to":"t.md"},
		"markers":{"m":{"start":"a","end":"b","to":"m.md"}},"sections":{"s":{"heading":"h","value":"v"}},"from":{"file":"in.md"}}`
	tr, err := Kind.Describe([]byte(with))
	want := nodes.Traits{
		Effect: "pure", Outputs: map[string]string{"changed": "bool", "chars": "int", "n": "int", "v": "string?"},
		Files: []string{"in.md"}, Reads: []string{"p.html"}, Writes: []string{"p.html", "t.md", "m.md"},
	}
	if err != nil || !reflect.DeepEqual(tr, want) {
		t.Errorf("got  %+v %v\nwant %+v", tr, err, want)
	}
	for with, path := range map[string]string{
		`{}`:                                    "",
		`{"text":{"to":"a"},"html":{"to":"a"}}`: "text.to",
		`{"text":{}}`:                           "text",
		`{"markers":{"m":{"start":"a","end":"a"}}}`:                                             "markers.m",
		`{"markers":{"m":{"start":"a","end":"b"}},"sections":{"m":{"heading":"h"}}}`:            "sections.m",
		`{"sections":{"a":{"heading":"h","value":"v"},"b":{"heading":"h","value":"v"}}}`:        "sections.b.value",
		`{"text":{"to":"a"},"from":{"file":"x"}}`:                                               "from",
		`{"json":{"values":{"changed":{"type":"int"}}},"html":{"to":"a"}}`:                      "json.values.changed",
		`{"json":{"values":{"x":{"type":"int"}}},"sections":{"b":{"heading":"h","value":"x"}}}`: "sections.b.value",
		`{"json":{"to":"a"},"sections":{"b":{"heading":"h","to":"a"}}}`:                         "sections.b.to",
		`{"json":{"to":"a"},"markers":{"b":{"start":"x","end":"y","to":"a"}}}`:                  "markers.b.to",
		`{"json":{"to":"a"},"markers":{"b":{"start":"x","end":"","to":"c"}}}`:                   "markers.b",
		`{"text":{"value":"x"},"json":{"values":{"x":{"type":"int"}}}}`:                         "text.value",
	} {
		step, err := accept.ParseStep(Kind, []byte(with))
		if err != nil {
			t.Fatal(err)
		}
		tr := accept.DescribeStep(step)
		if err != nil || len(tr.Problems) != 1 || tr.Problems[0].Path != path {
			t.Errorf("%s: %+v %v", with, tr.Problems, err)
		}
	}
	for with, n := range map[string]int{`{"text":{"to":"a"}}`: 1, `{"text":{"to":"a"},"from":{"file":"a","text":"b"}}`: 1, `{"text":{"to":"a"},"from":{"text":""}}`: 0} {
		if tr, err := Kind.Describe([]byte(with)); err != nil || len(tr.Problems) != n {
			t.Errorf("%s: %+v %v", with, tr.Problems, err)
		}
	}
}

func TestRunAlone(t *testing.T) {
	w := &nodetest.Host{Artifacts: map[string]string{"answer.md": "Sure.\n```html\n" + page + "\n```\n", "pages/p.html": page}}
	task := w.Task(t, "extract", `{"from":{"artifact":"answer.md"},"html":{"to":"pages/p.html"}}`)
	res, err := Kind.Run(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(task.Out, res.Writes["pages/p.html"]))
	if err != nil || string(got) != page {
		t.Errorf("staged %q, %v", got, err)
	}
	if res.Values["changed"] != false || res.Values["chars"] != len(page) {
		t.Errorf("values %v", res.Values)
	}
	task = w.Task(t, "extract", `{"from":{"text":"nothing here"},"html":{"to":"p.html"},"markers":{"x":{"start":"a","end":"b"}}}`)
	res, err = Kind.Run(context.Background(), task)
	if err == nil || res == nil || len(res.Writes) != 0 || len(res.Warnings) != 1 {
		t.Errorf("a failed step: %+v %v", res, err)
	}
}

// C-8: nothing is taken out of a value that is broken or breaks off, words in braces are none, and what was left out
// beside a value is said.
func TestJSONBesideWhatIsNone(t *testing.T) {
	for _, tt := range []struct{ answer, want string }{
		{"{\"items\": [\n  {\"a\": 1}\n", "truncated"},
		{"{\"items\": [\n  {\"a\": 1},\n  {\"a\": 1,,}\n]}", "no_artifact"},
		{"{\"items\": [\n  {\"a\": 1},\n  {\"a\": 1,,},\n", "no_artifact"},
		{"{\n  items: [\n    {\"a\": 1}\n  ]\n}", "no_artifact"},
		{"{1: {\"a\": 1}}", "no_artifact"},
		{"As asked: {\"b\": \"}\", a: {\"a\": 1}}", "no_artifact"},
		{"{{\"a\": 1}}", "no_artifact"},
		{"{\"a\": 1}\n{\"a\": 2", "truncated"},
		{"So {\"a\": 1} and {\"a\": 2", "truncated"},
		{"```json\n{\"a\": 1}\n```\n```json\n{\"a\": 2\n```", "truncated"},
		{"```json\n{\"a\": 2\n```\n```json\n{\"a\": 1}\n```", "ok_warn"},
		{"{\"a\": 2,\n{\"a\": 1}", "ok_warn"},
		{"{'a': 2}\n{\"a\": 1}", "ok_warn"},
		{"{\"a\": 2, \"a\": 3}\n{\"a\": 1}", "ok_warn"},
		{"For {name} in [x]: {\"a\": 1}", "ok"},
		{"The set {1, 2} gives {\"a\": 1}", "ok"},
		{"{name}\n{\"a\": 1}", "ok"},
	} {
		s := accept.NewState(nil, tt.answer)
		err := newStep(t, `{"json":{"values":{"a":{"path":"a","type":"int"}}}}`).Apply(s)
		outcome, class := outcomeOf(t, s, err)
		if got := cmp.Or(class, outcome); got != tt.want || err == nil && fmt.Sprint(s.Values["a"]) != "1" {
			t.Errorf("%q: %s %v, want %s; %v %q", tt.answer, got, s.Values, tt.want, err, s.Warnings)
		}
	}
}
