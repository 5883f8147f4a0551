package verdict

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"dagrun.dev/nodes/internal/accept"
)

// readRows reads a table of JSON lists, one a line.
func readRows(t *testing.T, file string) [][]any {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]any
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var row []any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: %s: %v", file, line, err)
		}
		rows = append(rows, row)
	}
	return rows
}

// P-9: text, status, value: how people and models write one score of at most 4.
func TestScoresTable(t *testing.T) {
	rule, others := scoreRule{Max: 4, label: newLabel("PA-05")}, []label{newLabel("PA-06"), newLabel("Tier 5")}
	for _, row := range readRows(t, "testdata/scores.jsonl") {
		got := step{}.score(accept.NewState(nil, ""), read(row[0].(string)), "PA-05", rule, others)
		if got.status.String() != row[1] || len(row) > 2 && got.value != row[2] {
			t.Errorf("%q: %s %g, want %v", row[0], got.status, got.value, row[1:])
		}
	}
}

// P-9: text, then the decision or the reason why there is none; ~ in front: with a warning. No
// row that leaves a doubt is a RELEASE.
func TestDecisionsTable(t *testing.T) {
	step, err := Kind.Step([]byte(`{"decision":{"label":"Ship Decision","values":["RELEASE","POLISH","IMPROVE","RETHINK"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range readRows(t, "testdata/decisions.jsonl") {
		s := accept.NewState(nil, row[0].(string))
		err := step.Apply(s)
		got := s.Values["decision"].(string) + s.Values["reason"].(string)
		if err == nil && len(s.Warnings) > 0 {
			got = "~" + got
		}
		if got != row[1] || (err == nil) != (s.Values["reason"] == "") {
			t.Errorf("%q: %s, want %s; %v %q", row[0], got, row[1], err, s.Warnings)
		}
	}
}

// P-9: what takes the most lenient value away is found for other values, too, and a short one is no word of the text.
func TestContradictedValues(t *testing.T) {
	for _, row := range []struct{ values, review, want string }{
		{`["APPROVE","REJECT"]`, "D: APPROVE\n\nThis must not be approved.", "ambiguous"},
		{`["APPROVE","REJECT"]`, "D: APPROVE\n\nI am against approving this.", "ambiguous"},
		{`["APPROVE","REJECT"]`, "D: APPROVE\n\nVerdict: REJECT", "ambiguous"},
		{`["APPROVE","REJECT"]`, "D: APPROVE\n\nNothing speaks against approving this.", "APPROVE"},
		{`["ship","hold"]`, "D: ship\n\nWe cannot recommend shipping this.", "ambiguous"},
		{`["ship","hold"]`, "D: ship\n\nIt does not ship with a dark theme.", "ship"},
		{`["PASS","FAIL"]`, "D: PASS\n\nThe small print does not pass at 3:1.", "PASS"},
		{`["PASS","FAIL"]`, "D: PASS\n\nOverall: FAIL", "ambiguous"},
		{`["GO","NO-GO"]`, "D: GO\n\nThe lines do not go below the grid.", "GO"},
		{`["GO","NO-GO"]`, "D: GO\n\nDo not GO.", "ambiguous"},
		{`["a","b"]`, "D: a\n\nThis is not a, b or c. It is not a page.", "a"},
		{`["OK"]`, "D: OK\n\nNot OK.", "OK"},
		{`["SHIP_IT","FIX"]`, "D: SHIP_IT\n\nI would not SHIP_IT yet.", "ambiguous"},
	} {
		s, err := apply(t, `{"decision":{"label":"D","values":`+row.values+`}}`, row.review)
		if got := s.Values["decision"].(string) + s.Values["reason"].(string); got != row.want {
			t.Errorf("%s %q: %s, want %s; %v", row.values, row.review, got, row.want, err)
		}
	}
}
