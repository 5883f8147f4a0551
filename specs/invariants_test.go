package specs_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
		{"3 a log is cut", own("logs/decisions.jsonl"), cut},
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

// tree is what the files of a folder hold, by name.
func tree(t *testing.T, dir string, but ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case slices.Contains(but, filepath.ToSlash(name)):
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.Type().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files[name] = fmt.Sprintf("%x", sha256.Sum256(b))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// differing names the files by which two folders differ.
func differing(before, after map[string]string) (names []string) {
	for name := range before {
		if after[name] != before[name] {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// T-5, 8: a finished run of every pipeline of the documents is begun again, with the same specification in the same folder, from
// what a user or a kill may have left of it. Nothing is recorded, bought or written anew: the log and all files are
// what they were. Of a pipeline that never ends the next tick finds nothing to do, and leaves the library as it is.
func TestRunningTwiceIsRunningOnce(t *testing.T) {
	t.Parallel()
	m := newSite(t)
	books := filepath.Join(t.TempDir(), "library")
	if err := os.CopyFS(books, os.DirFS(meta)); err != nil {
		t.Fatal(err)
	}
	m.must("apply", books, "--quiet", "--steps", "100")
	runs := map[string]struct {
		*site
		args []string
	}{
		lit:    {finishedRun(t, lit).site, []string{lit, "--seed", "7"}},
		launch: {launchRun(t), []string{launch, "--seed", "7", "--set", "agent.faults=section=lock:overloaded"}},
		corpus: {corpusRun(t), []string{corpusSpec(t), "--seed", "7"}},
		meta:   {m, []string{books, "--steps", "2"}},
	}
	own := func(s *site, name string) string { return filepath.Join(s.out, "_orchestrator", name) }
	left := map[string]func(s *site) error{
		"whole": func(*site) error { return nil },
		"without what can be derived": func(s *site) error {
			for _, name := range []string{"snapshot.json", "snapshot.json.bak", "state.json", "logs/passes.jsonl", "logs/.position"} {
				if err := os.RemoveAll(own(s, name)); err != nil {
					return err
				}
			}
			return nil
		},
		"with half a line": func(s *site) error {
			f, err := os.OpenFile(own(s, "events.ndjson"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(`{"seq":9`)
			return err
		},
	}
	for name, run := range runs {
		for how, damage := range left {
			s := copied(t, &site{t: t, out: run.out})
			dir, but := s.out, []string{"_orchestrator/origin.json", "_orchestrator/lock"}
			if name == meta {
				dir, but = books, nil
			}
			before := tree(t, dir, but...)
			if err := damage(s); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				s.must(append([]string{"apply", "--quiet"}, run.args...)...)
			}
			after := tree(t, dir, but...)
			if got := differing(before, after); len(got) > 0 {
				t.Errorf("%s, %s: run again, it differs in %v", name, how, got)
			}
			if out := s.must("verify"); strings.Contains(out, "pending") {
				t.Errorf("%s, %s:\n%s", name, how, out)
			}
		}
	}
}

// T-5, 9: what may fail in each pipeline of the documents fails, every time, and what may be missing is: the run goes on to its
// end, and says what failed. (A browser that is missing: TestWithoutBrowser.)
func TestWhatMayFailHaltsNothing(t *testing.T) {
	t.Parallel()
	books := filepath.Join(t.TempDir(), "library")
	if err := os.CopyFS(books, os.DirFS(meta)); err != nil {
		t.Fatal(err)
	}
	silent := filepath.Dir(filepath.Dir(editIn(t, corpus, "sim/builder.tmpl", func(s string) string {
		return regexp.MustCompile(`(CONVICTION_ADDITION|DISCOVERY_LOG)`).ReplaceAllString(s, "NOTHING")
	})))
	for _, a := range []struct {
		name   string
		args   []string
		failed string // of the nodes that fail, one by its name; "" = none does
		said   string
	}{
		{"reviewers", []string{lit, "--seed", "7", "--set", "agent.faults=node=review/databases:refused*inf"}, "review/databases", ""},
		{"a page", []string{launch, "--seed", "7", "--set", "agent.faults=node=draft/lock:refused*inf"}, "draft/lock", ""},
		{"entries", []string{filepath.Join(silent, "spec.yaml"), "--seed", "7"}, "", "conviction"},
		{"phases", []string{books, "--steps", "6", "--set", "agent.faults=node=architect:refused*inf"}, "architect", ""},
	} {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			s, out := newSite(t), ""
			if a.args[0] == lit { // it asks on its way
				r := &litRun{site: s, spec: lit, answers: map[string][]string{}}
				r.run(0, a.args[1:]...)
				out = s.must("status") + s.read("_orchestrator/logs/orchestrator.log")
			} else {
				out = s.must(append([]string{"apply"}, a.args...)...)
			}
			if !strings.Contains(out, a.failed) || !strings.Contains(out, a.said) {
				t.Errorf("it ended so:\n%s", tail(out))
			}
			if out := s.must("status"); a.failed != "" && a.args[0] != books && !strings.Contains(out, a.failed+" (agent)  allowed") {
				t.Errorf("its status:\n%s", out)
			}
			if out := s.must("verify"); strings.Contains(out, "WRONG") {
				t.Error(out)
			}
		})
	}
}
