package cli

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/all"
)

// e-work/23, e-work/24, W-4: the disk fails once, at each step in turn, while an answer is paid for and while a command
// and a request with effects that must not be repeated are carried out. Whatever becomes of the process, each happens
// once, what it cost is what it cost, and in the end the run is done and its record verifies. Where the command has
// ended well and what it left is lost, the user is asked, and says done. make faults tries every step with every error;
// here each sync of a file or folder and each making of a folder fails, and from each on the disk is full until the
// process has ended.
func TestDiskFailsDuringWhatHappensOnce(t *testing.T) {
	t.Parallel()
	const alone = "DAGRUN_TEST_ALONE"
	if os.Getenv(alone) == "" { // who carries out commands takes children that lead a session for orphans: here, other tests' programs
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=2h")
		c.Env = append(os.Environ(), alone+"=1", "DAGRUN_PROGRAM="+binary)
		out, err := c.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	type failure struct {
		error
		stays bool // from then on nothing that takes room succeeds
	}
	faults := []failure{{syscall.EIO, false}, {syscall.ENOSPC, true}}
	fails := func(s disktest.Step) bool { return s.Op == "sync" || s.Op == "syncdir" || s.Op == "mkdir" }
	if os.Getenv("DAGRUN_FAULTS") != "" {
		faults = append(faults, failure{syscall.ENOSPC, false}, failure{syscall.EPERM, false}, failure{syscall.EROFS, true})
		fails = func(disktest.Step) bool { return true }
	}
	ends := map[string]int{}
	for _, fault := range faults {
		for n := 1; ; n++ {
			o := newOnce(t)
			seen := 0
			end := o.process(func(s disktest.Step) error {
				if o.step != "" && fault.stays && s.Op != "remove" && s.Op != "removeall" {
					return disktest.Short{Err: fault}
				}
				if o.step != "" || !o.started.Load() || !fails(s) {
					return nil
				}
				if seen++; seen == n {
					o.step = fmt.Sprintf("%v at step %d, %s of %s", fault, n, s.Op, s.Name)
					return disktest.Short{Err: fault}
				}
				return nil
			})
			if o.step == "" {
				t.Logf("%v: %d steps", fault, n-1)
				if n < 12 {
					t.Errorf("only %d steps", n-1)
				}
				o.remove()
				break
			}
			ends[end]++
			for range 8 {
				if end != "done" {
					end = o.process(nil)
				}
				if end == "ended" {
					break // with a disk that works
				}
			}
			o.check(end)
			o.remove()
		}
	}
	t.Logf("the processes whose disk failed ended so: %v", ends)
}

// A once is a run of three things that must not happen twice.
type once struct {
	*crash
	step    string
	server  *httptest.Server
	posts   atomic.Int32
	started atomic.Bool
	res     *compile.Result
	kinds   *nodes.Registry
	failed  error
}

func newOnce(t *testing.T) *once {
	t.Helper()
	o := &once{crash: newFolder(t), kinds: all.Registry()}
	o.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		o.posts.Add(1)
		fmt.Fprint(w, "posted")
	}))
	for name, text := range map[string]string{
		"answers.yaml": "- answer: the answer\n  costUSD: 0.25\n",
		"agent.sh":     "#!/bin/sh\necho call >> '" + o.dir + "/calls'\nexec '" + binary + "' sim-agent \"$@\"\n",
		"spec.yaml": `pipeline:
  name: once
  nodes:
    ag:
      kind: agent
      reserve: {usd: 1}
      with: {provider: sim, argv: ["` + o.dir + `/agent.sh"], sim: {answers: answers.yaml}, prompt: {text: A}, to: page.txt}
    pay:
      kind: exec
      needs: [ag]
      effect: once
      writes: [receipt.txt]
      with: {run: 'echo paid >> paid; echo printed; echo receipt > "$DAGRUN_OUT/receipt.txt"'}
    post: {kind: http, needs: [pay], effect: once, with: {url: "` + o.server.URL + `", method: POST, to: posted.txt}}
`,
	} {
		if err := os.WriteFile(filepath.Join(o.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if o.res, err = compile.Compile(compile.Options{Path: filepath.Join(o.dir, "spec.yaml"), Kinds: o.kinds}); err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *once) remove() {
	o.server.Close()
	os.RemoveAll(o.dir)
}

// process carries the run on, as a process of its own would, on a disk with a hook, and says how that ended: done, a
// reason to pause, or "ended" with an error.
func (o *once) process(hook func(disktest.Step) error) string {
	o.t.Helper()
	now := time.Now()
	out := filepath.Join(o.dir, "build")
	if err := os.MkdirAll(out, 0o700); err != nil {
		o.t.Fatal(err)
	}
	fsys, err := disk.Open(out)
	if err != nil {
		o.t.Fatal(err)
	}
	defer fsys.Close()
	_, faulty := disktest.NewFaulty(fsys, hook)
	opts := run.Options{Dir: out, FS: faulty, Now: now, Command: "test", Plan: o.res.Plan}
	opts.Observe = func(e *machine.Event, _ bool) {
		if e.Type == machine.Started {
			o.started.Store(true)
		}
	}
	evaluator := func(p *dag.Plan) (dag.Evaluator, error) { return compile.NewEvaluator(p, o.kinds) }
	var r *run.Run
	if run.Exists(out) {
		if r, _, err = run.Open(opts); err == nil {
			err = r.Resume(now, "test", executor.Adopt(r, o.kinds, evaluator, nil, now))
		}
	} else {
		r, err = run.Create(opts, run.New{Graph: o.res.Graph, Seed: 1, File: inputFile(o.res)})
	}
	if err == nil {
		err = o.answer(r, now)
	}
	if err == nil {
		var eval dag.Evaluator
		if eval, err = evaluator(o.res.Plan); err == nil {
			err = executor.Run(o.t.Context(), executor.Options{Run: r, Kinds: o.kinds, Eval: eval, SpecDir: o.dir, Binary: binary, Jobs: 1})
		}
	}
	if err != nil {
		o.failed = errors.Join(o.failed, err)
		if r != nil {
			r.Abandon()
		}
		return "ended"
	}
	defer r.Close()
	v := r.State().Run()
	if v.Status == machine.RunDone {
		return "done"
	}
	return string(v.Pause.Reason)
}

// answer says that what has ended well is done, and of what nothing is known whether it is.
func (o *once) answer(r *run.Run, now time.Time) error {
	for _, q := range r.State().Escalations() {
		answer := machine.AnswerDone
		switch {
		case q.Kind == machine.AskLost && strings.Contains(q.Message, "ended well"):
		case q.Kind == machine.AskLost && strings.Contains(q.Message, "was interrupted"): // the user looks
			if q.Node == "pay" && o.count("paid") == 0 || q.Node == "post" && o.posts.Load() == 0 {
				answer = machine.AnswerRerun
			}
		default:
			return fmt.Errorf("it asks %s", q.Message)
		}
		body, err := executor.Answer(r.State(), machine.EscalationAnsweredBody{ID: q.ID, Answer: answer})
		if err != nil {
			return err
		}
		if err := r.RecordDurable(now, body); err != nil {
			return err
		}
	}
	return nil
}

// count returns how many lines a file has.
func (o *once) count(name string) int {
	b, err := os.ReadFile(filepath.Join(o.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		o.t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

// check wants that everything has happened once.
func (o *once) check(end string) {
	o.t.Helper()
	out := filepath.Join(o.dir, "build")
	list, err := run.Verify(run.Options{Dir: out, Now: time.Now()}, "")
	if err != nil {
		o.t.Fatalf("%s: %v", o.step, err)
	}
	var wrong []string
	for _, c := range list {
		if !c.Pass {
			wrong = append(wrong, c.Name+": "+c.Detail)
		}
	}
	r, _, err := run.OpenReadOnly(run.Options{Dir: out, Now: time.Now()})
	if err != nil {
		o.t.Fatalf("%s: %v", o.step, err)
	}
	defer r.Close()
	spent := r.State().Ledger().Spent.USD
	cost := spent == 250_000
	if o.failed != nil && strings.Contains(o.failed.Error(), "eventlog: sync") {
		// The log says that the call began; that it could not be synced, and no call was made, nobody could record.
		cost = cost || spent == 1_250_000
	}
	if calls, paid, posts := o.count("calls"), o.count("paid"), o.posts.Load(); end != "done" ||
		calls != 1 || paid != 1 || posts != 1 || !cost || len(wrong) > 0 {
		o.t.Errorf("%s: %s (%v): %d calls, paid %d times, %d posts, $%s spent; %s",
			o.step, end, o.failed, calls, paid, posts, spent, strings.Join(wrong, "; "))
	}
}
