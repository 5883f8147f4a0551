package extract

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"dagrun.dev/nodes/internal/accept"
)

// wholePage is a page as the rows of testdata/answers.jsonl name it.
const wholePage = "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>t</title></head>\n<body>\n<h1>ok</h1>\n</body>\n</html>"

// named fills in {P}, {A}, {B} for whole pages and {HEAD}, {END} for what stands around their headings.
var named = strings.NewReplacer("{P}", wholePage, "{A}", strings.Replace(wholePage, "ok", "A", 1), "{B}", strings.Replace(wholePage, "ok", "B", 1),
	"{HEAD}", wholePage[:strings.Index(wholePage, "<h1>")], "{END}", "\n</body>\n</html>")

// C-8, R-5: how models wrap, repeat, cut, quote and escape a page. want is ok, ok_warn or the failure's
// category; page is what is taken, to the byte.
func TestAnswersTable(t *testing.T) {
	b, err := os.ReadFile("testdata/answers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var row struct {
			Name, Answer, Want, Page string
			With                     map[string]any
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		with := map[string]any{"to": "p"}
		for name, v := range row.With {
			with[name] = v
		}
		settings, err := json.Marshal(map[string]any{"html": with})
		if err != nil {
			t.Fatal(err)
		}
		s := accept.NewState(nil, named.Replace(row.Answer))
		outcome, class := outcomeOf(t, s, newStep(t, string(settings)).Apply(s))
		if got := class + strings.TrimSuffix(outcome, "fail"); got != row.Want {
			t.Errorf("%s: %s, want %s; %q", row.Name, got, row.Want, s.Warnings)
		}
		if got := string(s.Artifacts["p"]); got != named.Replace(row.Page) {
			t.Errorf("%s: got\n%s\nwant\n%s", row.Name, got, named.Replace(row.Page))
		}
	}
}

// a page that is cut anywhere, in a block or not, is never taken, and is called truncated as soon as
// it has begun.
func TestEveryCutIsRefused(t *testing.T) {
	for _, before := range []string{"", "Here:\n\n", "```html\n", "<answer>\n", "1. page\n\n   ```html\n"} {
		for n := range len(wholePage) {
			s := accept.NewState(nil, before+wholePage[:n])
			_, class := outcomeOf(t, s, newStep(t, `{"html":{"to":"p"}}`).Apply(s))
			if class != "truncated" && (class != "no_artifact" || n > len("<!DOCTYPE html")) {
				t.Errorf("%q and %d bytes: %q", before, n, class)
			}
		}
	}
}
