package tidy

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const english = "plain English"

// ordinary are words that the pipelines use and the program too, for something of its own, each with what it is there.
// One that the program does not use any more has no business here.
var ordinary = map[string]string{
	"prune": "to remove what is old of runs",
	"agent": "a kind", "screenshot": "a kind", "checkpoint": "a kind", "gate": "events of checks", "validate": "a kind",
	"validation": "a category of failure", "markdown": "the format", "summary": "what a run prints at its end",
	"cycle": "of needs, which a graph must not have", "pass": "environment variables handed on; a walk over something",
	"parameter": "of a specification", "template": "of a text", "question": "to a user", "report": "of a run",
	"context": "of Go", "string": "of Go", "time": "of Go", "reader": "of Go", "builder": "strings.Builder", "lock": "of a file",
	"info": "of a file", "mode": "of a file", "finding": "what a search found", "identity": "of a run", "threshold": "of a limit",
	"layer": "of a graph", "floor": "the mathematical function", "formula": "of delays", "shift": "of bits", "role": "of a message",
	"rebuild": "of logs from events", "rerun": "of a node", "description": "of a node", "structure": "of data",
	"anchor": "of a clock, of YAML", "authority": "of an address", "focus": "of a browser", "view": "of a state",
	"picture": "of a page", "visible": "in a page", "opening": "of a run", "answered": "of a question", "blocked": "of a node", "observed": english,
	"completion": "an answer of a model", "continuation": "of a session", "hands": english, "reference": "of an expression",
	"release": "of a lock", "response": "of a service", "capture": "of an output", "abort": english, "note": english, "guarded": english, "unrolled": english, "usable": english,
	"cross": english, "observation": english, "tenth": english, "remaining": english, "place": english, "well": english, "text": english, "word": english,
	"change": english, "changed": english, "checked": english, "earlier": english, "every": english, "long": english, "over": english, "while": english, "around": english,
	"found": english, "handed": english, "looked": english, "none": english, "what": english, "enough": english, "person": english,
	"plan": "what a specification becomes", "problem": "a mistake of a specification", "fact": "what is recorded", "function": "of expressions",
	"module": "of CUE", "clone": "of Go; the copy of inputs", "round": "of bounded repetition", "statuse": "of a node", "style": "of a page",
	"outline": "an example of the format", "repo": "an example of a name", "usage": "of tokens", "cover": english, "done": english, "opened": english, "passed": english,
	"ready": english, "purpose": english, "merged": english, "merge": english, "mend": english, "link": english, "checking": english,
	"action": "of an undo", "compensation": "of what was done", "trigger": "of an undo", "stage": "of files that are to be published", "forward": english,
	"told": english, "patience": english, "degraded": "of pictures and checks", "about": english, "take": english, "false": english, "hand": english,
	"cached": "of tokens that a service has read before", "move": english,
}

var (
	declared = regexp.MustCompile(`["#_]*([A-Za-z][A-Za-z0-9-]*)"?[?!]?:`) // fields and definitions of CUE
	roleName = regexp.MustCompile(`\brole: *"([a-z-]+)"`)
	wordPart = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)
)

// singular brings the forms of a word that names use together.
func singular(word string) string {
	word = strings.ToLower(word)
	if strings.HasSuffix(word, "sses") {
		return strings.TrimSuffix(word, "es")
	}
	if !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us") {
		word = strings.TrimSuffix(word, "s")
	}
	return word
}

// declaredWords are the words that names in CUE files are made of.
func declaredWords(t *testing.T, patterns ...string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, pattern := range patterns {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range slices.Concat(declared.FindAllSubmatch(b, -1), roleName.FindAllSubmatch(b, -1)) {
				for _, w := range wordPart.FindAll(m[1], -1) {
					out[singular(string(w))] = true
				}
			}
		}
	}
	return out
}

// D-1: what a pipeline is about is declared in CUE (schemas/flow, specs), not built into Go: neither in identifiers nor
// in strings and comments. The words are those that the pipelines declare names with and the program's own schemas do not.
func TestNoDomainWords(t *testing.T) {
	trade := declaredWords(t, "schemas/flow/*.cue", "specs/*/spec.cue")
	for w := range declaredWords(t, "schemas/spec/*.cue", "nodes/*/schema.cue") {
		delete(trade, w)
	}
	maps.DeleteFunc(trade, func(w string, _ bool) bool { return len(w) < 4 })
	for _, w := range []string{"subset", "rotation", "auditor", "weaver", "conviction", "hardening", "retrospective", "soul", "tier"} {
		if !trade[w] {
			t.Errorf("%q is not found among the words of the pipelines: this test sees nothing", w)
		}
	}
	used := map[string]bool{}
	for _, file := range goFiles(t) {
		if !strings.HasPrefix(file, "dag/") && !strings.HasPrefix(file, "nodes/") || strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(b), "\n") {
			for _, w := range wordPart.FindAllString(line, -1) {
				w = singular(w)
				if !trade[w] {
					continue
				}
				used[w] = true
				if _, ok := ordinary[w]; !ok {
					t.Errorf("%s:%d: %q is a word of one pipeline; if it is the program's own, say so in ordinary", file, i+1, w)
				}
			}
		}
	}
	for w := range ordinary {
		if trade[w] && !used[w] {
			t.Errorf("ordinary allows %q, which no Go of dag and nodes uses", w)
		}
	}
}
