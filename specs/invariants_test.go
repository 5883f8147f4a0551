package specs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// T-5, B-4: what 000 §10 promises of a run, attacked in a finished run of every pipeline of the documents: verify finds each
// attack, and names the file. A pipeline that has nothing to attack (no checkpoint, no earlier version) is passed over.
func TestInvariantsAttacked(t *testing.T) {
	t.Parallel()
	m := newSite(t)
	library := filepath.Join(t.TempDir(), "library")
	if err := os.CopyFS(library, os.DirFS(meta)); err != nil {
		t.Fatal(err)
	}
	m.must("apply", library, "--quiet")
	runs := map[string]*site{lit: finishedRun(t, lit).site, launch: launchRun(t), corpus: corpusRun(t), meta: m}
	change := func(old, with string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, with, 1) }
	}
	more := func(s string) string { return s + "x" }
	cut := func(s string) string { return s[:len(s)/2] }
	own := func(name string) func(*site) string { return func(*site) string { return "_orchestrator/" + name } }
	node := func(path func(n nodeDocument) string) func(*site) string {
		return func(s *site) (found string) {
			for _, n := range s.document().Nodes {
				if p := path(n); p != "" && (found == "" || p < found) {
					found = p
				}
			}
			return found
		}
	}
	attacks := []struct {
		name   string
		file   func(s *site) string // of the run's folder; "" = there is none
		change func(string) string  // nil = it is removed
	}{
		{"1 the state is another one", own("state.json"), change(`"runId": "`, `"runId": "0`)},
		{"1 the state is cut", own("state.json"), cut},
		{"2 the artifact is another one", node(func(n nodeDocument) string {
			if filepath.Ext(n.ArtifactPath) == "" || filepath.Ext(n.ArtifactPath) == ".git" {
				return "" // a folder
			}
			return n.ArtifactPath
		}), more},
		{"3 the log has lost a line", own("events.ndjson"), func(s string) string {
			lines := strings.SplitAfter(s, "\n")
			return strings.Join(append(lines[:len(lines)/2:len(lines)/2], lines[len(lines)/2+1:]...), "")
		}},
		{"3 a line of a log is another one", own("logs/passes.jsonl"), change(`"`, `"x`)},
		{"4 less is done", own("state.json"), func(s string) string {
			return regexp.MustCompile(`"completed": \d+`).ReplaceAllString(s, `"completed": 1`)
		}},
		{"5 a checkpoint is another one", func(s *site) string {
			for _, c := range s.document().Checkpoint {
				return c.CheckpointDir + "/state-snapshot.json"
			}
			return ""
		}, more},
		{"6 a backup is gone", node(func(n nodeDocument) string { return n.BackupPath }), nil},
		{"7 the cost is another one", own("state.json"), change(`"totalEstimatedCostUsd": `, `"totalEstimatedCostUsd": 1`)},
		{"10 an answer is gone", node(func(n nodeDocument) string { return n.RawOutputPath }), nil},
	}
	for name, run := range runs {
		if out := run.must("verify"); strings.Contains(out, "WRONG") {
			t.Fatalf("%s: %s", name, out)
		}
		for _, a := range attacks {
			t.Run(name+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				s := copied(t, &site{t: t, out: run.out})
				file := a.file(s)
				if file == "" {
					t.Skip("it has none")
				}
				if a.change == nil {
					if err := os.RemoveAll(filepath.Join(s.out, file)); err != nil {
						t.Fatal(err)
					}
				} else {
					rewrite(t, filepath.Join(s.out, file), a.change)
				}
				out, err := s.dagrun(nil, "verify")
				if err == nil && !strings.Contains(out, "pending") || !strings.Contains(out, filepath.Base(file)) && !strings.Contains(out, "state.json") {
					t.Errorf("%s was attacked: %v\n%s", file, err, out)
				}
			})
		}
	}
}
