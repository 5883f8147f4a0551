// Package exec is the kind of node that runs one local command. It does not interpret what the
// command prints.
package exec

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/proc"
)

//go:embed schema.cue
var schema string

// Kind is the kind "exec".
type Kind struct{}

var _ nodes.Prober = Kind{}

// Name returns "exec".
func (Kind) Name() string { return "exec" }

// Schema returns the CUE source of #Exec.
func (Kind) Schema() string { return schema }

// Describe reads what the compiler must know of checked settings.
func (Kind) Describe(with json.RawMessage) (nodes.Traits, error) {
	var s settings
	if err := accept.Decode(with, &s); err != nil {
		return nodes.Traits{}, err
	}
	return s.traits(), nil
}

// Run runs the command once.
func (Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	var s settings
	if err := accept.Decode(t.With, &s); err != nil {
		return nil, err
	}
	spec, closeStdin, err := prepare(t, &s)
	if err != nil {
		return nil, err
	}
	defer closeStdin()
	p, err := proc.Run(ctx, spec)
	if err != nil {
		return nil, startFailure(err)
	}
	defer p.Close()
	res := &nodes.Result{}
	for _, q := range p.Left {
		res.Warnings = append(res.Warnings, fmt.Sprintf("the command left process %d (%s) behind; it was ended", q.Pid, q.Command))
	}
	for _, q := range p.Survivors {
		res.Survivors = append(res.Survivors, fmt.Sprintf("%d (%s)", q.Pid, q.Command))
	}
	failure := judge(ctx, t, &s, p)
	if err := keep(t, &s, p, failure != nil); err != nil {
		return res, err
	}
	if failure != nil {
		return res, failure
	}
	return res, collect(t, &s, p, res)
}

// Probe runs the command of the setting probe.
func (Kind) Probe(ctx context.Context, t *nodes.Task) (took bool, err error) {
	var s settings
	if err := accept.Decode(t.With, &s); err != nil {
		return false, err
	}
	if s.Probe == nil {
		return false, errors.New("the node names no probe")
	}
	s.Argv, s.Run, s.Stdin = s.Probe.Argv, s.Probe.Run, nil
	spec, closeStdin, err := prepare(t, &s)
	if err != nil {
		return false, err
	}
	defer closeStdin()
	p, err := proc.Run(ctx, spec)
	if err != nil {
		return false, err
	}
	defer p.Close()
	switch {
	case p.Cause != proc.Ended:
		return false, fmt.Errorf("ended before it answered: %s", p.Cause)
	case p.Exit == 0 || p.Exit == 1:
		return p.Exit == 0, nil
	}
	return false, errors.New(exitMessage(p))
}

func startFailure(err error) error {
	var start *proc.StartError
	switch {
	case !errors.As(err, &start):
		return err
	case start.Short():
		return nodes.Fail("spawn_failed", start.Error())
	}
	return nodes.Permanent(nodes.Fail("spawn_failed", start.Error()))
}

// judge says how the command failed, or nil.
func judge(ctx context.Context, t *nodes.Task, s *settings, p *proc.Result) error {
	e := &nodes.Error{Diagnostics: p.LastWords()}
	switch {
	case p.Cause == proc.Cancelled:
		return context.Cause(ctx)
	case p.Cause == proc.TimedOut:
		e.Category, e.Message = "stalled", fmt.Sprintf("took longer than %v", t.Timeout)
	case p.Cause == proc.Silent:
		e.Category, e.Message = "stalled", fmt.Sprintf("printed nothing for %v", t.Silence)
	case p.Signal != 0:
		e.Category, e.Message = "killed", fmt.Sprintf("ended by signal %d (%v)", int(p.Signal), p.Signal)
	case p.Exit == 0 || s.Exit[fmt.Sprint(p.Exit)] == "ok":
		return nil
	case s.Exit[fmt.Sprint(p.Exit)] != "":
		e.Category, e.Message = s.Exit[fmt.Sprint(p.Exit)], exitMessage(p)
	case p.NotStarted():
		e.Category, e.Message, e.Permanent = "spawn_failed", exitMessage(p), true
	default:
		e.Category, e.Message = "exit_nonzero", exitMessage(p)
	}
	return e
}

func exitMessage(p *proc.Result) string {
	msg := fmt.Sprintf("exit status %d", p.Exit)
	lines := strings.Split(strings.TrimSpace(proc.Printable(string(p.Stderr.Tail(2000)))), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		msg += ": " + printable.Clip(last, 200)
	}
	return msg
}

// keep puts what the command printed into the node's folder, bytewise, when there is any.
func keep(t *nodes.Task, s *settings, p *proc.Result, failed bool) error {
	for _, c := range []struct {
		name string
		from *proc.Capture
	}{{"stdout.txt", p.Stdout}, {"stderr.txt", p.Stderr}} {
		published := c.from == p.Stdout && s.Stdout != "" && !failed
		if c.from.Size() == 0 || published {
			continue
		}
		if err := t.KeepFrom(c.name, c.from.Open()); err != nil {
			return err
		}
	}
	return nil
}
