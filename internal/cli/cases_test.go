package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"dagrun.dev/internal/testing/program"
)

// agentCases are failure shapes of command line agents; the tests of the kind try every variant.
const agentCases = "../../nodes/agent/testdata/cases"

type agentCase struct {
	Clock string
	Node  struct {
		Parse      string
		Model      string
		ExitGraceS float64 `yaml:"exit_grace_s"`
	}
	Expect []struct {
		Variant                                   int
		Outcome, Class, Node, Command, PromptFile string
		PromptSize                                int `yaml:"prompt_bytes"`
		Parallel                                  int
	}
}

// The first variant of every case, as a user meets it: the exit status says whether the run is done,
// has failed, or waits for a person; the record has the category; a wait is in the state and can be
// interrupted; the state verifies (R-1, R-2, R-3, S-10).
func TestAgentCasesOfARun(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob(agentCases + "/*")
	if err != nil || len(dirs) < 30 {
		t.Fatalf("%d cases, %v", len(dirs), err)
	}
	tried := 0
	for _, dir := range dirs {
		c := readAgentCase(t, dir)
		for _, e := range c.Expect {
			if e.Variant != 1 || e.Command+e.PromptFile+e.Node != "" || e.PromptSize+e.Parallel > 0 || e.Outcome == "wait" && c.Clock != "" {
				continue // another clock or program: tested with the kind alone
			}
			tried++
			t.Run(filepath.Base(dir), func(t *testing.T) {
				s := newFolder(t)
				s.writeCase(dir, c)
				status, waits := s.runCase()
				want := map[string]int{"ok": exitDone, "ok_warn": exitDone, "fail": exitBad, "config_error": exitBad, "stop": exitPaused, "wait": exitDone}
				if status != want[e.Outcome] {
					t.Errorf("exit status %d for %s (%s)\n%s", status, e.Outcome, e.Class, s.output.String())
				}
				end := s.lastEnd()
				good := e.Outcome == "ok" || e.Outcome == "ok_warn"
				switch {
				case good && end.Status != "completed", !good && end.Category != e.Class && e.Class != "":
					t.Errorf("recorded %+v, want %s %s", end, e.Outcome, e.Class)
				case e.Outcome == "ok_warn" && len(end.Warnings) == 0:
					t.Error("no warning is recorded")
				case (e.Outcome == "wait") != waits:
					t.Errorf("waits: %v, want %s", waits, e.Outcome)
				}
				if err := s.dagrun(0, "verify"); err != nil {
					t.Errorf("%v\n%s", err, s.output.String())
				}
			})
		}
	}
	if tried < 20 {
		t.Errorf("only %d cases", tried)
	}
}

func readAgentCase(t *testing.T, dir string) (c agentCase) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "expect.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(bytes.SplitN(text, []byte("---\n"), 3)[1], &c); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return c
}

// writeCase writes a pipeline of one node that asks the case's agent once.
func (c *crash) writeCase(dir string, a agentCase) {
	type m = map[string]any
	program, err := filepath.Abs(filepath.Join(dir, "cli.sh"))
	if err != nil {
		c.t.Fatal(err)
	}
	with := m{
		"provider": "command", "argv": []string{program}, "prompt": m{"text": "Make a page."},
		"command": m{"parse": a.Node.Parse}, "env": m{"VARIANT": "1"}, "to": "answer.txt",
	}
	if name := filepath.Base(dir); !strings.HasPrefix(name, "22-") && !strings.HasPrefix(name, "26-") && !strings.HasPrefix(name, "28-") {
		with["accept"] = []m{{"extract": m{"html": m{"to": "page.html"}}}}
	}
	if strings.HasPrefix(filepath.Base(dir), "02-") { // what a program that is not known prints means what is declared
		with["command"].(m)["errors"] = []m{{"match": "^API Error: Rate limit", "category": "rate_limited"}}
	}
	if a.Node.Model != "" {
		with["model"] = a.Node.Model
	}
	if a.Node.ExitGraceS > 0 {
		with["exitGrace"] = "300ms"
	}
	once := m{"attempts": 1}
	node := m{"kind": "agent", "timeout": m{"grace": "300ms"}, "with": with,
		"retry": m{"attempts": 1, "on": m{"rate_limited": once, "no_artifact": once, "placeholder": once}}} // that have attempts of their own
	if strings.HasPrefix(filepath.Base(dir), "35-") { // it ignores the polite word; the others end by themselves
		node["timeout"] = m{"grace": "300ms", "attempt": "500ms"}
	}
	data, err := json.Marshal(m{"pipeline": m{"name": "crash", "nodes": m{"ask": node}}})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "spec.json"), data, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// runCase applies the specification; a run that waits is interrupted.
func (c *crash) runCase() (status int, waits bool) {
	cmd := program.Command(c.t.Context(), binary, "apply")
	cmd.Dir = c.dir
	cmd.Env = c.env()
	out, err := cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	var errs bytes.Buffer // written beside the lines that are read here
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		c.output.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "; waits until ") {
			waits = true
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				c.t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	c.output.Write(errs.Bytes())
	var e *exec.ExitError
	if err != nil && !errors.As(err, &e) {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), waits
}

type recordedEnd struct {
	Status, Category string
	Warnings         []string
}

// lastEnd returns the last recorded end of an attempt.
func (c *crash) lastEnd() (end recordedEnd) {
	log, err := os.ReadFile(filepath.Join(c.dir, "build/crash/_orchestrator/events.ndjson"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, line := range bytes.Split(log, []byte("\n")) {
		var e struct {
			Type    string
			Payload recordedEnd
		}
		if json.Unmarshal(line, &e) == nil && e.Type == "WORK_ITEM_FINISHED" {
			end = e.Payload
		}
	}
	if end.Status == "" {
		c.t.Errorf("no attempt has ended\n%s", c.output.String())
	}
	return end
}

// The hostile documents of the cases d-libs/01 to 11, as a user has them: a word with file and line,
// exit status 1, no panic and no endless work.
func TestHostileSpecifications(t *testing.T) {
	files, err := filepath.Glob("../../internal/yamltree/testdata/cases/*/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		c := newFolder(t)
		name := filepath.Base(file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(c.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		if err := c.dagrun(0, "vet", name); !errors.As(err, &exit) || exit.ExitCode() != exitBad {
			t.Errorf("%s: %v, want exit status 1", file, err) // they are no pipelines of this program's kinds either
		}
		for _, line := range strings.Split(strings.TrimSpace(c.output.String()), "\n") {
			if !strings.HasPrefix(line, name+":") {
				t.Errorf("%s: %q does not begin with the file", file, line)
			}
		}
	}
}
