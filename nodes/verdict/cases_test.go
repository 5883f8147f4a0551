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

const caseSettings = `{"decision":{"label":"Ship Decision","values":["RELEASE","POLISH","IMPROVE","RETHINK"]},
	"scores":{"PA-05":%s,"PA-06":4},"tiers":{"Tier 5":9}}`

// P-9: one score line in forty-odd spellings.
func TestScoreLines(t *testing.T) {
	b, err := os.ReadFile("testdata/cases/01-score-lines/lines.tsv")
	if err != nil {
		t.Fatal(err)
	}
	others := []label{newLabel("PA-06"), newLabel("Tier 5")}
	for i, row := range strings.Split(strings.TrimRight(string(b), "\n"), "\n")[1:] {
		f := strings.Split(row, "\t")
		r := read(f[0])
		got := readScore(r.lines[0], newLabel("PA-05"), others, scoreRule{Max: 4})
		want := f[3]
		if strings.Contains(f[4], "ok is fine too") && got.status == good {
			want = "ok"
		}
		if got.status.String() != want {
			t.Errorf("line %d %q: %s %g, want %s %s (%s)", i+2, f[0], got.status, got.value, want, f[1], f[4])
		}
		if v, err := strconv.ParseFloat(f[1], 64); err == nil && got.value != v {
			t.Errorf("line %d %q: %g, want %s", i+2, f[0], got.value, f[1])
		}
	}
}

// P-9: every review of the collection gives the stated outcome.
func TestCases(t *testing.T) {
	dirs, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range dirs {
		for _, e := range readExpectations(t, dir) {
			if e.Table == "" {
				t.Run(fmt.Sprintf("%s/%d", filepath.Base(dir), e.Variant), func(t *testing.T) { runCase(t, dir, e) })
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

func runCase(t *testing.T, dir string, e expectation) {
	b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("review.%d.md", e.Variant)))
	if err != nil {
		t.Fatal(err)
	}
	max := "4"
	if e.Gate != "" {
		max = `{"max":4,"least":2}`
	}
	s, err := apply(t, fmt.Sprintf(caseSettings, max), string(b))
	outcome, class := outcomeOf(t, s, err)
	if outcome != e.Outcome || class != e.Class {
		t.Errorf("%s %s, want %s %s (%s): %v %q", outcome, class, e.Outcome, e.Class, e.Note, err, s.Warnings)
	}
	if s.Values["decision"] != e.Decision || s.Values["reason"] != e.Reason {
		t.Errorf("decision %q reason %q, want %q %q", s.Values["decision"], s.Values["reason"], e.Decision, e.Reason)
	}
	if e.Harshest != "" && !strings.Contains(err.Error(), "harsher one is "+e.Harshest) {
		t.Errorf("harshest %s not named: %v", e.Harshest, err)
	}
	if e.Gate != "" && s.Values["gate"] != e.Gate {
		t.Errorf("gate %v, want %s", s.Values["gate"], e.Gate)
	}
	for name, want := range map[string]map[string]float64{"scores": e.Scores, "tiers": e.Tiers} {
		if want != nil && !reflect.DeepEqual(numbers(s.Values[name]), want) {
			t.Errorf("%s %v, want %v", name, s.Values[name], want)
		}
	}
}

func numbers(v any) map[string]float64 {
	out := map[string]float64{}
	for name, n := range v.(map[string]any) {
		out[name] = n.(float64)
	}
	return out
}

func apply(t testing.TB, with, review string) (*accept.State, error) {
	t.Helper()
	step, err := Kind.Step([]byte(with))
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
