package executor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/nodes"
)

// A builder is a kind whose attempts hand on what they have so far. Its settings say how each attempt ends: "fail",
// "hang" (until it is stopped) or "ok", one letter an attempt, f, h or o.
type builder struct {
	hanging chan bool
	had     []string // what each attempt found
	dirs    []string
}

func (*builder) Traits() nodes.Traits {
	return nodes.Traits{Effect: "pure"}
}

func (b *builder) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	dir, err := t.Carry()
	if err != nil {
		return nil, err
	}
	had, _ := os.ReadFile(filepath.Join(dir, "wall"))
	b.had, b.dirs = append(b.had, string(had)), append(b.dirs, dir)
	if err := os.WriteFile(filepath.Join(dir, "wall"), append(had, 'x'), 0o600); err != nil {
		return nil, err
	}
	var steps string
	if err := json.Unmarshal(t.With, &steps); err != nil {
		return nil, err
	}
	switch steps[min(t.Attempt, len(steps))-1] {
	case 'f':
		return nil, nodes.Fail("transient", "not done yet")
	case 'h':
		b.hanging <- true
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &nodes.Result{}, nil
}

// Q5: what an attempt hands on reaches the later ones, also in the process after one that ended at once, lies outside the
// run, and goes when the node has ended, however it ends.
func TestAttemptsHandOn(t *testing.T) {
	for _, tt := range []struct {
		steps, had string
	}{
		{"ffo", " x xx"},
		{"fff", " x xx"},
		{"fho", " x xx"},
		{"hfo", " x xx"},
	} {
		t.Run(tt.steps, func(t *testing.T) {
			with, _ := json.Marshal(tt.steps)
			s := newStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a/1", Kind: "builder", With: with, Retry: dag.Retry{Attempts: 3}}}})
			b := &builder{hanging: make(chan bool)}
			s.kinds, s.opts.Scratch = []nodes.Kind{kindOf("builder", b)}, t.TempDir()
			interrupt := make(chan time.Time)
			s.opts.Interrupt = interrupt
			go func() {
				for range b.hanging {
					interrupt <- time.Now()
					interrupt <- time.Now()
				}
			}()
			defer close(b.hanging)
			r := s.open()
			err := s.run(r)
			if errors.Is(err, ErrHard) {
				if _, gone := os.Stat(b.dirs[0]); gone != nil {
					t.Fatalf("lost with the process: %v", gone)
				}
				r.Abandon()
				// What a process left whose end was never swept up.
				if err := os.MkdirAll(filepath.Join(filepath.Dir(b.dirs[0]), handedOn("b", 1), "deep"), 0o700); err != nil {
					t.Fatal(err)
				}
				r = s.open()
				err = s.run(r)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got := strings.Join(b.had, " "); got != tt.had {
				t.Errorf("found %q, want %q", got, tt.had)
			}
			for _, dir := range b.dirs {
				if dir != b.dirs[0] || !filepath.IsAbs(dir) || strings.HasPrefix(dir, s.dir) {
					t.Errorf("folder %s after %s", dir, b.dirs[0])
				}
			}
			if left, err := os.ReadDir(s.opts.Scratch); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
			// What a process left that was killed between the end of the node and the removal.
			if err := errors.Join(os.MkdirAll(b.dirs[0], 0o700), Sweep(r, s.opts.Scratch)); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(s.opts.Scratch); err != nil || len(left) > 0 {
				t.Errorf("not swept: %v %v", left, err)
			}
		})
	}
}

// A folder goes with the attempt that ends its node, while the run goes on.
func TestWhatWasHandedOnGoesAtOnce(t *testing.T) {
	b := &builder{}
	s := newStage(t, &dag.Plan{Nodes: []dag.Node{
		{ID: "a", Kind: "builder", With: json.RawMessage(`"o"`)},
		{ID: "b", Kind: "looker", Needs: []string{"a"}},
	}})
	s.kinds, s.opts.Scratch = []nodes.Kind{kindOf("builder", b), kindOf("looker", &looker{b: b, t: t})}, t.TempDir()
	s.carryOn()
}

type looker struct {
	b *builder
	t *testing.T
}

func (*looker) Traits() nodes.Traits {
	return nodes.Traits{Effect: "pure"}
}

func (l *looker) Run(context.Context, *nodes.Task) (*nodes.Result, error) {
	if _, err := os.Stat(l.b.dirs[0]); !errors.Is(err, os.ErrNotExist) {
		l.t.Errorf("the folder of a node that has ended: %v", err)
	}
	return &nodes.Result{}, nil
}
