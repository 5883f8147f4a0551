package executor

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/testing/hosttest"
	"dagrun.dev/nodes"
)

// The local host passes the suite of all hosts.
func TestSuite(t *testing.T) {
	hosttest.Run(t, func(t testing.TB, c *hosttest.Case) (o *hosttest.Outcome) {
		synctest.Test(t.(*testing.T), func(t *testing.T) { o = local(t, c) })
		return o
	})
}

func local(t *testing.T, c *hosttest.Case) *hosttest.Outcome {
	o := &hosttest.Outcome{Saw: map[string]string{}}
	s := newStage(t, c.Plan)
	s.opts.Scratch, s.opts.Stays = t.TempDir(), c.Stays
	s.kinds = []nodes.Kind{kindOf("fake", doer(func(ctx context.Context, t *nodes.Task) (*nodes.Result, error) { return fake(ctx, t, o) }))}
	s.seen = func(e *machine.Event) { o.Events = append(o.Events, *e) }
	acts := c.Acts
	for {
		interrupt, requests := make(chan time.Time, 2), make(chan Request, 1)
		s.opts.Interrupt, s.opts.Requests = interrupt, requests
		killed := false
		ctx, kill := context.WithCancelCause(context.Background())
		s.ctx = ctx
		var timers []*time.Timer
		for len(acts) > 0 && acts[0].Do != hosttest.Resume && !killed {
			act := acts[0]
			acts = acts[1:]
			killed = act.Do == hosttest.Kill
			timers = append(timers, time.AfterFunc(time.Until(s.began.Add(act.At)), func() {
				switch act.Do {
				case hosttest.Interrupt:
					interrupt <- time.Now()
				case hosttest.Kill:
					kill(ErrHard)
				case hosttest.Cancel:
					requests <- Request{Cancel: true, Reason: "enough"}
				case hosttest.Answer:
					requests <- Request{Answer: &machine.EscalationAnsweredBody{Answer: act.To}}
				}
			}))
		}
		r := s.open()
		err := s.run(r)
		kill(nil)
		for _, timer := range timers {
			timer.Stop()
		}
		if errors.Is(err, ErrHard) {
			r.Abandon()
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if o.State, err = r.State().AppendSnapshot(nil); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if len(acts) == 0 {
			return o
		}
		time.Sleep(time.Until(s.began.Add(acts[0].At)))
		acts = acts[1:]
	}
}

var seeing sync.Mutex // Outcome.Saw

// fake does the step of an attempt.
func fake(ctx context.Context, t *nodes.Task, o *hosttest.Outcome) (*nodes.Result, error) {
	artifacts := map[string]string{}
	var entries []string
	for _, name := range t.Reads {
		if name == "notes" {
			list, err := t.Entries(name)
			if err != nil {
				return nil, err
			}
			for _, e := range list {
				entries = append(entries, e.Text)
			}
			continue
		}
		r, err := t.Artifact(name)
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		artifacts[name] = string(b)
	}
	dir, err := t.Carry()
	if err != nil {
		return nil, err
	}
	handed, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	me := hosttest.Content(t.Node, t.Attempt)
	seeing.Lock()
	o.Saw[me] = hosttest.Given(artifacts, entries, len(handed))
	seeing.Unlock()
	if err := os.WriteFile(filepath.Join(dir, me), nil, 0o600); err != nil {
		return nil, err
	}
	step := hosttest.StepOf(t.Labels, t.Attempt)
	select {
	case <-time.After(step.Takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if step.Fails {
		return nil, nodes.Fail("transient", "as the script says")
	}
	cost := t.Reserve
	res := &nodes.Result{Writes: map[string]string{}, CostUSD: &cost}
	for _, name := range t.Writes {
		if err := os.WriteFile(filepath.Join(t.Out, name), []byte(me), 0o600); err != nil {
			return nil, err
		}
		res.Writes[name] = name
	}
	if t.Labels["appends"] != "" {
		res.Entries = append(res.Entries, nodes.Entry{Accumulator: t.Labels["appends"], Text: me})
	}
	return res, nil
}
