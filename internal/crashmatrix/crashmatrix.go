// Package crashmatrix runs a pipeline again and again in scratch copies of its folder, kills the
// program right after one event each time, goes on, and compares with an undisturbed run.
//
// It drives the program as its users do, by command lines, and never touches the pipeline's own
// folder or run.
package crashmatrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A Matrix is what to try.
type Matrix struct {
	Binary string   // the program
	Dir    string   // folder of the specification, copied for each trial
	Spec   string   // file or folder in Dir; empty = Dir itself
	Args   []string // more arguments of apply: parameters, --pipeline
	Jobs   int      // attempts at once
	Most   int      // trials at most, spread over the run; 0 = every event
}

// A Trial is one killed run.
type Trial struct {
	At       int      `json:"event"`
	Type     string   `json:"type"` // of the event after which the program was killed
	Problems []string `json:"problems,omitempty"`
}

// A Report is what came of all.
type Report struct {
	Events int     `json:"events"` // of the undisturbed run
	Nodes  int     `json:"nodes"`
	Trials []Trial `json:"trials"`
	Failed int     `json:"failed"`
	// Loose are the artifacts and values that differ between two undisturbed runs as well: they are
	// not compared.
	Loose []string `json:"not_compared,omitempty"`
}

// Run tries the matrix. progress is called after each trial. An error says that the pipeline cannot
// be tried: it does not end well undisturbed, or its folder cannot be copied.
func (m Matrix) Run(ctx context.Context, progress func(Trial)) (*Report, error) {
	want, loose, err := m.undisturbed(ctx)
	if err != nil {
		return nil, err
	}
	rep := &Report{Events: len(want.types), Nodes: want.nodes, Loose: loose}
	step := 1
	if m.Most > 0 {
		step = max(1, (rep.Events+m.Most-1)/m.Most)
	}
	for at := 1; at < rep.Events; at += step { // after the last event there is nothing left to kill
		t, err := m.trial(ctx, at, want)
		if err != nil {
			return nil, err
		}
		rep.Trials = append(rep.Trials, t)
		if len(t.Problems) > 0 {
			rep.Failed++
		}
		progress(t)
	}
	return rep, nil
}

// undisturbed returns the end of the run without a kill, and what of it differs by itself.
func (m Matrix) undisturbed(ctx context.Context) (*ending, []string, error) {
	var ends [2]*ending
	for k := range ends {
		s, err := m.newScratch()
		if err != nil {
			return nil, nil, err
		}
		defer s.remove()
		if out, err := s.dagrun(ctx, 0, s.apply()...); err != nil {
			return nil, nil, fmt.Errorf("undisturbed, the pipeline does not end well: %w\n%s", err, tail(out))
		}
		if ends[k], err = s.ending(); err != nil {
			return nil, nil, err
		}
	}
	loose := ends[0].differences(ends[1])
	for _, name := range loose {
		delete(ends[0].facts, name)
	}
	return ends[0], loose, nil
}

// trial kills one run after an event and goes on.
func (m Matrix) trial(ctx context.Context, at int, want *ending) (Trial, error) {
	t := Trial{At: at}
	s, err := m.newScratch()
	if err != nil {
		return t, err
	}
	defer s.remove()
	out, err := s.dagrun(ctx, at, s.apply()...)
	if err := ctx.Err(); err != nil {
		return t, err
	}
	if !killed(err) {
		t.Problems = append(t.Problems,
			fmt.Sprintf("was to be killed after event %d and ended with %v: %s", at, err, tail(out)))
		return t, nil
	}
	if crashed, err := s.ending(); err == nil && len(crashed.types) > 0 {
		t.Type = crashed.types[len(crashed.types)-1]
	} else if at <= len(want.types) {
		t.Type = want.types[at-1]
	}
	for _, args := range [][]string{s.apply(), {"verify"}} {
		if out, err := s.dagrun(ctx, 0, args...); err != nil {
			t.Problems = append(t.Problems, fmt.Sprintf("dagrun %s: %v: %s", args[0], err, tail(out)))
			return t, ctx.Err()
		}
	}
	got, err := s.ending()
	if err != nil {
		t.Problems = append(t.Problems, err.Error())
		return t, nil
	}
	for _, name := range want.differences(got) {
		t.Problems = append(t.Problems, name+" is not as in the undisturbed run")
	}
	for _, node := range got.twice {
		t.Problems = append(t.Problems, node+" was completed and started again")
	}
	return t, nil
}

// A scratch is a copy of the specification's folder with a run of its own.
type scratch struct {
	m    Matrix
	root string
}

func (m Matrix) newScratch() (*scratch, error) {
	root, err := os.MkdirTemp("", "dagrun-selftest-")
	if err != nil {
		return nil, err
	}
	s := &scratch{m, root}
	if err := copyTree(m.Dir, s.dir()); err != nil {
		s.remove()
		return nil, fmt.Errorf("copy %s: %w", m.Dir, err)
	}
	return s, nil
}

func (s *scratch) dir() string    { return filepath.Join(s.root, "spec") }
func (s *scratch) output() string { return filepath.Join(s.root, "run") }
func (s *scratch) remove()        { os.RemoveAll(s.root) }

func (s *scratch) apply() []string {
	spec := s.dir()
	if s.m.Spec != "" {
		spec = filepath.Join(spec, s.m.Spec)
	}
	return append([]string{"apply", spec, "--seed", "1", "--quiet", "--jobs", strconv.Itoa(max(1, s.m.Jobs))}, s.m.Args...)
}

// dagrun runs a command of the program, which kills itself after event at; 0 = never.
func (s *scratch) dagrun(ctx context.Context, at int, args ...string) ([]byte, error) {
	args = append(args, "--output-dir", s.output(), "--state-dir", filepath.Join(s.root, "state"))
	cmd := exec.CommandContext(ctx, s.m.Binary, args...)
	cmd.Dir = s.dir()
	cmd.Env = append(os.Environ(), "DAGRUN_CRASH_AT="+strconv.Itoa(at))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd.CombinedOutput()
}

func killed(err error) bool {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		return false
	}
	st, ok := e.Sys().(syscall.WaitStatus)
	return ok && st.Signaled() && st.Signal() == syscall.SIGKILL
}

// tailSize is about how many bytes of an output are shown.
const tailSize = 300

// tail is the end of an output on one line, in whole words.
func tail(out []byte) string {
	words := strings.Fields(strings.ToValidUTF8(string(out), ""))
	size, from := 0, len(words)
	for from > 0 && size < tailSize {
		from--
		size += len(words[from]) + 1
	}
	return strings.Join(words[from:], " ")
}
