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
	"strings"
	"time"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/credential"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/internal/proc"
)

// A program is one command line agent, ready to be started.
type program struct {
	argv   []string
	env    map[string]string // set for it
	pass   []string          // handed on from dagrun's own environment
	stdin  string            // "" = the null device
	output format
	// patterns are what its messages mean, tried before the built-in sentences.
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
	res, err := proc.Run(ctx, spec)
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
	if err != nil || !r.Ended && r.Doubt == nil {
		return nil, err
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
		Named: q.task.Spool, Grace: q.task.Grace, Silence: q.task.Silence, ExitGrace: time.Duration(q.set.ExitGrace),
	}
	if q.task.Beat != nil {
		spec.Beat = func() { q.task.Beat("") }
	}
	if p.output.ended != nil {
		w := &endWatch{ended: p.output.ended}
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
	case p.output.reader != nil:
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

// judge turns what a program printed and how it ended into a reply. Its own terminal event comes
// first, then other output, then stderr, then the exit status.
func (p *program) judge(q *question, res *proc.Result) (*reply, error) {
	r := &reply{}
	ev := q.evidence()
	most := q.set.MaxOutputMB << 20
	if p.output.reader == nil {
		r.Failure = p.text(r, res, most, ev)
	} else {
		out := p.output.reader()
		var told []string // error objects that the reader may not know
		found, err := scanObjects(res.Stdout.At(), res.Stdout.Answer(), most, func(o object) {
			out.event(o)
			if raw, ok := o["error"]; ok && o.has("error") && len(told) < 10 {
				told = append(told, printable.Clip(string(raw), 2000))
			}
		})
		if err != nil {
			return nil, err
		}
		if r.Ended = out.done(); r.Ended {
			r.Failure = p.declared(out.fill(r, ev), ev.Now)
			r.afterResult(found, res)
			if p.output.pieces && r.Failure == nil {
				p.pieces(r, found, res, ev)
			}
		} else {
			r.Finish = "error"
			r.Failure = p.noResult(out.words()+"\n"+strings.Join(told, "\n"), found, res, most, ev)
		}
	}
	for _, e := range []*nodes.Error{r.Failure, r.Doubt} {
		if e != nil && e.Diagnostics == "" {
			e.Diagnostics = res.LastWords()
		}
	}
	return r, nil
}

// pieces judges an answer that came in pieces: one that is missing in the middle shows nowhere, and one at
// the end in a page at best.
func (p *program) pieces(r *reply, found scan, res *proc.Result, ev evidence.Case) {
	switch {
	case found.hole != "":
		r.Failure = &nodes.Error{Category: "protocol", Message: "a line of the output is broken, text may be missing: " + found.hole}
	case res.Cause != proc.Ended || res.Exit != 0:
		r.doubt(p.badEnd(res, ev, true), res)
	case found.cutAt >= 0 || found.tooLong >= 0:
		r.Doubt, r.Cutting = &nodes.Error{Category: "protocol", Message: "the output breaks off, text may be missing"}, true
	}
}

// afterResult warns of what is odd about a run that gave its result.
func (r *reply) afterResult(found scan, res *proc.Result) {
	warn := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	r.Warnings = append(r.Warnings, found.odd.warnings(r.Text)...)
	if w := found.warning(); w != "" {
		warn("%s", w)
	}
	if found.cutAt >= 0 {
		warn("the output breaks off at byte %d of %d, behind the result", found.cutAt, res.Stdout.Answer())
	}
	if found.tooLong >= 0 {
		warn("a value at byte %d was too long to be read", found.tooLong)
	}
	switch {
	case res.Cause == proc.Orphaned: // the host says so
	case res.Cause != proc.Ended:
		warn("the agent had given its result and was ended (%s)", res.Cause)
	case res.Signal != 0:
		warn("the agent was ended by signal %d after its result", int(res.Signal))
	case res.Exit != 0 && r.Failure == nil:
		warn("exit status %d after a good result", res.Exit)
	}
}

// noResult says why a program that prints JSON gave no result. said is what it told of errors; when it
// printed no JSON at all, its words count too.
func (p *program) noResult(said string, found scan, res *proc.Result, most int64, ev evidence.Case) *nodes.Error {
	broken := found.cutAt >= 0 || found.tooLong >= 0 || found.hole != ""
	if found.objects == 0 && !broken {
		said += "\n" + string(res.Stdout.HeadTail(4000))
	}
	if e := p.ended(res, said, ev); e != nil {
		return e
	}
	size := res.Stdout.Answer()
	blank := found.objects == 0 && found.lines == 0 && found.cutAt < 0
	switch {
	case found.tooLong >= 0:
		return &nodes.Error{Category: "protocol", Permanent: true, Message: fmt.Sprintf("a value at byte %d is longer than %d MB (maxOutputMB)", found.tooLong, most>>20)}
	case found.cutAt >= 0:
		return &nodes.Error{Category: "protocol", Message: fmt.Sprintf("the output breaks off: the value at byte %d has no end, %d bytes were printed", found.cutAt, size)}
	case res.Exit != 0:
		return &nodes.Error{Category: "exit_nonzero", Message: p.exit(res)}
	case blank:
		return &nodes.Error{Category: "no_artifact", Message: "no output (exit status 0)"}
	case found.objects > 0:
		return &nodes.Error{Category: "protocol", Message: fmt.Sprintf("%d events, but no result", found.objects)}
	}
	return &nodes.Error{Category: "protocol", Message: "the output is no JSON: " + found.noise[0]}
}

// text judges a program whose whole output is the answer.
func (p *program) text(r *reply, res *proc.Result, most int64, ev evidence.Case) *nodes.Error {
	r.Finish = "stop"
	if res.Stdout.Answer() > most {
		return &nodes.Error{Category: "protocol", Permanent: true, Message: fmt.Sprintf("the answer is longer than %d MB (maxOutputMB)", most>>20)}
	}
	b, err := io.ReadAll(res.Stdout.UntilExit())
	if err != nil {
		return &nodes.Error{Category: "unknown", Message: "read the answer", Err: err}
	}
	r.Text = string(b)
	blank := evidence.Clean(r.Text) == ""
	if res.Cause == proc.Ended && res.Exit == 0 && !blank {
		if !evidence.Head(r.Text) && (len(r.Text) > mostShort || !p.matches(r.Text)) {
			return nil
		}
		ev.Text, ev.Else = r.Text, "protocol"
		return p.declared(ev.Error(), ev.Now)
	}
	failure := p.badEnd(res, ev, blank)
	if blank || evidence.Head(r.Text) {
		return failure
	}
	r.doubt(failure, res)
	return nil
}

// doubt says that a program failed which printed an answer and no word on whether that is whole.
func (r *reply) doubt(failure *nodes.Error, res *proc.Result) {
	r.Doubt, r.Cutting = failure, res.Cause != proc.Ended || res.Signal != 0
}

// badEnd says how a program failed whose whole output is the answer.
func (p *program) badEnd(res *proc.Result, ev evidence.Case, blank bool) *nodes.Error {
	said := ""
	if !blank {
		said = string(res.Stdout.HeadTail(4000))
	}
	if e := p.ended(res, said, ev); e != nil {
		return e
	}
	if res.Exit == 0 {
		return &nodes.Error{Category: "no_artifact", Message: "no output (exit status 0)"}
	}
	return &nodes.Error{Category: "exit_nonzero", Message: p.exit(res)}
}

// ended says how a program without a result ended, as far as there is evidence; else nil. said is what
// it told on stdout.
func (p *program) ended(res *proc.Result, said string, ev evidence.Case) *nodes.Error {
	said = strings.TrimSpace(said)
	ev.Text = strings.TrimSpace(said + "\n" + proc.Printable(string(res.Stderr.Tail(8000))))
	word, spoken := evidence.Word(ev.Text)
	byPattern := p.matches(ev.Text)
	switch {
	case res.Cause == proc.Cancelled:
		return &nodes.Error{Category: "killed", Message: "the agent was stopped"}
	case res.Cause == proc.Orphaned:
		return &nodes.Error{Category: "killed", Message: "how the agent ended is not known"}
	case res.Cause == proc.TimedOut || res.Cause == proc.Silent:
		if spoken && patient[word] {
			return p.declared(ev.Error(), ev.Now) // it retried by itself until the time was over
		}
		what := map[proc.Cause]string{proc.TimedOut: "no result within the time limit", proc.Silent: "no output for too long"}[res.Cause]
		return &nodes.Error{Category: "stalled", Message: what}
	case byPattern:
		return p.declared(ev.Error(), ev.Now)
	case res.NotStarted():
		return &nodes.Error{Category: "config", Message: p.exit(res)}
	case res.Signal != 0 || res.Exit > 128 && res.Exit <= 128+15:
		if spoken && patient[word] {
			return ev.Error()
		}
		return &nodes.Error{Category: "killed", Message: p.exit(res)}
	case spoken, evidence.TellsStatus(said):
		return ev.Error()
	}
	if category := exitCategory(res.Exit, said != "" || res.Stdout.Size() > 0); category != "" {
		return &nodes.Error{Category: category, Permanent: category == "budget", Message: p.exit(res)}
	}
	return nil
}

// patient are the categories that an agent's own retries hide until it is ended.
var patient = map[string]bool{"rate_limited": true, "quota_wait": true, "auth": true, "billing": true}

// exitCategory knows the exit statuses that command line agents document. began says that the
// agent had started to answer.
func exitCategory(status int, began bool) string {
	switch {
	case status == 41, status == 145: // 401 modulo 256
		return "auth"
	case status == 53, status == 52 && began:
		return "budget"
	case status == 42, status == 52:
		return "config"
	case status == 130: // 128 and the signal of an interrupt
		return "killed"
	}
	return ""
}

func (p *program) exit(res *proc.Result) string {
	msg := fmt.Sprintf("exit status %d", res.Exit)
	if res.Signal != 0 {
		msg = fmt.Sprintf("ended by signal %d (%v)", int(res.Signal), res.Signal)
	}
	for _, c := range []*proc.Capture{res.Stderr, res.Stdout} {
		lines := strings.Split(strings.TrimSpace(proc.Printable(string(c.Tail(2000)))), "\n")
		if last := strings.TrimSpace(lines[len(lines)-1]); last != "" && !(c == res.Stdout && p.output.reader != nil) {
			return msg + ": " + printable.Clip(last, 200)
		}
	}
	return msg
}
