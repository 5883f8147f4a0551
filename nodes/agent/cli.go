package agent

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/capability"
	"dagrun.dev/nodes/agent/internal/transcript"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/credential"
	"dagrun.dev/nodes/internal/proc"
)

// A cli is a provider that is a command line agent: a program of which one process answers one question.
type cli struct {
	name   string
	format *transcript.Format
	// patterns are what the specification declares of its messages (command.errors); they come first.
	patterns []errorPattern
	// start says how the program is started with a question.
	start func(q *question) (*program, error)
}

// A program is what is started.
type program struct {
	argv  []string
	env   map[string]string // set for it
	pass  []string          // handed on from dagrun's own environment
	stdin string            // "" = the null device
}

// firstLine stands before every prompt that goes to an agent by stdin: a prompt that began with a
// slash would be taken as a command of the agent, one with a dash as an option.
const firstLine = "Read the following and answer it.\n\n"

// passed are the variables that a known program is handed on: its keys, and by what it finds its way out.
func passed(provider string) []string {
	return slices.Concat(capability.Of(provider).Keys, []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE"})
}

func (c cli) address() string { return "cli:" + c.name }

// program begins the arguments: with what the settings say, else the program of the provider's name.
func (s *settings) program(name string) []string {
	if len(s.Argv) == 0 {
		return []string{name}
	}
	return slices.Clone(s.Argv)
}

// ask starts the program and turns what it printed into a reply.
func (c cli) ask(ctx context.Context, q *question) (*reply, error) {
	p, err := c.start(q)
	if err != nil {
		return nil, err
	}
	spec, err := c.prepare(p, q)
	if err != nil {
		return nil, err
	}
	if spec.Stdin != nil {
		defer spec.Stdin.Close()
	}
	if err := takeTurn(ctx, p.argv[0], q.set.StartGap.D()); err != nil {
		return nil, err
	}
	alive := c.beat(q.task)
	out, errs := q.task.Grow("transcript.jsonl"), q.task.Grow("stderr.txt")
	defer out.Close()
	defer errs.Close()
	spec.Follow = func(isErr bool, piece []byte) {
		switch {
		case isErr:
			errs.Add(piece)
		case c.format.Read != nil:
			out.Add(piece)
		}
	}
	if q.task.Begin != nil {
		q.task.Begin()
	}
	res, err := proc.Run(ctx, spec)
	alive()
	if err != nil {
		var start *proc.StartError
		if errors.As(err, &start) {
			return nil, notStarted(q.task, start)
		}
		return nil, err
	}
	defer res.Close()
	r, err := (&run{c, q, res}).judge()
	if err != nil {
		return nil, err
	}
	warnings, survivors := res.Leftovers("agent")
	r.Warnings, r.Survivors = append(r.Warnings, warnings...), survivors
	c.keep(q.task, r, res, out, errs)
	return r, nil
}

// recall judges what a program had printed when the process that ran it died.
func (c cli) recall(q *question) (*reply, error) {
	for _, name := range slices.Sorted(maps.Values(q.set.Secrets)) { // the host masks what is kept
		if _, err := q.task.Secret(name); err != nil {
			return nil, err
		}
	}
	credential.MaskEnv(q.task, os.Environ()) // it was handed on from there
	res, err := proc.Reopen(q.task.Spool)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	r, err := (&run{c, q, res}).judge()
	if err != nil || !r.Ended && r.Doubt == nil {
		return r, err
	}
	out, errs := q.task.Grow("transcript.jsonl"), q.task.Grow("stderr.txt")
	c.keep(q.task, r, res, out, errs)
	return r, lasted(r, q.task.Spool, "stdout")
}

// beat keeps the host from taking a program for dead that prints its answer at the end, by signs of life as
// long as it runs.
func (c cli) beat(t *nodes.Task) (stop func()) {
	if c.format.Stream || t.Silence == 0 || t.Beat == nil {
		return func() {}
	}
	ticker, done := time.NewTicker(t.Silence/2), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				t.Beat()
			case <-done:
				ticker.Stop()
				return
			}
		}
	}()
	return func() { close(done) }
}

// startTries is how often a program that is missing is looked for, with the pauses of the category
// spawn_failed between: an update may be replacing it.
const startTries = 4

// notStarted says what it means that the program could not be started. All nodes that use it would
// fail the same way, so that the user has to correct it: it is not the failure of one node.
func notStarted(t *nodes.Task, e *proc.StartError) *nodes.Error {
	switch {
	case e.TooLong():
		return nodes.Permanent(nodes.Fail("input_too_big", e.Error()))
	case e.Short(), e.Missing() && t.Attempt < startTries:
		return nodes.Fail("spawn_failed", e.Error())
	}
	return nodes.Fail("config", e.Error())
}

func (c cli) prepare(p *program, q *question) (*proc.Spec, error) {
	env, pass, err := p.environment(q)
	if err != nil {
		return nil, err
	}
	spec := &proc.Spec{
		Argv: slices.Concat(q.set.Wrapper, p.argv), Dir: q.folder, Env: proc.Environ(pass, env),
		Spool: q.task.Out, Named: q.task.Spool,
		Grace: q.task.Grace, ExitGrace: q.set.ExitGrace.D(), MostOutput: q.set.MaxOutputMB << 20, Beat: q.task.Beat,
	}
	if c.format.Stream {
		spec.Silence = q.task.Silence
	}
	if c.format.Last != nil {
		w := &endWatch{ended: c.format.Last}
		spec.Watch = w.piece
	}
	if p.stdin != "" {
		spec.Stdin, err = proc.Input(q.task.Scratch, strings.NewReader(p.stdin))
	}
	return spec, err
}

// environment is the allow-list plus a private home. Session markers of an agent that dagrun itself
// runs under (CLAUDECODE ...) are not on the list, so nested calls work.
func (p *program) environment(q *question) (set map[string]string, pass []string, err error) {
	set = map[string]string{"TMPDIR": filepath.Join(q.task.Scratch, "tmp")}
	if q.set.Home == "own" {
		set["HOME"] = filepath.Join(q.task.Scratch, "home")
	}
	for _, dir := range set {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, nil, err
		}
	}
	maps.Copy(set, p.env)
	for name, raw := range q.set.Env {
		set[name] = accept.Plain(raw)
	}
	for name, secret := range q.set.Secrets {
		if set[name], err = q.task.Secret(secret); err != nil {
			return nil, nil, err
		}
	}
	pass = slices.Concat(p.pass, q.set.Pass)
	credential.MaskEnv(q.task, proc.Environ(pass, set))
	return set, pass, nil
}

// starts keeps apart the starts of one program: some break their own settings file when
// two of them begin at once.
var starts = struct {
	sync.Mutex
	next map[string]time.Time
}{next: map[string]time.Time{}}

// takeTurn waits until a program may start again.
func takeTurn(ctx context.Context, program string, gap time.Duration) error {
	if gap <= 0 {
		return nil
	}
	starts.Lock()
	now := time.Now()
	at := starts.next[program]
	if at.Before(now) {
		at = now
	}
	starts.next[program] = at.Add(gap)
	starts.Unlock()
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// keep puts what the program printed into the node's folder, bytewise. It stands beside the answer: what of it cannot
// be kept is a warning.
func (c cli) keep(t *nodes.Task, r *reply, res *proc.Result, out, errs *nodes.Growing) {
	side := &nodes.Result{}
	errs.Finish(side, res.Stderr.At(), res.Stderr.Size())
	if c.format.Read != nil {
		out.Finish(side, res.Stdout.At(), res.Stdout.Size())
	}
	if r.Text == "" {
		t.KeepBeside(side, "raw-output.txt", res.Stdout.Open())
	}
	r.Warnings = append(r.Warnings, side.Warnings...)
}
