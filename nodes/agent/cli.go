package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/credential"
	"dagrun.dev/nodes/internal/proc"
)

// A program is one command line agent, ready to be started.
type program struct {
	argv   []string
	env    map[string]string // set for it
	pass   []string          // handed on from dagrun's own environment
	stdin  string            // "" = the null device
	output format
	// patterns are what the specification declares of its messages (command.errors); they come first.
	patterns []errorPattern
}

// firstLine stands before every prompt that goes to an agent by stdin: a prompt that began with a
// slash would be taken as a command of the agent, one with a dash as an option.
const firstLine = "Read the following and answer it.\n\n"

// run starts the program and turns what it printed into a reply.
func (p *program) run(ctx context.Context, q *question) (*reply, error) {
	spec, err := p.prepare(q)
	if err != nil {
		return nil, err
	}
	if spec.Stdin != nil {
		defer spec.Stdin.Close()
	}
	if err := takeTurn(ctx, p.argv[0], time.Duration(q.set.StartGap)); err != nil {
		return nil, err
	}
	alive := p.beat(q.task)
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
	r, err := p.judge(q, res)
	if err != nil {
		return nil, err
	}
	r.leftovers(res)
	return r, p.keep(q.task, r, res)
}

// beat keeps the host from taking a program for dead that prints its answer at the end, by signs of life as
// long as it runs. X6
func (p *program) beat(t *nodes.Task) (stop func()) {
	if p.output.stream || t.Silence == 0 || t.Beat == nil {
		return func() {}
	}
	ticker, done := time.NewTicker(t.Silence/2), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				t.Beat("")
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
// fail the same way, so that it is for a person to mend, not the failure of one node.
func notStarted(t *nodes.Task, e *proc.StartError) *nodes.Error {
	switch {
	case e.TooLong():
		return nodes.Permanent(nodes.Fail("input_too_big", e.Error()))
	case e.Short(), e.Missing() && t.Attempt < startTries:
		return nodes.Fail("spawn_failed", e.Error())
	}
	return nodes.Fail("config", e.Error())
}

// recall judges what a program had printed when the process that ran it died.
func (p *program) recall(q *question) (*reply, error) {
	if err := q.knowSecrets(); err != nil {
		return nil, err
	}
	credential.MaskEnv(q.task, os.Environ()) // it was handed on from there
	res, err := proc.Reopen(q.task.Spool)
	if err != nil {
		return nil, err
	}
	defer res.Close()
	r, err := p.judge(q, res)
	switch {
	case err != nil:
		return nil, err
	case r.Ended || r.Doubt != nil:
	case r.Usage.Input+r.Usage.CacheRead+r.Usage.CacheWrite > 0:
		// The head of the stream told what was read: the attempt is lost, but not what it used. M6
		r.Failure = nodes.Fail("lost", "the program was at work when the process that ran it died; what it had used is known")
		return r, nil
	default:
		return nil, nil
	}
	if err := r.lasted(q.task.Spool, "stdout"); err != nil {
		return nil, err
	}
	return r, p.keep(q.task, r, res)
}

func (p *program) prepare(q *question) (*proc.Spec, error) {
	env, pass, err := p.environment(q)
	if err != nil {
		return nil, err
	}
	spec := &proc.Spec{
		Argv: append(append([]string{}, q.set.Wrapper...), p.argv...), Dir: q.folder, Env: proc.Environ(pass, env), Spool: q.task.Out,
		Named: q.task.Spool, Grace: q.task.Grace, ExitGrace: time.Duration(q.set.ExitGrace),
	}
	if q.task.Beat != nil {
		spec.Beat = func() { q.task.Beat("") }
	}
	if p.output.stream {
		spec.Silence = q.task.Silence
	}
	if p.output.last != nil {
		w := &endWatch{ended: p.output.last}
		spec.Watch = w.piece
	}
	if p.stdin != "" {
		spec.Stdin, err = stdinFile(q.task, p.stdin)
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
	for name, value := range p.env {
		set[name] = value
	}
	for name, raw := range q.set.Env {
		set[name] = accept.Plain(raw)
	}
	for name, secret := range q.set.Secrets {
		if set[name], err = q.task.Secret(secret); err != nil {
			return nil, nil, err
		}
	}
	pass = append(append([]string{}, p.pass...), q.set.Pass...)
	credential.MaskEnv(q.task, proc.Environ(pass, set))
	return set, pass, nil
}

// stdinFile returns a file with the prompt: the agent can close it early or read it late, and
// nobody has to write.
func stdinFile(t *nodes.Task, text string) (*os.File, error) {
	f, err := os.Create(filepath.Join(t.Scratch, "stdin"))
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(f, text)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// keep puts what the program printed into the node's folder, bytewise. S-10
func (p *program) keep(t *nodes.Task, r *reply, res *proc.Result) error {
	files := map[string]*proc.Capture{"stderr.txt": res.Stderr}
	switch {
	case p.output.read != nil:
		files["transcript.jsonl"] = res.Stdout
		if r.Text == "" {
			files["raw-output.txt"] = res.Stdout
		}
	case r.Text == "":
		files["raw-output.txt"] = res.Stdout
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if files[name].Size() == 0 && name != "raw-output.txt" {
			continue
		}
		w, err := t.Keep(name)
		if err != nil {
			return fmt.Errorf("keep %s: %w", name, err)
		}
		_, err = io.Copy(w, files[name].Open())
		if err = errors.Join(err, w.Close()); err != nil {
			return fmt.Errorf("keep %s: %w", name, err)
		}
	}
	return nil
}

func (r *reply) leftovers(res *proc.Result) {
	for _, q := range res.Left {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the agent left process %d (%s) behind; it was ended", q.Pid, q.Command))
	}
	for _, q := range res.Survivors {
		r.Survivors = append(r.Survivors, fmt.Sprintf("%d (%s)", q.Pid, q.Command))
	}
}
