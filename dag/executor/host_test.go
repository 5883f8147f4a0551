package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/nodes"
)

// play is a kind of node whose attempts do what a script says, one step an attempt, the last
// one for ever: "ok", "sleep:D" (then ok), "fail:CATEGORY", "lost:CATEGORY" (it may have had its effect), "wait:D" (a quota resets after D),
// "stuck" (until it is stopped), "silent" (no sign of life), "panic", "goexit".
type play struct {
	mu       sync.Mutex
	attempts []string // node.attempt, in order of start
	most     int      // at once
	now      int
}

func (*play) Traits() nodes.Traits {
	return nodes.Traits{Effect: "pure"}
}

func (p *play) enter(t *nodes.Task) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attempts = append(p.attempts, fmt.Sprintf("%s.%d", t.Node, t.Attempt))
	p.now++
	p.most = max(p.most, p.now)
	return func() {
		p.mu.Lock()
		p.now--
		p.mu.Unlock()
	}
}

func (p *play) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	defer p.enter(t)()
	var with struct{ Do []string }
	if err := json.Unmarshal(t.With, &with); err != nil {
		return nil, err
	}
	step := "ok"
	if len(with.Do) > 0 {
		step = with.Do[min(t.Attempt, len(with.Do))-1]
	}
	verb, rest, _ := strings.Cut(step, ":")
	switch verb {
	case "ok":
	case "fail":
		return nil, nodes.Fail(rest, "as the script says")
	case "full":
		return nil, fmt.Errorf("keep the answer: %w", syscall.ENOSPC)
	case "lost":
		return nil, &nodes.Error{Category: rest, Message: "as the script says", Unknown: true}
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			return nil, err
		}
		e := nodes.Fail("quota_wait", "the quota is used up")
		e.WaitUntil = time.Now().Add(d)
		return nil, e
	case "sleep", "stuck", "silent":
		d, err := time.ParseDuration(rest)
		if verb == "sleep" && err != nil {
			return nil, err
		}
		var over <-chan time.Time
		if verb == "sleep" {
			over = time.After(d)
		}
		select {
		case <-over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case "panic":
		panic("as the script says")
	case "goexit":
		runtime.Goexit()
	default:
		return nil, fmt.Errorf("unknown step %q", step)
	}
	return p.result(t)
}

// result writes what the node declares: artifacts with the node's name, values by type.
func (p *play) result(t *nodes.Task) (*nodes.Result, error) {
	r := &nodes.Result{Values: map[string]any{}, Writes: map[string]string{}}
	for _, name := range t.Writes {
		if err := os.WriteFile(filepath.Join(t.Out, name), []byte(t.Node+"\n"), 0o600); err != nil {
			return nil, err
		}
		r.Writes[name] = name
	}
	for name, typ := range t.Outputs {
		r.Values[name] = map[string]any{"string": t.Node, "int": 3, "number": 2.5, "bool": true, "list": []int{1, 2}, "map": map[string]int{"a": 1}}[typ]
	}
	return r, nil
}

// A stage is a run under test.
type stage struct {
	t      *testing.T
	dir    string
	plan   *dag.Plan
	play   *play
	kinds  []nodes.Kind // beside play
	opts   Options      // what a test changes; Run, Kinds and Eval are filled in
	began  time.Time
	log    []string // what was recorded, a line an event
	bodies []machine.Body
	at     map[string]time.Duration
	ctx    context.Context      // of the host; nil = none that ends
	seen   func(*machine.Event) // called with every event that was not replayed; nil = nobody listens
}

// newStage completes a plan of play nodes.
func newStage(t *testing.T, p *dag.Plan) *stage {
	t.Helper()
	p.Format, p.Name = dag.Format, "test"
	if p.Categories == nil {
		p.Categories = []dag.Category{
			{Name: "config", Class: "hard", Then: "fail"},
			{Name: "disk", Class: "hard", Then: "stop"},
			{Name: "quota_wait", Class: "transient", Then: "wait"},
			{Name: "refused", Class: "hard", Then: "fail"},
			{Name: "stalled", Class: "transient", Then: "retry", Breaker: 1},
			{Name: "transient", Class: "transient", Then: "retry", Breaker: 1},
			{Name: "unknown", Class: "transient", Then: "retry"},
		}
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Kind == "" {
			n.Kind = "play"
		}
		if n.Effect == "" {
			n.Effect = "pure"
		}
		if n.Retry.Attempts == 0 {
			n.Retry.Attempts = 1
		}
	}
	return &stage{t: t, dir: t.TempDir(), plan: p, play: &play{}, began: time.Now(), at: map[string]time.Duration{}}
}

// script returns the settings of a play node.
func script(steps ...string) json.RawMessage {
	raw, err := json.Marshal(map[string]any{"do": steps})
	if err != nil {
		panic(err)
	}
	return raw
}

func (s *stage) options() run.Options {
	return run.Options{Dir: s.dir, Command: "test", Now: time.Now(), Observe: s.observe}
}

// observe keeps a line for each event that tells the story: when, what, which node, how.
func (s *stage) observe(e *machine.Event, replayed bool) {
	if replayed {
		return
	}
	if s.seen != nil {
		s.seen(e)
	}
	s.bodies = append(s.bodies, e.Body)
	line := ""
	switch b := e.Body.(type) {
	case *machine.StartedBody:
		line = fmt.Sprintf("start %s.%d", b.Node, b.Attempt)
	case *machine.FinishedBody:
		line = fmt.Sprintf("%s %s.%d", b.Status, b.Node, b.Attempt)
		if b.Category != "" {
			line += " " + b.Category
		}
	case *machine.RunPausedBody:
		line = "paused " + string(b.Reason)
	case *machine.BreakerChangedBody:
		line = "breaker " + b.State
	case *machine.RunEndedBody:
		line = "ended"
	case *machine.EscalationOpenedBody:
		line = "asked " + b.Node
	case *machine.EscalationAnsweredBody:
		line = "answered " + b.Answer + " by " + b.By
	default:
		return
	}
	s.at[line] = e.Time.Sub(s.began.Truncate(time.Millisecond))
	s.log = append(s.log, line)
}

// open creates the run or goes on with it.
func (s *stage) open() *run.Run {
	s.t.Helper()
	g, err := dag.NewGraph(s.plan)
	if err != nil {
		s.t.Fatal(err)
	}
	if !run.Exists(s.dir) {
		r, err := run.Create(s.options(), run.New{Graph: g, Seed: 1})
		if err != nil {
			s.t.Fatal(err)
		}
		return r
	}
	r, _, err := run.Open(s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := r.Resume(time.Now(), "test", Adopt(r, s.registry(), s.evaluator, nil, time.Now())); err != nil {
		s.t.Fatal(err)
	}
	return r
}

// carryOn runs the run until it ends or pauses and returns how it stands.
func (s *stage) carryOn() machine.RunView {
	s.t.Helper()
	r := s.open()
	err := s.run(r)
	if err != nil {
		s.t.Fatal(err)
	}
	v := r.State().Run()
	if err := r.Close(); err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *stage) evaluator(p *dag.Plan) (dag.Evaluator, error) { return expr.New(p) }

func (s *stage) run(r *run.Run) error {
	eval, err := s.evaluator(s.plan)
	if err != nil {
		return err
	}
	o := s.opts
	o.Run, o.Kinds, o.Eval, o.SpecDir = r, s.registry(), eval, s.dir
	if o.Jobs == 0 {
		o.Jobs = 2
	}
	if s.ctx == nil {
		s.ctx = context.Background()
	}
	return Run(s.ctx, o)
}

// kindOf is a kind whose settings are all one.
func kindOf(name string, s nodes.Settings) nodes.Kind {
	return nodes.Kind{Name: name, Parse: func(json.RawMessage) (nodes.Settings, error) { return s, nil }}
}

func (s *stage) registry() *nodes.Registry {
	return nodes.NewRegistry(append([]nodes.Kind{kindOf("play", s.play)}, s.kinds...)...)
}

func (s *stage) want(lines ...string) {
	s.t.Helper()
	if got, want := strings.Join(s.log, "\n"), strings.Join(lines, "\n"); got != want {
		s.t.Errorf("recorded:\n%s\nwant:\n%s", got, want)
	}
}

// wantAt wants an event at about an instant after the start.
func (s *stage) wantAt(line string, from, to time.Duration) {
	s.t.Helper()
	if got, ok := s.at[line]; !ok || got < from || got > to {
		s.t.Errorf("%q recorded at %v (%v), want %v to %v", line, got, ok, from, to)
	}
}

// onStage runs a test with virtual time.
func onStage(t *testing.T, p *dag.Plan, f func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newStage(t, p)) })
}

func TestRunInOrder(t *testing.T) {
	onStage(t, &dag.Plan{Nodes: []dag.Node{
		{ID: "a", Writes: []string{"a.txt"}},
		{ID: "b", Needs: []string{"a"}},
	}}, func(s *stage) {
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Fatalf("the run is %s", v.Status)
		}
		s.want("start a.1", "completed a.1", "start b.1", "completed b.1", "ended")
		if got, err := os.ReadFile(filepath.Join(s.dir, "a.txt")); string(got) != "a\n" || err != nil {
			t.Errorf("artifact %q, %v", got, err)
		}
	})
}

// At most Jobs attempts are under way at once, and as many as may be.
func TestJobs(t *testing.T) {
	p := &dag.Plan{}
	for i := range 20 {
		p.Nodes = append(p.Nodes, dag.Node{ID: fmt.Sprintf("n%d", i), With: script("sleep:1m")})
	}
	onStage(t, p, func(s *stage) {
		s.opts.Jobs = 5
		s.carryOn()
		if s.play.most != 5 {
			t.Errorf("%d attempts at once, want 5", s.play.most)
		}
		if took := time.Since(s.began); took != 4*time.Minute {
			t.Errorf("took %v, want 4m", took)
		}
	})
}

// A failed attempt is tried again after its delay, from the third on with a longer time limit
// a timer that a killed process had set is kept by the next one.
func TestRetryTimersAreDurable(t *testing.T) {
	retry := dag.Retry{Attempts: 3, Base: dag.Duration(10 * time.Minute), Factor: 1}
	onStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", With: script("fail:transient", "ok"), Retry: retry}}}, func(s *stage) {
		s.carryOn()
		s.want("start a.1", "failed a.1 transient", "start a.2", "completed a.2", "ended")
		s.wantAt("start a.2", 10*time.Minute, 10*time.Minute+time.Second)
	})
	onStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", With: script("fail:transient", "ok"), Retry: retry}}}, func(s *stage) {
		interrupt := make(chan time.Time, 2)
		s.opts.Interrupt = interrupt
		time.AfterFunc(4*time.Minute, func() { interrupt <- time.Now() })
		if v := s.carryOn(); v.Status != machine.RunPause {
			t.Fatalf("the run is %s", v.Status)
		}
		time.Sleep(3 * time.Minute) // seven minutes of ten have passed
		s.opts.Interrupt = nil
		s.carryOn()
		s.wantAt("start a.2", 10*time.Minute, 10*time.Minute+time.Second)
	})
}

// A wait until an absolute instant uses no attempt.
func TestWaitUntil(t *testing.T) {
	onStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", With: script("wait:5h", "ok")}}}, func(s *stage) {
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Fatalf("the run is %s: %+v", v.Status, v.Pause)
		}
		s.wantAt("start a.2", 5*time.Hour, 5*time.Hour+15*time.Minute)
	})
}

// An attempt that takes too long is stopped and fails as stalled; from the third on the limit
// is longer.
func TestTimeLimits(t *testing.T) {
	onStage(t, &dag.Plan{Nodes: []dag.Node{{
		ID: "a", With: script("stuck"), Retry: dag.Retry{Attempts: 3, Delays: []dag.Duration{dag.Duration(time.Minute)}},
		Timeout: dag.Timeout{Attempt: dag.Duration(10 * time.Minute), Growth: 1.5},
	}}}, func(s *stage) {
		if v := s.carryOn(); v.Pause.Reason != "node-failed" {
			t.Fatalf("%+v", v)
		}
		s.want("start a.1", "failed a.1 stalled", "start a.2", "failed a.2 stalled", "start a.3", "failed a.3 stalled", "paused node-failed")
		s.wantAt("failed a.1 stalled", 10*time.Minute, 10*time.Minute+time.Second)
		s.wantAt("failed a.2 stalled", 21*time.Minute, 21*time.Minute+time.Second)
		s.wantAt("failed a.3 stalled", 37*time.Minute, 37*time.Minute+2*time.Second)
	})
}

func TestSilence(t *testing.T) {
	onStage(t, &dag.Plan{Nodes: []dag.Node{{
		ID: "a", With: script("silent"), Timeout: dag.Timeout{Silence: dag.Duration(time.Minute), Grace: dag.Duration(5 * time.Second)},
	}}}, func(s *stage) {
		s.carryOn()
		s.wantAt("failed a.1 stalled", time.Minute, time.Minute+6*time.Second)
	})
}

// A kind that panics, or ends the goroutine that it was called in, fails its attempt, not the run.
func TestPanic(t *testing.T) {
	for _, how := range []string{"panic", "goexit"} {
		onStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", With: script(how), OnFail: "continue"}, {ID: "b", Needs: []string{"a"}}}}, func(s *stage) {
			if v := s.carryOn(); v.Status != machine.RunDone {
				t.Fatalf("%s: the run is %s", how, v.Status)
			}
		})
	}
}

// The end of an attempt is recorded, and the next one begun, in the goroutine that had it: no thread is woken for it.
func TestAttemptsTakeTurns(t *testing.T) {
	plan := &dag.Plan{Nodes: []dag.Node{{ID: "n0", With: script("sleep:1s")}}}
	for i := range 9 {
		plan.Nodes = append(plan.Nodes, dag.Node{ID: fmt.Sprintf("n%d", i+1), Needs: []string{fmt.Sprintf("n%d", i)}, With: script("sleep:1s")})
	}
	onStage(t, plan, func(s *stage) {
		turns := 0
		s.seen = func(*machine.Event) {
			if strings.Contains(string(debug.Stack()), ".takeTurn(") {
				turns++
			}
		}
		if v := s.carryOn(); v.Status != machine.RunDone || turns < 19 {
			t.Fatalf("the run is %s; %d of 10 starts and 10 ends were recorded by attempts, want all but the first", v.Status, turns)
		}
	})
}

// The end of an attempt is taken in, and its worker begins the next one, before all is done that needs no worker.
func TestAttemptEndsAmongControlNodes(t *testing.T) {
	plan := &dag.Plan{Nodes: []dag.Node{{ID: "first", With: script("sleep:1s")}, {ID: "next", Priority: 1, Needs: []string{"first"}}}}
	for i := range 600 {
		plan.Nodes = append(plan.Nodes, dag.Node{ID: fmt.Sprintf("all%d", i), Kind: "join"})
	}
	onStage(t, plan, func(s *stage) {
		s.opts.Jobs = 1
		joined, before := 0, -1
		s.seen = func(e *machine.Event) {
			time.Sleep(10 * time.Millisecond) // as if it took the host so long
			switch b := e.Body.(type) {
			case *machine.FinishedBody:
				joined++
			case *machine.StartedBody:
				if b.Node == "next" {
					before = joined
				}
			}
		}
		if v := s.carryOn(); v.Status != machine.RunDone || before < 0 || before > 300 {
			t.Fatalf("the run is %s; %d nodes ended before the one that waited for the worker, want few of 601", v.Status, before)
		}
	})
}

// An interrupt is heard before all is done that needs no worker.
func TestInterruptAmongControlNodes(t *testing.T) {
	plan := &dag.Plan{}
	for i := range 2000 {
		plan.Nodes = append(plan.Nodes, dag.Node{ID: fmt.Sprintf("all%d", i), Kind: "join"})
	}
	onStage(t, plan, func(s *stage) {
		interrupt := make(chan time.Time, 1)
		s.opts.Interrupt = interrupt
		time.AfterFunc(time.Second, func() { interrupt <- time.Now() })
		ended := 0
		s.seen = func(e *machine.Event) {
			time.Sleep(10 * time.Millisecond) // as if it took the host so long
			if e.Type == machine.Finished {
				ended++
			}
		}
		if v := s.carryOn(); v.Status != machine.RunPause || ended == 2000 {
			t.Fatalf("the run is %s; %d of 2000 nodes have ended", v.Status, ended)
		}
	})
}

// The first interrupt lets what runs end and pauses; the second one soon after ends it at once,
// and the lost attempt runs again.
func TestInterrupts(t *testing.T) {
	plan := func() *dag.Plan {
		return &dag.Plan{Nodes: []dag.Node{{ID: "a", With: script("sleep:1h")}, {ID: "b", Needs: []string{"a"}}}}
	}
	onStage(t, plan(), func(s *stage) {
		interrupt := make(chan time.Time, 2)
		s.opts.Interrupt = interrupt
		time.AfterFunc(time.Minute, func() { interrupt <- time.Now() })
		time.AfterFunc(time.Minute+5001*time.Millisecond, func() { interrupt <- time.Now() }) // too late to be a second one
		if v := s.carryOn(); v.Status != machine.RunPause || v.Pause.Reason != "user" {
			t.Fatalf("%+v", v)
		}
		s.want("start a.1", "paused user", "completed a.1")
		s.opts.Interrupt = nil
		s.carryOn()
		s.want("start a.1", "paused user", "completed a.1", "start b.1", "completed b.1", "ended")
	})
	onStage(t, plan(), func(s *stage) { // one that comes too late is a first one again
		interrupt := make(chan time.Time, 3)
		s.opts.Interrupt = interrupt
		for _, at := range []time.Duration{0, 5001 * time.Millisecond, 10 * time.Second} {
			time.AfterFunc(time.Minute+at, func() { interrupt <- time.Now() })
		}
		r := s.open()
		if err := s.run(r); !errors.Is(err, ErrHard) || time.Since(s.began) != time.Minute+10*time.Second {
			t.Fatalf("%v after %v", err, time.Since(s.began))
		}
		r.Abandon()
		if s.play.now != 0 {
			t.Errorf("%d attempts are left", s.play.now)
		}
		s.opts.Interrupt = nil
		s.carryOn()
		s.want("start a.1", "paused user", "lost a.1 lost", "start a.2", "completed a.2", "start b.1", "completed b.1", "ended")
	})
	onStage(t, plan(), func(s *stage) {
		interrupt := make(chan time.Time, 2)
		s.opts.Interrupt = interrupt
		time.AfterFunc(time.Minute, func() { interrupt <- time.Now() })
		time.AfterFunc(time.Minute+8*time.Second, func() { interrupt <- time.Now().Add(-3 * time.Second) }) // the host was busy
		r := s.open()
		if err := s.run(r); !errors.Is(err, ErrHard) {
			t.Fatal(err)
		}
		r.Abandon()
		if s.play.now != 0 {
			t.Errorf("%d attempts are left", s.play.now)
		}
		s.opts.Interrupt = nil
		s.carryOn()
		s.want("start a.1", "paused user", "lost a.1 lost", "start a.2", "completed a.2", "start b.1", "completed b.1", "ended")
	})
	onStage(t, plan(), func(s *stage) {
		interrupt := make(chan time.Time, 2)
		s.opts.Interrupt, s.opts.StopGrace = interrupt, 30*time.Second
		time.AfterFunc(time.Minute, func() { interrupt <- time.Now() })
		s.carryOn()
		s.want("start a.1", "paused user", "cancelled a.1")
		s.wantAt("cancelled a.1", 90*time.Second, 91*time.Second)
	})
}

// What counts against a breaker and what does not (case d-libs/16), and that it opens, holds the
// starts back and lets one probe through (L-2, R-4).
func TestBreakerOfARun(t *testing.T) {
	plan := func(steps ...string) *dag.Plan {
		p := &dag.Plan{Breakers: []dag.Breaker{{Name: "api", Failures: 6, OpenFor: dag.Duration(time.Minute), Probes: 1, WhenOpen: "wait"}}}
		for i, step := range steps {
			n := dag.Node{ID: fmt.Sprintf("n%02d", i), Breaker: "api", OnFail: "continue", With: script(step)}
			if i > 0 {
				n.Needs = []string{fmt.Sprintf("n%02d", i-1)}
			}
			p.Nodes = append(p.Nodes, n)
		}
		return p
	}
	repeat := func(n int, steps ...string) (out []string) {
		for range n {
			out = append(out, steps...)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		steps []string
		open  bool
	}{
		{"refusals and bad answers do not count", repeat(5, "fail:refused", "fail:config", "fail:unknown"), false},
		{"six in a row do", repeat(6, "fail:transient"), true},
		{"stalled counts", repeat(6, "fail:stalled"), true},
		{"five, one well, five do not", append(append(repeat(5, "fail:transient"), "ok"), repeat(5, "fail:transient")...), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			onStage(t, plan(c.steps...), func(s *stage) {
				s.carryOn()
				if _, opened := s.at["breaker open"]; opened != c.open {
					t.Errorf("opened: %v, want %v\n%s", opened, c.open, strings.Join(s.log, "\n"))
				}
			})
		})
	}
}

// Three nodes want to start when the open time has passed; the first is the probe and takes forty
// minutes. The others wait, use up no attempt, and run when it has ended well (case d-libs/17).
func TestHalfOpenLetsOneThrough(t *testing.T) {
	breaker := dag.Breaker{Name: "api", Failures: 1, OpenFor: dag.Duration(time.Minute), Probes: 1, WhenOpen: "wait"}
	onStage(t, &dag.Plan{Breakers: []dag.Breaker{breaker}, Nodes: []dag.Node{
		{ID: "ill", Breaker: "api", OnFail: "continue", With: script("fail:transient")},
		{ID: "p", Needs: []string{"ill"}, Breaker: "api", Priority: 1, With: script("sleep:40m")},
		{ID: "q", Needs: []string{"ill"}, Breaker: "api"},
		{ID: "r", Needs: []string{"ill"}, Breaker: "api"},
	}}, func(s *stage) {
		s.opts.Jobs = 5
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Fatalf("%+v", v)
		}
		s.wantAt("start p.1", time.Minute, time.Minute+time.Second)
		s.wantAt("start q.1", 41*time.Minute, 41*time.Minute+time.Second)
		s.wantAt("start r.1", 41*time.Minute, 41*time.Minute+time.Second)
	})
	// The breaker is open when the process ends; the next one waits for the rest of the time.
	onStage(t, &dag.Plan{Breakers: []dag.Breaker{breaker}, Nodes: []dag.Node{
		{ID: "ill", Breaker: "api", OnFail: "continue", With: script("fail:transient")},
		{ID: "p", Needs: []string{"ill"}, Breaker: "api"},
	}}, func(s *stage) {
		interrupt := make(chan time.Time, 2)
		s.opts.Interrupt = interrupt
		time.AfterFunc(20*time.Second, func() { interrupt <- time.Now() })
		s.carryOn()
		time.Sleep(20 * time.Second)
		s.opts.Interrupt = nil
		s.carryOn()
		s.wantAt("start p.1", time.Minute, time.Minute+time.Second)
	})
}

// An approval is asked once, waits for its deadline or for an answer, and its answer is a value.
func TestApproval(t *testing.T) {
	plan := func(with string) *dag.Plan {
		return &dag.Plan{Nodes: []dag.Node{
			{ID: "ask", Kind: "approval", With: json.RawMessage(with), Outputs: map[string]string{"answer": "string", "by": "string"}},
			{ID: "b", Needs: []string{"ask"}, When: "nodes['ask'].out.answer == 'approve'"},
		}}
	}
	onStage(t, plan(`{"message":"go?","options":["approve","reject"],"default":"approve","after":"1h"}`), func(s *stage) {
		s.carryOn()
		s.want("asked ask", "answered approve by deadline", "completed ask.0", "start b.1", "completed b.1", "ended")
	})
	// One that refuses, here by the deadline, fails the node: nothing behind it runs, and resuming asks again.
	onStage(t, plan(`{"message":"go?","options":["approve","reject"],"default":"reject","after":"1h"}`), func(s *stage) {
		for range 2 {
			if v := s.carryOn(); v.Status != machine.RunPause || v.Pause.Reason != machine.PauseNodeFailed {
				t.Fatalf("%+v", v)
			}
		}
		s.want("asked ask", "answered reject by deadline", "failed ask.0 refused_by_user", "paused node-failed",
			"asked ask", "answered reject by deadline", "failed ask.0 refused_by_user", "paused node-failed")
	})
	onStage(t, plan(`{"message":"go?","options":["approve","reject"],"refuses":[]}`), func(s *stage) {
		if v := s.carryOn(); v.Status != machine.RunPause || v.Pause.Reason != "escalation" {
			t.Fatalf("%+v", v)
		}
		r, _, err := run.Open(s.options())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Answer(r.State(), machine.EscalationAnsweredBody{Answer: "maybe"}); err == nil {
			t.Error("an answer that is no option was taken")
		}
		body, err := Answer(r.State(), machine.EscalationAnsweredBody{Answer: "reject"})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.RecordDurable(time.Now(), body); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Fatalf("%+v", v)
		}
		asked := 0
		for _, line := range s.log {
			if line == "asked ask" {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// waits are plans in which the node a waits, in every way in which a node can; clean runs whatever
// becomes of it.
func waits() map[string]*dag.Plan {
	api := dag.Breaker{Name: "api", Failures: 1, OpenFor: dag.Duration(5 * time.Hour), Probes: 1, WhenOpen: "wait"}
	plans := map[string]*dag.Plan{
		"running": {Nodes: []dag.Node{{ID: "a", With: script("stuck")}}},
		"backoff": {Nodes: []dag.Node{{ID: "a", With: script("fail:transient"), Retry: dag.Retry{Attempts: 2, Base: dag.Duration(time.Hour), Factor: 1}}}},
		"quota":   {Nodes: []dag.Node{{ID: "a", With: script("wait:5h")}}},
		"asking":  {Nodes: []dag.Node{{ID: "a", Kind: "approval", With: json.RawMessage(`{"message":"?","options":["x"],"default":"x","after":"5h"}`), Outputs: map[string]string{"answer": "string", "by": "string"}}}},
		"breaker": {Breakers: []dag.Breaker{api}, Nodes: []dag.Node{
			{ID: "a", Breaker: "api", Needs: []string{"ill"}}, {ID: "ill", Breaker: "api", With: script("fail:transient"), OnFail: "continue"},
		}},
		"pool": {Pools: []dag.Pool{{Name: "one", Size: 1}}, Nodes: []dag.Node{
			{ID: "a", Pool: "one"}, {ID: "holder", Pool: "one", Priority: 1, With: script("stuck")},
		}},
	}
	for _, p := range plans {
		p.Nodes = append(p.Nodes, dag.Node{ID: "clean", Needs: []string{"a"}, Always: true})
	}
	return plans
}

// An interrupt pauses the run in every waiting state, at once or when the grace of what runs has
// passed.
func TestInterruptOfAWait(t *testing.T) {
	for name, p := range waits() {
		t.Run(name, func(t *testing.T) {
			onStage(t, p, func(s *stage) {
				interrupt := make(chan time.Time, 1)
				s.opts.Interrupt, s.opts.StopGrace = interrupt, time.Second
				time.AfterFunc(time.Minute, func() { interrupt <- time.Now() })
				if v := s.carryOn(); v.Status != machine.RunPause || v.Pause.Reason != "user" {
					t.Fatalf("%+v", v)
				}
				if took := time.Since(s.began); took > time.Minute+2*time.Second {
					t.Errorf("took %v", took)
				}
				if _, ok := s.at["completed clean.1"]; ok {
					t.Error("a pause ran the clean-up")
				}
			})
		})
	}
}

// A cancel ends the run in every waiting state: while an attempt runs, backs off, waits for a quota,
// a breaker, a pool, or a question is open. Clean-up nodes run.
func TestCancel(t *testing.T) {
	for name, p := range waits() {
		t.Run(name, func(t *testing.T) {
			onStage(t, p, func(s *stage) {
				requests := make(chan Request)
				s.opts.Requests = requests
				reply := make(chan error, 1)
				time.AfterFunc(time.Minute, func() { requests <- Request{Cancel: true, Reason: "enough", Reply: reply} })
				if v := s.carryOn(); v.Status != machine.RunBroken {
					t.Fatalf("%+v", v)
				}
				if err := <-reply; err != nil {
					t.Error(err)
				}
				if took := time.Since(s.began); took > 2*time.Minute {
					t.Errorf("took %v", took)
				}
				if _, ok := s.at["completed a.1"]; ok {
					t.Errorf("a has run:\n%s", strings.Join(s.log, "\n"))
				}
				if _, ok := s.at["completed clean.1"]; !ok {
					t.Errorf("no clean-up:\n%s", strings.Join(s.log, "\n"))
				}
			})
		})
	}
}
