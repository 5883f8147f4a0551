package validate

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

func apply(t testing.TB, with string, s *accept.State) error {
	t.Helper()
	step, err := accept.ParseStep(Kind, []byte(with))
	if err != nil {
		t.Fatal(err)
	}
	return step.Apply(s)
}

func category(err error) string {
	var e *nodes.Error
	if errors.As(err, &e) {
		return e.Category
	}
	return ""
}

// C-10, C-13: each test, holding and not. want "" holds; else the message.
func TestChecks(t *testing.T) {
	const schema = `{"type":"object","required":["a","z"],"properties":{"z":{},"a":{"type":"integer","minimum":1},"l":{"type":"array","items":{"type":"string","maxLength":2}},"e":{"enum":["x",1]}},"additionalProperties":false}`
	tests := []struct{ check, text, want string }{
		{`"nonEmpty":true`, " \u200b\n", "nonEmpty: empty"},
		{`"nonEmpty":true`, "x", ""},
		{`"minChars":501`, strings.Repeat("é", 500), "minChars: 500 characters, want at least 501"},
		{`"minChars":501`, strings.Repeat("é", 501), ""},
		{`"maxChars":1`, "éé", "maxChars: 2 characters, want at most 1"},
		{`"contains":"a"`, "b", `contains: does not contain "a"`},
		{`"contains":"a"`, "a", ""},
		{`"absent":"a"`, "a", `absent: contains "a"`},
		{`"matches":"^a+$"`, "aab", "matches: does not match ^a+$"},
		{`"matches":"(?m)^a+$"`, "b\naa", ""},
		{`"notMatches":"lorem"`, "a lorem b", `notMatches: matches lorem: "lorem"`},
		{`"notMatches":"x*"`, "a", `notMatches: matches x*: ""`},
		{`"html":"complete"`, "<html><body>x</body></html>", ""},
		{`"html":"complete"`, "<html><body>x</html>", "html: without </body>"},
		{`"html":"complete"`, "<html><body><script>'</body></html>'</script>", "html: without </body> and </html>"},
		{`"html":"complete"`, "<HTML><BODY>x</BODY></HTML>", ""},
		{`"sections":["Deeply integrated","Absent"]`, "## 1. Deeply integrated (7)\nx\n**Absent:**\ny", ""},
		{`"sections":["Deeply integrated","Absent"]`, "## Deeply integrated\nx\n## Absent\n\n", `sections: missing or empty: "Absent"`},
		{`"sections":["Absent"]`, "```\n## Absent\nx\n```", `sections: missing or empty: "Absent"`},
		{`"json":` + schema, `{"a":1,"z":null,"l":["xy"],"e":1}`, ""},
		{`"json":` + schema, `{"a":0,"z":null}`, "json: the value.a: minimum: got 0, want 1"},
		{`"json":` + schema, `{"a":1}`, "json: the value: missing z"},
		{`"json":` + schema, `{"a":1,"z":1,"l":["xyz"]}`, "json: the value.l[0]: maxLength: got 3, want 2"},
		{`"json":` + schema, `{"a":1,"z":1,"q":1}`, "json: the value: no field is named q"},
		{`"json":` + schema, `{"a":1,"a":1,"z":1}`, "json: "},
		{`"json":` + schema, `{"a":1`, "json: "},
		{`"nonEmpty":true,"of":"gone"`, "x", "nonEmpty: there is no gone"},
		{`"minChars":2,"message":"too short","name":"length"`, "x", "length: too short"},
	}
	for _, tt := range tests {
		err := apply(t, `{"checks":[{`+tt.check+`}]}`, accept.NewState(nil, tt.text))
		switch {
		case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s of %q: %v, want %q", tt.check, tt.text, err, tt.want)
		case err != nil && category(err) != map[bool]string{true: "sections_missing", false: "validation_failed"}[strings.HasPrefix(tt.check, `"sections`)]:
			t.Errorf("%s: category %s", tt.check, category(err))
		}
	}
}

// C-10: the width of the container is that of boxes that exist, outside of conditions.
func TestContainerWidth(t *testing.T) {
	tests := []struct{ style, body, want string }{
		{".page{max-width:950px}", `<main class="a page">`, ""},
		{".page{max-width:940px}", `<p class=page>`, ""},
		{".page{max-width:960px}", `<p class=page>`, ""},
		{".page{max-width:961px}", `<p class=page>`, "max-width of .page is 961px, want 940-960px"},
		{".page { margin: 0; MAX-WIDTH : 59.375rem }", `<p class=page>`, ""},
		{":root{--w:950px} .page{max-width:var(--w)}", `<p class=page>`, ""},
		{".page{max-width:var(--none, 950px)}", `<p class=page>`, ""},
		{".page{max-width:min(950px, 100%)}", `<p class=page>`, ""},
		{".page{max-width:calc(900px + 3rem)}", `<p class=page>`, ""},
		{".page{max-width:clamp(300px, 90%, 950px)}", `<p class=page>`, ""},
		{".page{max-width:80%}", `<p class=page>`, `max-width of .page is "80%", no length in pixels`},
		{".page{max-width:var(--a)} :root{--a:var(--a)}", `<p class=page>`, "no length in pixels"},
		{".page{max-width:950px} @media (max-width:600px){.page{max-width:100px}}", `<p class=page>`, ""},
		{"@media print{.page{max-width:950px}}", `<p class=page>`, "no max-width for .page"},
		{"@layer base{.page{max-width:950px}}", `<p class=page>`, ""},
		{"/* .page{max-width:950px} */", `<p class=page>`, "no max-width for .page"},
		{".x::after{content:'.page{max-width:950px}'}", `<p class=page>`, "no max-width for .page"},
		{".card{max-width:950px}", `<p class=page>`, "no max-width for .page"},
		{".page{max-width:950px}", `<p>`, "no element is .page"},
		{".page{max-width:950px}", `<!-- <p class=page> -->`, "no element is .page"},
		{".page{max-width:100px} .page{max-width:950px}", `<p class=page>`, ""},
		{"body > main.page, .other{max-width:950px}", `<main class=page>`, ""},
		{".page:hover{max-width:950px}", `<p class=page>`, "no max-width for .page"},
		{".page-wide{max-width:950px}", `<p class=page-wide>`, "no max-width for .page"},
		{"", `<p class=page style="max-width:950px">`, ""},
		{"#shell{max-width:950px}", `<p id=shell>`, ""},
		{"#shell{max-width:950px} .page{max-width:10px}", `<p id=shell class=page>`, "max-width of .page is 10px"},
		{".page{max-width:950px", `<p class=page>`, ""},
		{"}}}.page{max-width:950px}", `<p class=page>`, ""},
		{":root{--Max:950px} .page{max-width:var(--Max)}", `<p class=page>`, ""},
		{".page{max-width:950px!important} .page{max-width:100px}", `<p class=page>`, ""},
		{".page{max-width:950px ! important}", `<p class=page style="max-width:100px">`, ""},
		{".page{max-width:950px} .page{max-width:none}", `<p class=page>`, `max-width of .page is "none"`},
		{".page{max-inline-size:950px}", `<p class=page>`, ""},
		{".page{width:950px}", `<p class=page>`, "no max-width for .page"},
		{".page{max-width:950px; .card{max-width:100px} color:red}", `<p class=page>`, ""},
		{".page{color:red; .card{color:blue} max-width:950px}", `<p class=page>`, ""},
		{".page{max-width:950px; @media (max-width:600px){max-width:100px}}", `<p class=page>`, ""},
		{"@media (min-width:1px){.page{max-width:100px;.a{b:c}max-width:1px}} .page{max-width:950px}", `<p class=page>`, ""},
		{"@import url(x.css); @charset \"utf-8\"; .page{max-width:950px}", `<p class=page>`, ""},
		{"@font-face{font-family:x;src:url(y)} .page{max-width:950px}", `<p class=page>`, ""},
		{".a{background:url(data:image/svg+xml;utf8,<svg{}}>)} .page{max-width:950px}", `<p class=page>`, ""},
		{"@supports (display:grid){.page{max-width:950px}}", `<p class=page>`, "no max-width for .page"},
		{"@container (width>1px){.page{max-width:950px}}", `<p class=page>`, "no max-width for .page"},
		{"</style><style media=print>.page{max-width:950px}", `<p class=page>`, "no max-width for .page"},
		{"</style><style media=screen>.page{max-width:950px}", `<p class=page>`, ""},
		{"<!-- .page{max-width:950px} -->", `<p class=page>`, ""},
		{".page{max-width:60em}", `<p class=page>`, "no length in pixels"},
		{".page{max-width:950 px}", `<p class=page>`, "no length in pixels"},
		{".page{max-width:950.5px}", `<p class=page>`, ""},
		{".page{max-width:min(950px, calc(100% - 2rem))}", `<p class=page>`, ""},
		{".wrap, main .page , .b{max-width:950px}", `<p class=page>`, ""},
		{".page > .inner{max-width:950px}", `<p class=page>`, "no max-width for .page"},
		{".page{max-width:950px}", `<script>"<p class=page>"</script>`, "no element is .page"},
	}
	for _, tt := range tests {
		page := "<html><head><style>" + tt.style + "</style></head><body>" + tt.body + "</body></html>"
		err := apply(t, `{"checks":[{"css":{"selectors":[".page","#shell"],"min":940,"max":960}}]}`, accept.NewState(nil, page))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", page, err, tt.want)
		}
	}
}

// Hostile style sheets are followed a bounded number of steps and read once.
func TestStyleSheetsAreBounded(t *testing.T) {
	var nested strings.Builder
	for i := range 9 {
		nested.WriteString("--v" + string(rune('a'+i)) + ":min(" + strings.Repeat("var(--v"+string(rune('b'+i))+"),", 50) + "1%);")
	}
	for name, style := range map[string]string{
		"variables of variables":      ":root{" + nested.String() + "} .page{max-width:var(--va)}",
		"many selectors, a long body": strings.Repeat(".page,", 1<<15) + ".page{" + strings.Repeat("max-width:1px;", 1<<15) + "}",
		"open brackets":               strings.Repeat("{", 1<<16),
		"open urls":                   strings.Repeat("url(", 1<<12),
		"open comments":               strings.Repeat("/*", 1<<16),
		"many braces":                 strings.Repeat(".page{max-width:1px}", 1<<14),
	} {
		sh := readSheet("<style>"+style+"</style><p class=page>", &cssRule{Selectors: []string{".page"}, Property: "max-width"})
		sh.pixels(sh.values[".page"].text, 0)
		if sh.steps > 2*mostSteps || len(sh.values) > 1 {
			t.Errorf("%s: %d steps, %d values", name, sh.steps, len(sh.values))
		}
	}
}

// C-10: all checks are made, warnings do not fail, the quality record holds both.
func TestWarningsAndRecord(t *testing.T) {
	s := accept.NewState(nil, "answer")
	s.Artifacts["p.html"] = []byte("short")
	err := apply(t, `{"of":"p.html","checks":[{"minChars":2000,"level":"warn"},{"html":"complete"},{"contains":"x","category":"mine"},
		{"of":"notes","nonEmpty":true,"level":"warn","message":"no notes"}]}`, s)
	if category(err) != "validation_failed" || err.Error() != `html: without </body> and </html>; contains: does not contain "x"` {
		t.Errorf("got %v", err)
	}
	if want := []string{"minChars: 5 characters, want at least 2000", "nonEmpty: no notes"}; !reflect.DeepEqual(s.Warnings, want) {
		t.Errorf("warnings %q", s.Warnings)
	}
	if len(s.Notes) != 1 || s.Notes[0].Log != "quality" || s.Notes[0].Fields["result"] != "fail" || s.Notes[0].Fields["warnings"] != 2 || s.Notes[0].Fields["checks"] != 4 {
		t.Errorf("notes %+v", s.Notes)
	}
}

// C-13, K-1: counts go to the values and to the quality log.
func TestCounts(t *testing.T) {
	const report = "## Deeply integrated: 7\n- a\n- **Listed**: 4\n\n**Surface level** — 3\n\n| Faded | 12 |\n\n## Absent\n- x\n  - detail\n- y\n1. z\n\nTotal: 3.5\nHalf: 3/4\nRange: 2-3\nEither: 2 or 3\nWords: two\n> Quoted: 5\n```\nCoded: 6\n```\nLate:\nLate: 8\n"
	tests := map[string]int{
		`{"label":"Deeply integrated"}`: 7, `{"label":"surface level"}`: 3, `{"label":"Faded"}`: 12,
		`{"items":"Absent"}`: 3, `{"label":"Total"}`: -1, `{"label":"Half"}`: -1, `{"label":"Gone"}`: -1, `{"label":"Range"}`: -1, `{"label":"Either"}`: -1, `{"label":"Words"}`: -1,
		`{"label":"Listed"}`: 4, `{"label":"Quoted"}`: -1, `{"label":"Coded"}`: -1, `{"label":"Late"}`: 8, `{"items":"Gone"}`: -1, `{"items":"Absent","of":"none"}`: -1,
	}
	for count, want := range tests {
		s := accept.NewState(nil, report)
		if err := apply(t, `{"record":"depth","counts":{"n":`+count+`}}`, s); err != nil {
			t.Fatal(err)
		}
		if n, read := s.Values["n"]; read != (want >= 0) || read && n != want || read == (len(s.Warnings) == 1) {
			t.Errorf("%s: %v, want %d; %q", count, s.Values["n"], want, s.Warnings)
		}
		if len(s.Notes) != 1 || s.Notes[0].Type != "depth" || want >= 0 && s.Notes[0].Fields["n"] != want {
			t.Errorf("%s: notes %+v", count, s.Notes)
		}
	}
}

func TestDescribeProblems(t *testing.T) {
	for with, want := range map[string]string{
		`{}`:                            "want at least one of checks and counts",
		`{"checks":[{"level":"warn"}]}`: "want exactly one test",
		`{"checks":[{"minChars":1,"maxChars":2}]}`:                              "want exactly one test",
		`{"checks":[{"matches":"("}]}`:                                          "error parsing regexp",
		`{"checks":[{"css":{"selectors":["a b"],"min":1}}]}`:                    "want a class, an id or an element",
		`{"checks":[{"css":{"selectors":[".a"]}}]}`:                             "want at least one of min and max",
		`{"checks":[{"json":{"type":"strnig"}}]}`:                               "json: type: want one of",
		`{"checks":[{"json":{"tpye":"string"}}]}`:                               `did you mean "type"?`,
		`{"checks":[{"json":{"pattern":"("}}]}`:                                 "(",
		`{"counts":{"n":{"label":"a","items":"b"}}}`:                            "want one of label and items",
		`{"checks":[{"nonEmpty":true}],"from":{"text":"x"}}`:                    "only for a node of this kind",
		`{"checks":[{"json":{"properties":{"a":{"items":{"maxLength":-1}}}}}]}`: "json: properties.a.items.maxLength: minimum: got -1, want 0",
	} {
		step, err := accept.ParseStep(Kind, []byte(with))
		if err != nil {
			t.Fatal(err)
		}
		tr := accept.DescribeStep(step)
		if err != nil || len(tr.Problems) != 1 || !strings.Contains(tr.Problems[0].Text, want) {
			t.Errorf("%s: %+v %v", with, tr.Problems, err)
		}
	}
	tr, err := Kind.Describe([]byte(`{"from":{"artifact":"p"},"counts":{"n":{"label":"a"}}}`))
	if err != nil || !reflect.DeepEqual(tr, nodes.Traits{Effect: "pure", Outputs: map[string]string{"n": "int?"}, Reads: []string{"p"}}) {
		t.Errorf("%+v %v", tr, err)
	}
}

func TestRunAlone(t *testing.T) {
	w := &nodetest.Host{Artifacts: map[string]string{"p.html": "<html><body></body></html>"}}
	task := w.Task(t, "validate", `{"from":{"artifact":"p.html"},"checks":[{"html":"complete"},{"minChars":100}]}`)
	res, err := Kind.Run(context.Background(), task)
	if category(err) != "validation_failed" || res == nil || len(res.Notes) != 1 {
		t.Errorf("%+v %v", res, err)
	}
}

func FuzzValidate(f *testing.F) {
	for _, s := range []string{"<style>.a{max-width:calc(1px + var(--b))", "## S\nx", `{"a":[1]}`, "S: 3", "<p class=a style='max-width:min(1px,'>"} {
		f.Add(s)
	}
	step, err := accept.ParseStep(Kind, []byte(`{"checks":[{"html":"complete"},{"css":{"selectors":[".a","p"],"min":1}},{"sections":["S"]},{"json":{"type":"object"}}],
		"counts":{"n":{"label":"S"},"m":{"items":"S"}}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := accept.NewState(nil, text)
		if err := step.Apply(s); err != nil && category(err) == "" {
			t.Fatal(err)
		}
	})
}
