// Package exec is the kind of node that runs one local command. It does not interpret what the
// command prints.
package exec

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/proc"
)

//go:embed schema.cue
var schema string

// mayNotStart is the exit status of a shell that found a program and may not execute it.
const mayNotStart = 126

// Kind is the kind "exec".
var Kind = nodes.Kind{Name: "exec", Schema: schema,
	Parse: accept.Parser(func() *settings { return &settings{MaxOutputMB: 1024} })}

var _ interface { // its abilities
	nodes.Prober
	nodes.Messenger
	nodes.Salvager
	nodes.Preflighter
} = &settings{}

// Run runs the command once.
func (s *settings) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	out, errs := t.Grow("stdout.txt"), t.Grow("stderr.txt")
	defer out.Close()
	defer errs.Close()
	p, err := s.start(ctx, t, func(isErr bool, piece []byte) {
		switch {
		case isErr:
			errs.Add(piece)
		case s.Stdout == "":
			out.Add(piece)
		}
	})
	if err != nil {
		return nil, s.startFailure(err)
	}
	defer p.Close()
	res := &nodes.Result{}
	res.Warnings, res.Survivors = p.Leftovers("command")
	cut := p.Cut(s.MaxOutputMB << 20)
	failure := s.judge(ctx, t, p, cut)
	if cut > 0 && failure == nil {
		res.Warnings = append(res.Warnings, fmt.Sprintf(
			"it printed more than %d MB (maxOutputMB): the last %d bytes are not kept", s.MaxOutputMB, cut))
	}
	if well := failure == nil || p.Cause == proc.Ended && p.Exit == 0; well && t.TookEffect != nil {
		if err := t.TookEffect("exit status " + strconv.Itoa(p.Exit)); err != nil {
			return res, err
		}
	}
	if failure != nil || s.Stdout == "" { // what becomes an artifact is not kept twice
		out.Finish(res, p.Stdout.At(), p.Stdout.Size())
	}
	errs.Finish(res, p.Stderr.At(), p.Stderr.Size())
	if failure != nil {
		return res, failure
	}
	return res, s.collect(t, p, res)
}

// Message has the command read the message.
func (*settings) Message(with json.RawMessage, message []byte) (json.RawMessage, error) {
	return nodes.WithField(with, "stdin", map[string]string{"text": string(message)})
}

// Probe runs the command of the setting probe.
func (s *settings) Probe(ctx context.Context, t *nodes.Task) (took bool, err error) {
	if s.ProbeBy == nil {
		return false, errors.New("the node names no probe")
	}
	s.Argv, s.Script, s.Stdin = s.ProbeBy.Argv, s.ProbeBy.Script, nil
	p, err := s.start(ctx, t, nil)
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
	return false, errors.New(p.ExitMessage(p.Stderr))
}

// start runs the command to its end. Close the result.
func (s *settings) start(
	ctx context.Context, t *nodes.Task, follow func(isErr bool, piece []byte),
) (*proc.Result, error) {
	spec, err := s.prepare(t)
	if err != nil {
		return nil, err
	}
	spec.Follow = follow
	if s.Stdin != nil {
		if spec.Stdin, err = openStdin(t, s.Stdin); err != nil {
			return nil, err
		}
		defer spec.Stdin.Close()
	}
	if t.Begin != nil {
		t.Begin()
	}
	return proc.Run(ctx, spec)
}

// startFailure says that the program did not start. What is missing stays so; what the machine was short of may come.
func (s *settings) startFailure(err error) error {
	start, ok := errors.AsType[*proc.StartError](err)
	if !ok {
		return err
	}
	what := ""
	if s.Script != "" {
		what = "the shell of the script: "
	}
	if start.TooLong() {
		return nodes.Permanent(nodes.Fail("spawn_failed", what+start.Error()+"; "+s.longest()))
	}
	e := nodes.Fail("spawn_failed", what+start.Error())
	e.Permanent = !start.Short()
	return e
}

// longest says what of the command's arguments and variables is the longest, and how it could be handed over.
func (s *settings) longest() string {
	name, size := "run", len(s.Script)
	for i, arg := range s.Argv {
		if len(arg) > size {
			name, size = fmt.Sprintf("argv[%d]", i), len(arg)
		}
	}
	for _, variable := range slices.Sorted(maps.Keys(s.Env)) {
		if n := len(accept.Plain(s.Env[variable])); n > size {
			name, size = "env."+variable, n
		}
	}
	return fmt.Sprintf("the longest is %s with %d bytes; hand it over in a file that the node reads, or by stdin",
		name, size)
}

// judge says how the command failed, or nil. cut is how much of what it printed is beyond its limit.
func (s *settings) judge(ctx context.Context, t *nodes.Task, p *proc.Result, cut int64) error {
	e := &nodes.Error{}
	meaning := s.Exit[strconv.Itoa(p.Exit)]
	switch {
	case p.Cause == proc.Cancelled:
		return context.Cause(ctx)
	case p.Cause == proc.TimedOut:
		e.Category, e.Message = "stalled", fmt.Sprintf("took longer than %v", t.Timeout)
	case p.Cause == proc.Silent:
		e.Category, e.Message = "stalled", fmt.Sprintf("printed nothing for %v", t.Silence)
	case p.Cause == proc.Limited && cut == 0:
		e.Category, e.Message = "output_limit", fmt.Sprintf(
			"stopped: it had printed %d MB, and the disk of the run has no room for more (maxOutputMB: %d)",
			(p.Stdout.Size()+p.Stderr.Size())>>20, s.MaxOutputMB)
	case p.Cause == proc.Limited || cut > 0 && s.Stdout != "" && p.Exit == 0:
		e.Category, e.Message = "output_limit", fmt.Sprintf(
			"it printed more than %d MB (maxOutputMB); what came before is kept", s.MaxOutputMB)
	case p.Signal != 0:
		e.Category, e.Message = "killed", p.ExitMessage()
	case p.Exit == 0 || meaning == "ok":
		return nil
	case meaning != "":
		e.Category, e.Message = meaning, p.ExitMessage(p.Stderr)
	case p.NotStarted():
		e.Category, e.Message, e.Permanent = "spawn_failed", p.ExitMessage(p.Stderr), true
	default:
		e.Category, e.Message = "exit_nonzero", p.ExitMessage(p.Stderr)
	}
	if p.Exit == mayNotStart && t.Reads != nil {
		e.Message += "; of what a node reads only what stands in with.programs may be started"
	}
	e.Unknown = p.Cause != proc.Ended || p.Signal != 0 // it was cut off in the middle of its work
	e.Diagnostics = p.LastWords()
	return e
}

// Needs are the programs with which the command and its probe begin: what a script starts is not known.
func (s *settings) Needs() (list []nodes.Need) {
	argvs := [][]string{s.Argv}
	if s.Script != "" {
		argvs[0] = s.Shell.words()
	}
	if p := s.ProbeBy; p != nil && p.Script != "" {
		argvs = append(argvs, s.Shell.words())
	} else if p != nil {
		argvs = append(argvs, p.Argv)
	}
	for _, argv := range argvs {
		if len(argv) == 0 {
			continue
		}
		if n, ok := nodes.ProgramNeed(argv[0], accept.Plain(s.Env["PATH"]), s.Dir); ok {
			list = append(list, n)
		}
	}
	return list
}
