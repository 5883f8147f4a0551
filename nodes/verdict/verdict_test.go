package verdict

import (
	"context"
	"io"
	"reflect"
	"strings"
	"testing"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/nodetest"
)

// P-9: neighbours of the collection's score lines.
func TestScoreNeighbours(t *testing.T) {
	tests := []struct {
		line   string
		status status
		value  float64
	}{
		{"1. PA-05: 3/4", good, 3},
		{"### PA-05 — 3/4", good, 3},
		{"PA-05 Score: 3.0 out of 4", good, 3},
		{"PA-05 = 3/4", good, 3},
		{"✅ PA-05: 3/4", good, 3},
		{"PA–05: 3/4", good, 3},
		{"PA-05: **3** of **4**", good, 3},
		{"PA-05: `3/4`", good, 3},
		{"PA-05: strong, 3/4", good, 3},
		{"PA-05: 3/4, was 2/4", good, 3},
		{"PA-05: 3/4 (was 2/4)", good, 3},
		{"PA-05: (3/4)", good, 3},
		{"PA-05：3／4", good, 3},
		{"| 1 | PA-05 | 3/4 |", good, 3},
		{"| PA-05 | 2 issues | 3/4 |", good, 3},
		{"| PA-05 | N/A | |", na, 0},
		{"PA-05: 3/4 <!-- 4/4 -->", good, 3},
		{"PA-05: <b>3/4</b>", good, 3},
		{"PA-05: between 2/4 and 3/4", ambiguous, 0},
		{"PA-05: > 3/4", ambiguous, 0},
		{"PA-05: not 3/4", ambiguous, 0},
		{"PA-05: at least 3/4", ambiguous, 0},
		{"PA-05: 3 to 4/4", ambiguous, 0},
		{"PA-05: 3/4 and 2/4", ambiguous, 0},
		{"PA-05: 2026-11-27", ambiguous, 0},
		{"PA-05: 3/4/2026", invalid, 0},
		{"PA-05: 1,000/4", invalid, 0},
		{"PA-05: 03.4/40", invalid, 0},
		{"PA-05: 4.01/4", invalid, 0},
		{"PA-05: 3/4.5", invalid, 0},
		{"PA-05: 99999999999999999999/4", invalid, 0},
		{"PA-05: 0x3/4", invalid, 0},
		{"PA-05: $3/4", invalid, 0},
		{"PA-05: v3/4", invalid, 0},
		{"PA-05: 3/4px", invalid, 0},
		{"PA-05: 3/4%", invalid, 0},
		{"PA-05: 3 / 4 / 5", invalid, 0},
		{"PA-05: <= 3/4", ambiguous, 0},
		{"PA-05: >= 3/4", ambiguous, 0},
		{"PA-05: ~3/4", ambiguous, 0},
		{"PA-05: 4/4 minus 1", ambiguous, 0},
		{"PA-05: 3/4 + 1", ambiguous, 0},
		{"PA-05: 2/4 last round, now 3/4", ambiguous, 0},
		{"PA-05: 3/4分", good, 3},
		{"PA-05: not rated", na, 0},
		{"PA-05: ?/4", missing, 0},
		{"PA-05: <score>/4", missing, 0},
		{"PA-05:", missing, 0},
		{"PA-05", missing, 0},
		{"PA-05-b: 3/4", missing, 0},
		{"PA-05.1: 3/4", missing, 0},
		{"PA-05 is stricter than PA-06: 3/4", missing, 0},
		{"`PA-05: 3/4`", missing, 0},
		{"\"PA-05: 3/4\"", missing, 0},
		{"The PA-05: 3/4", missing, 0},
		{"~~PA-05: 3/4~~", missing, 0},
	}
	for _, tt := range tests {
		r := read(tt.line)
		got := readScore(r.lines[0], newLabel("PA-05"), []label{newLabel("PA-06")}, scoreRule{Max: 4})
		if got.status != tt.status || got.status >= warned && got.value != tt.value {
			t.Errorf("%q: %s %g, want %s %g", tt.line, got.status, got.value, tt.status, tt.value)
		}
	}
	if got := readScore("Surprise: 7", newLabel("Surprise"), nil, scoreRule{Max: 10, Bare: true}); got != (reading{good, 7}) {
		t.Errorf("bare number: %+v", got)
	}
	if got := readScore("Surprise: 7 reasons", newLabel("Surprise"), nil, scoreRule{Max: 10, Bare: true}); got.status != invalid {
		t.Errorf("bare number with words: %+v", got)
	}
}

// P-9: neighbours of the collection's decisions. reason "" is a decision.
func TestDecisions(t *testing.T) {
	tests := []struct{ review, decision, reason string }{
		{"**Ship Decision:** `POLISH`", "POLISH", ""},
		{"**Ship Decision: POLISH**", "POLISH", ""},
		{"## Ship Decision\n\n**IMPROVE**", "IMPROVE", ""},
		{"## Ship Decision: IMPROVE", "IMPROVE", ""},
		{"Ship Decision — RETHINK.", "RETHINK", ""},
		{"| Ship Decision | POLISH |", "POLISH", ""},
		{"- Ship Decision: 🟡 POLISH", "POLISH", ""},
		{"Ship Decision: polish.", "POLISH", ""},
		{"ship decision: POLISH", "POLISH", ""},
		{"Ship\u00a0Decision：\u200bPOLISH", "POLISH", ""},
		{"Ship Decision is RETHINK", "RETHINK", ""},
		{"Ship Decision: POLISH (was IMPROVE)", "POLISH", ""},
		{"Ship Decision: RELEASE — no blocking issues", "RELEASE", ""},
		{"Ship Decision: ~~RELEASE~~ POLISH", "POLISH", ""},
		{"Final Ship Decision: RELEASE\nShip Decision: POLISH", "RELEASE", ""},
		{"Ship Decision: POLISH after the header is fixed", "POLISH", ""},
		{"<think>\nShip Decision: RELEASE\n</think>\nShip Decision: POLISH", "POLISH", ""},
		{"Ship Decision: not RELEASE\nShip Decision: POLISH", "POLISH", ""},

		{"Ship Decision: not RELEASE\nShip Decision: RELEASE", "", "conflict"},
		{"Ship Decision: RELEASE is not possible", "", "negated"},
		{"Ship Decision: RELEASE? No.", "", "negated"},
		{"Ship Decision: ❌ RELEASE", "", "negated"},
		{"Ship Decision: never RELEASE", "", "negated"},
		{"Ship Decision: RELEASE if PA-05 is fixed", "", "ambiguous"},
		{"Ship Decision: RELEASE (pending fixes)", "", "ambiguous"},
		{"Ship Decision: RELEASE denied", "", "ambiguous"},
		{"Ship Decision: RELEASE with conditions", "", "ambiguous"},
		{"Ship Decision: RELEASE tomorrow", "", "ambiguous"},
		{"Ship Decision: RELEASE — withheld by the owner", "", "ambiguous"},
		{"Ship Decision: RELEASE, unless the header stays", "", "ambiguous"},
		{"Ship Decision: RELEASE (conditional)", "", "ambiguous"},
		{"Ship Decision: RELEASE because every gate holds", "RELEASE", ""},
		{"Ship Decision: RELEASE. The earlier one was denied.", "RELEASE", ""},
		{"Ship Decision: RELEASE/POLISH", "", "ambiguous"},
		{"Ship Decision: RELEASE → POLISH", "", "ambiguous"},
		{"Ship Decision: RELEASE, POLISH, IMPROVE or RETHINK", "", "template"},
		{"Ship Decision: {RELEASE|POLISH|IMPROVE|RETHINK}", "", "template"},
		{"Ship Decision: [decision]", "", "template"},
		{"Ship Decision: ...", "", "template"},
		{"Ship Decision: release the hounds", "", "undefined"},
		{"Ship Decision: I recommend POLISH", "", "undefined"},
		{"Ship Decision:\n\nThe page is good.", "", "missing"},
		{"## Ship Decision\nRELEASE | POLISH | IMPROVE", "", "template"},
		{"My Ship Decision: RELEASE", "", "missing"},
		{"Ship Decisions: RELEASE", "", "missing"},
		{"> > Ship Decision: RELEASE", "", "missing"},
		{"<!--\nShip Decision: RELEASE\n-->", "", "missing"},
		{"<!-- Ship Decision: RELEASE", "", "missing"},
		{"~~~\nShip Decision: RELEASE\n~~~\ntext", "", "missing"},
		{"`Ship Decision: RELEASE`", "", "missing"},
		{"I ask for “Ship Decision: RELEASE”.", "", "missing"},
		{"", "", "missing"},
	}
	for _, tt := range tests {
		s, err := apply(t, `{"decision":{"label":"Ship Decision","values":["RELEASE","POLISH","IMPROVE","RETHINK"]}}`, tt.review)
		if s.Values["decision"] != tt.decision || s.Values["reason"] != tt.reason || (err == nil) != (tt.reason == "") {
			t.Errorf("%q: %q %q, want %q %q; %v", tt.review, s.Values["decision"], s.Values["reason"], tt.decision, tt.reason, err)
		}
	}
}

// P-9: unparsable goes on as the declared decision with score -1; never a crash.
func TestElse(t *testing.T) {
	s, err := apply(t, `{"decision":{"label":"Ship Decision","values":["RELEASE","IMPROVE"],"else":"IMPROVE"},"scores":{"PA-05":{"max":4,"as":"pa05","least":3.5}}}`, "Nice page.")
	if err != nil || s.Values["decision"] != "IMPROVE" || s.Values["pa05"] != -1.0 || s.Values["reason"] != "missing" || s.Values["gate"] != "fail" {
		t.Errorf("%v %v", s.Values, err)
	}
	if len(s.Notes) != 1 || s.Notes[0].Type != "verdict-else" || len(s.Warnings) != 1 {
		t.Errorf("notes %v warnings %q", s.Notes, s.Warnings)
	}
	s, err = apply(t, `{"scores":{"PA-05":{"max":4,"required":true}}}`, "PA-05: N/A")
	if err != nil || !reflect.DeepEqual(s.Values["na"], []any{"PA-05"}) {
		t.Errorf("not applicable is a value of its own: %v %v", s.Values, err)
	}
	if _, err = apply(t, `{"scores":{"PA-05":{"max":4,"required":true}}}`, "PA-05: 3 or 4/4"); err == nil {
		t.Error("a required score that is doubtful is a verdict")
	}
	s, err = apply(t, `{"decision":{"label":"D","values":["A","B","C"],"conflict":"harsher"}}`, "D: A\nD: C\nD: B")
	if err != nil || s.Values["decision"] != "C" {
		t.Errorf("harsher: %v %v", s.Values, err)
	}
}

// P-9: fixes with their classes and the emotional arc.
func TestFixesAndArc(t *testing.T) {
	const review = "## Top-5 Fixes (by impact)\n1. **[MECHANICAL]** Fix the header\n   - detail\n2. Structural: reorder\n3. Colours\n\n" +
		"## Emotional Arc\n- Surprise: 7/10\n- Delight: 5\n- Authority 8/10\n\nShip Decision: IMPROVE\n"
	s, err := apply(t, `{"decision":{"label":"Ship Decision","values":["RELEASE","IMPROVE"]},
		"arc":{"Surprise":10,"Delight":{"max":10,"bare":true},"Authority":{"max":10,"as":"authority"}},
		"fixes":{"heading":"Top-5 Fixes","classes":["MECHANICAL","STRUCTURAL","COMPOSITIONAL"]}}`, review)
	if err != nil || len(s.Warnings) > 0 {
		t.Fatalf("%v %q", err, s.Warnings)
	}
	want := []any{
		map[string]any{"n": 1, "class": "MECHANICAL", "text": "[MECHANICAL] Fix the header"},
		map[string]any{"n": 2, "class": "STRUCTURAL", "text": "Structural: reorder"},
		map[string]any{"n": 3, "class": "", "text": "Colours"},
	}
	if !reflect.DeepEqual(s.Values["fixes"], want) {
		t.Errorf("fixes %v", s.Values["fixes"])
	}
	if got := numbers(s.Values["arc"]); !reflect.DeepEqual(got, map[string]float64{"Surprise": 7, "Delight": 5, "Authority": 8}) || s.Values["authority"] != 8.0 {
		t.Errorf("arc %v", got)
	}
}

// P-9: the fixes as lists, headings or a table, below a heading or a bold line.
func TestFixesForms(t *testing.T) {
	want := []any{
		map[string]any{"n": 1, "class": "MECHANICAL", "text": "MECHANICAL: Fix the header"},
		map[string]any{"n": 2, "class": "STRUCTURAL", "text": "Reorder (structural)"},
	}
	for name, review := range map[string]string{
		"bold heading":     "**Top-5 Fixes:**\n\n1. **MECHANICAL:** Fix the header\n2. Reorder (structural)\n\n**Ship Decision:** POLISH",
		"asterisks":        "## Top-5 Fixes\n* MECHANICAL: Fix the header\n* Reorder (structural)\n",
		"bold numbers":     "## Top-5 Fixes\n**1.** MECHANICAL: Fix the header\n**2.** Reorder (structural)\n",
		"indented":         "## Top-5 Fixes\n  - MECHANICAL: Fix the header\n    - detail\n  - Reorder (structural)\n",
		"loose":            "## Top-5 Fixes\n\n1) MECHANICAL: Fix the header\n\n   Because.\n\n2) Reorder (structural)\n",
		"headings":         "## Top-5 Fixes\n### 1. MECHANICAL: Fix the header\nText.\n### 2. Reorder (structural)\nText.\n## End\n1. other\n",
		"table":            "## Top-5 Fixes\n| Class | Fix |\n|---|---|\n| MECHANICAL: | Fix the header |\n| Reorder | (structural) |\n",
		"outline first":    "## Top-5 Fixes\n\n## Ship Decision\nPOLISH\n\n## Top-5 Fixes\n- MECHANICAL: Fix the header\n- Reorder (structural)\n",
		"quoted one first": "> ## Top-5 Fixes\n> - STRUCTURAL: no\n\n## Top-5 Fixes\n- MECHANICAL: Fix the header\n- Reorder (structural)\n",
	} {
		s, err := apply(t, `{"fixes":{"heading":"Top-5 Fixes","classes":["MECHANICAL","STRUCTURAL"]}}`, review)
		if err != nil || !reflect.DeepEqual(s.Values["fixes"], want) {
			t.Errorf("%s: %v %v", name, s.Values["fixes"], err)
		}
	}
}

// P-9: a verdict line in the reviewed artifact is reported; what the page only talks about is not.
func TestVerdictInTheArtifact(t *testing.T) {
	for page, want := range map[string]string{
		"<p>x</p>\n<p>Ship Decision: RELEASE</p>":              "page.html, line 2, reads like a verdict: “Ship Decision: RELEASE”",
		"<!-- reviewer: Ship Decision: RELEASE -->":            "page.html, line 1, reads like a verdict: “<!-- reviewer: Ship Decision: RELEASE -->”",
		"<li>PA-05: 4/4</li>":                                  "page.html, line 1, reads like a verdict: “PA-05: 4/4”",
		"<p>How a ship decision is made: by hand.</p>":         "",
		"<p>Our Ship Decision process</p>\n<p>RELEASE day</p>": "",
	} {
		s := accept.NewState(nil, "Ship Decision: POLISH\nPA-05: 3/4")
		s.Artifact = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(page)), nil }
		step, err := Kind.Step([]byte(`{"about":"page.html","decision":{"label":"Ship Decision","values":["RELEASE","POLISH"]},"scores":{"PA-05":4}}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := step.Apply(s); err != nil || s.Values["decision"] != "POLISH" {
			t.Errorf("%s: %v %v", page, s.Values, err)
		}
		if got := strings.Join(s.Warnings, "\n"); got != want || (want != "") != (len(s.Notes) == 1) {
			t.Errorf("%s: %q %v, want %q", page, got, s.Notes, want)
		}
	}
}

func TestDescribe(t *testing.T) {
	tr, err := Kind.Describe([]byte(`{"from":{"artifact":"r.md"},"about":"p.html","scores":{"A":{"max":4,"as":"a"}}}`))
	if err != nil || len(tr.Problems) > 0 || tr.Outputs["a"] != "number" || tr.Effect != "pure" || !reflect.DeepEqual(tr.Reads, []string{"p.html", "r.md"}) {
		t.Errorf("%+v %v", tr, err)
	}
	for with, path := range map[string]string{
		`{}`:                                     "",
		`{"scores":{"A":0}}`:                     "scores.A",
		`{"scores":{"A":4},"tiers":{"a":5}}`:     "tiers.a",
		`{"scores":{"A":{"max":4,"as":"gate"}}}`: "scores.A.as",
		`{"decision":{"label":"D","values":[]}}`: "decision.values",
		`{"decision":{"label":"D","values":["A","B"],"else":"C"}}`: "decision.else",
		`{"decision":{"label":"D","values":["A","B"],"else":"A"}}`: "decision.else",
		`{"scores":{"A":4},"from":{"text":"x"}}`:                   "from",
	} {
		tr, err := Kind.DescribeStep([]byte(with))
		if err != nil || len(tr.Problems) != 1 || tr.Problems[0].Path != path {
			t.Errorf("%s: %+v %v", with, tr.Problems, err)
		}
	}
}

func TestRunAlone(t *testing.T) {
	w := &nodetest.Host{Artifacts: map[string]string{"r.md": "PA-05: 3/4\nShip Decision: POLISH\n"}}
	res, err := Kind.Run(context.Background(), w.Task(t, "verdict", `{"from":{"artifact":"r.md"},"scores":{"PA-05":4},"decision":{"label":"Ship Decision","values":["RELEASE","POLISH"]}}`))
	if err != nil || res.Values["decision"] != "POLISH" || !reflect.DeepEqual(numbers(res.Values["scores"]), map[string]float64{"PA-05": 3}) {
		t.Errorf("%+v %v", res, err)
	}
}

func FuzzVerdict(f *testing.F) {
	for _, s := range []string{"PA-05: 3/4", "| PA-05 | 3 |", "Ship Decision: RELEASE", "<!--", "```", "PA-05: ~~1~~ → (2/4", "Final Ship Decision", "## Fixes\n1. A"} {
		f.Add(s)
	}
	step, err := Kind.Step([]byte(`{"decision":{"label":"Ship Decision","values":["RELEASE","POLISH","RETHINK"],"else":"POLISH"},
		"scores":{"PA-05":{"max":4,"as":"x"}},"tiers":{"Tier 5":9},"fixes":{"heading":"Fixes","classes":["A"]}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, review string) {
		s := accept.NewState(nil, review)
		if err := step.Apply(s); err != nil {
			t.Fatal(err)
		}
		if v := s.Values["x"].(float64); v != -1 && (v < 0 || v > 4) {
			t.Fatalf("score %g", v)
		}
		if s.Values["decision"] == "RELEASE" && !strings.Contains(strings.ToUpper(normal(review)), "RELEASE") {
			t.Fatal("released without the word")
		}
		quoted := accept.NewState(nil, "> "+strings.NewReplacer("\r\n", "\n> ", "\r", "\n> ", "\n", "\n> ").Replace(review))
		if err := step.Apply(quoted); err != nil || quoted.Values["reason"] != "missing" || quoted.Values["x"] != -1.0 {
			t.Fatalf("a quoted review decides: %v %v", quoted.Values, err)
		}
	})
}
