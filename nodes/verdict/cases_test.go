package verdict

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

// settingsFor declares the decision and those scores that a case speaks of: one that is not read is a warning.
func settingsFor(e expectation) string {
	scores := ""
	switch {
	case e.Tiers != nil:
		scores = `,"scores":{"Tier 5":9}`
	case e.Gate != "":
		scores = `,"scores":{"PA-05":{"max":4,"least":2},"PA-06":4}`
	case e.Scores != nil:
		scores = `,"scores":{"PA-05":4}`
	}
	return `{"decision":{"label":"Ship Decision","values":["RELEASE","POLISH","IMPROVE","RETHINK"]}` + scores + `}`
}

// notRead are score lines of b-verdict/01 from which a reader would take a number and the contract does not: a line holds the
// label, one number/maximum and nothing else.
var notRead = map[string]string{
	"PA-05 (was 2.0/4): 3.0/4": "a remark before the score",
	"PA-05: 2.0/4 → 3.0/4":     "two scores",
	"PA-06: 1/4, PA-05: 3/4":   "two labels",
}

// P-9, A-3, b-verdict/01: one score line in forty-odd spellings. What is not applicable, unclear or invalid is not read.
func TestScoreLines(t *testing.T) {
	b, err := os.ReadFile("testdata/cases/01-score-lines/lines.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range strings.Split(strings.TrimRight(string(b), "\n"), "\n")[1:] {
		f := strings.Split(row, "\t")
		s, err := apply(t, `{"scores":{"PA-05":4,"PA-06":4,"Tier 5":9}}`, f[0])
		want, stated := strconv.ParseFloat(f[1], 64)
		got, read := s.Values["scores"].(map[string]any)["PA-05"]
		if _, listed := notRead[f[0]]; listed && !read {
			continue
		}
		if err != nil || read != (stated == nil) || read && got != want {
			t.Errorf("line %d %q: %v, want %s %s (%s)", i+2, f[0], got, f[3], f[1], f[4])
		}
	}
}

// askedAgain are the variants of b-verdict that state a decision or a score which the contract does not take: the review is asked
// for again, or the score is absent (section 14.26 of the design).
var askedAgain = map[string]string{
	"04-negated-or-undefined/9":  "a reason stands on the line",
	"05-conflicting-decisions/2": "the label stands within a line: Final Ship Decision",
	"08-tiers/3":                 "a remark stands between label and score: (Motion)",
	"08-tiers/4":                 "a word stands between label and score: total",
	"08-tiers/6":                 "two scores on a line",
}

// P-9, A-3: every review of b-verdict gives the stated outcome, or is asked for again.
func TestCases(t *testing.T) {
	dirs, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range dirs {
		for _, e := range readExpectations(t, dir) {
			if e.Table == "" {
				name := fmt.Sprintf("%s/%d", filepath.Base(dir), e.Variant)
				t.Run(name, func(t *testing.T) { runCase(t, dir, name, e) })
			}
		}
	}
}

type expectation struct {
	Variant                                                       int
	Outcome, Class, Reason, Decision, Harshest, Gate, Note, Table string
	Scores, Tiers                                                 map[string]float64
}

func readExpectations(t *testing.T, dir string) []expectation {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "expect.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(b), "\nexpect:\n")
	list, _, _ = strings.Cut(list, "\n---")
	var out []expectation
	for _, line := range strings.Split(strings.TrimSpace(list), "\n") {
		var e expectation
		if err := json.Unmarshal([]byte(strings.TrimPrefix(strings.TrimSpace(line), "- ")), &e); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		out = append(out, e)
	}
	return out
}

func runCase(t *testing.T, dir, name string, e expectation) {
	b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("review.%d.md", e.Variant)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := apply(t, settingsFor(e), string(b))
	outcome, class := outcomeOf(t, s, err)
	scores := numbers(s.Values["scores"])
	if why, listed := askedAgain[name]; listed {
		_, read := scores["Tier 5"]
		if class != "no_verdict" && (e.Tiers == nil || read) {
			t.Errorf("%s %v, listed as asked again: %s", outcome, s.Values, why)
		}
		return
	}
	if outcome != e.Outcome || class != e.Class {
		t.Errorf("%s %s, want %s %s (%s): %v %q", outcome, class, e.Outcome, e.Class, e.Note, err, s.Warnings)
	}
	if e.Decision != "" && s.Values["decision"] != e.Decision {
		t.Errorf("decision %q, want %q", s.Values["decision"], e.Decision)
	}
	if e.Gate != "" && s.Values["gate"] != e.Gate {
		t.Errorf("gate %v, want %s", s.Values["gate"], e.Gate)
	}
	if e.Tiers != nil && !reflect.DeepEqual(scores, e.Tiers) {
		t.Errorf("tiers %v, want %v", scores, e.Tiers)
	}
}

func numbers(v any) map[string]float64 {
	out := map[string]float64{}
	scores, _ := v.(map[string]any)
	for name, n := range scores {
		out[name] = n.(float64)
	}
	return out
}

func apply(t testing.TB, with, review string) (*accept.State, error) {
	t.Helper()
	step, err := accept.ParseStep(Kind, []byte(with))
	if err != nil {
		t.Fatal(err)
	}
	s := accept.NewState(nil, review)
	return s, step.Apply(s)
}

func outcomeOf(t testing.TB, s *accept.State, err error) (outcome, class string) {
	t.Helper()
	var e *nodes.Error
	switch {
	case errors.As(err, &e):
		return "fail", e.Category
	case err != nil:
		t.Fatalf("not a failure of the attempt: %v", err)
	case len(s.Warnings) > 0:
		return "ok_warn", ""
	}
	return "ok", ""
}
