package extract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

// expectation is one line of the list in a case's expect.md.
type expectation struct {
	Variant int     `json:"variant"`
	Outcome string  `json:"outcome"`
	Class   string  `json:"class"`
	Policy  string  `json:"policy"`
	Notes   *string `json:"notes"`
	Note    string  `json:"note"`
	Table   string  `json:"table"`
}

// readExpectations reads the JSON values of the front matter's list.
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

// C-8, R-5, C-12, X5, A-3: every case of b-extract gives the stated outcome.
func TestCases(t *testing.T) {
	dirs, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, dir := range dirs {
		for _, e := range readExpectations(t, dir) {
			if e.Table != "" {
				continue // TestNotesTable, TestJSONTable
			}
			t.Run(fmt.Sprintf("%s/%d", filepath.Base(dir), e.Variant), func(t *testing.T) { runCase(t, dir, e) })
		}
	}
}

func runCase(t *testing.T, dir string, e expectation) {
	file := func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) }
	src, err := file(fmt.Sprintf("answer.%d.md", e.Variant))
	if err != nil {
		t.Fatal(err)
	}
	s := accept.NewState(nil, string(src))
	if previous, err := file("previous.html"); err == nil {
		s.Artifact = artifacts{"page.html": previous}.open
	}
	err = newStep(t, fmt.Sprintf(`{"html":{"to":"page.html","policy":%q},
		"markers":{"notes":{"start":"<<<NOTES","end":"NOTES>>>","missing":"ignore"}}}`, cmp.Or(e.Policy, "fail"))).Apply(s)
	outcome, class := outcomeOf(t, s, err)
	if outcome != e.Outcome || class != e.Class {
		t.Fatalf("%s %s, want %s %s (%s)\nerror: %v\nwarnings: %q", outcome, class, e.Outcome, e.Class, e.Note, err, s.Warnings)
	}
	want, err := file(fmt.Sprintf("expected.%d.html", e.Variant))
	if got, ok := s.Artifacts["page.html"]; ok != (err == nil) || !bytes.Equal(comparable(got), comparable(want)) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if notes, ok := s.Texts["notes"]; e.Notes != nil && (!ok || notes != *e.Notes) || e.Notes == nil && strings.HasPrefix(filepath.Base(dir), "17") && e.Variant == 3 && ok {
		t.Errorf("notes %q %v, want %v", notes, ok, e.Notes)
	}
}

// comparable is how the cases compare: LF line ends, ends trimmed.
func comparable(b []byte) []byte {
	return bytes.TrimSpace(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")))
}

func outcomeOf(t *testing.T, s *accept.State, err error) (outcome, class string) {
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

// C-8, C-9: notes between markers, missing, doubled, nested, swapped.
func TestNotesTable(t *testing.T) {
	b, err := os.ReadFile("testdata/cases/16-notes-markers/notes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var row struct {
			Answer, Outcome, Why string
			Notes                *string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		s := accept.NewState(nil, row.Answer)
		err := newStep(t, `{"markers":{"notes":{"start":"<<<NOTES","end":"NOTES>>>","missing":"ignore","broken":"fail"}}}`).Apply(s)
		outcome, _ := outcomeOf(t, s, err)
		notes, ok := s.Texts["notes"]
		if outcome == "ok" && !ok {
			outcome = "none"
		}
		if outcome != row.Outcome || ok != (row.Notes != nil) || ok && notes != *row.Notes {
			t.Errorf("line %d (%s): %s %q %v, want %s %v; %v %q", i+1, row.Why, outcome, notes, ok, row.Outcome, row.Notes, err, s.Warnings)
		}
	}
}

// C-8, b-extract/18: JSON answers with small damage. Only what cannot change the meaning is repaired.
func TestJSONTable(t *testing.T) {
	b, err := os.ReadFile("testdata/cases/18-json-fences/json.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var row struct {
			Answer, Outcome, Why string
			Value                map[string]any
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		typ := "number"
		if _, text := row.Value["a"].(string); text {
			typ = "string"
		}
		s := accept.NewState(nil, row.Answer)
		err := newStep(t, `{"json":{"to":"v.json","values":{"all":{"type":"map"},"a":{"path":"a","type":"`+typ+`"}}}}`).Apply(s)
		outcome, _ := outcomeOf(t, s, err)
		var got map[string]any
		if err == nil {
			err = json.Unmarshal(s.Artifacts["v.json"], &got)
		}
		if outcome != row.Outcome || !reflect.DeepEqual(got, row.Value) {
			t.Errorf("line %d (%s): %s %v, want %s %v; %v %q", i+1, row.Why, outcome, got, row.Outcome, row.Value, err, s.Warnings)
		}
	}
}

func newStep(t testing.TB, with string) accept.Step {
	t.Helper()
	step, err := accept.ParseStep(Kind, []byte(with))
	if err != nil {
		t.Fatal(err)
	}
	return step
}
