package specs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// S-5, S-7, S-10, S-12, B-3: a run that makes every type of event is killed at every event that an undisturbed one
// has, right after it was written, and another one right before; after each kill it goes on. No answer that was
// recorded is asked for again, and all end with the bytes of the undisturbed run.
func TestFaults(t *testing.T) {
	t.Parallel()
	want := newSite(t)
	want.live(story(filepath.Join(everyEvent, "spec.yaml")))
	events := want.events()
	made := map[string]bool{}
	for _, e := range events {
		made[e.Type] = true
	}
	for _, typ := range machine.Types() {
		if made[string(typ)] == (notMade[typ] != "") {
			t.Errorf("the undisturbed run makes %s: %v; notMade says %q", typ, made[string(typ)], notMade[typ])
		}
	}
	events = slices.DeleteFunc(events, func(e record) bool {
		// That a breaker has closed is not written with the success that closed it: the next one says so again.
		return alone[e.Type] || e.Type == "BREAKER_CHANGED" && e.Payload.State == "closed"
	})
	matrix{want: want, points: points(events), spec: countingEveryEvent, next: story}.walk(t)
}

// alone are the events of commands that write one and end: nothing else can be lost with them.
var alone = map[string]bool{"ESCALATION_ANSWERED": true, "REVERTED": true}

// everyEvent is the folder of a small pipeline with one of each thing that a crash could spoil.
const everyEvent = "testdata/every-event"

// notMade are the types of event that the story of everyEvent does not make, each with the reason.
var notMade = map[machine.Type]string{
	machine.PlanSubmitted:  "it takes a second process beside one at work: TestKilledWhileTakingAnotherPlan in internal/cli",
	machine.TookEffect:     "a node that must not be repeated asks a user when it is killed: work-23 in internal/cli",
	machine.RunInterrupted: "a process that takes over from a killed one records it: walk kills it there",
	machine.RunSuspended:   "it takes a machine that sleeps: TestScripts/work-20 in internal/cli",
	machine.Published:      "a file beside the specification is tried step by step: TestPublishingIsKilledAtEveryStep in dag/run",
	machine.Notified:       "it is told beside the run, whenever that arrives: TestScripts/notify in internal/cli",
}

// story is what is done with a run of everyEvent, by what its log holds: a last command that fails, a cancel at the
// question, the answer, a raised cap with a part of the nodes and one of them again, the rest, the mended specification, a revert, and the answer to the question asked anew.
func story(spec string) func(events []record) []string {
	return func(events []record) []string {
		n := map[string]int{}
		failed := false
		for _, e := range events {
			n[e.Type]++
			failed = e.Type == "RUN_FAILED" || failed && e.Type != "RUN_RESUMED"
			if e.Type == "WORK_ITEM_FINISHED" && e.Payload.Node == "last" {
				n["last "+e.Payload.Status]++
			}
		}
		if len(events) <= 2 { // a run that was killed as it began knows no more of its specification than the log
			return []string{"apply", spec, "--seed", "7", "--quiet", "--jobs", "1", "--set", "broken=true"}
		}
		goOn := []string{"resume", "--quiet", "--jobs", "1"}
		if failed {
			goOn = append(goOn, "--again")
		}
		asks := n["ESCALATION_OPENED"] > n["ESCALATION_ANSWERED"]
		last := events[len(events)-1].Type
		switch {
		case asks && last == "RUN_PAUSED" && n["RUN_FAILED"] == 0:
			return []string{"cancel"}
		case asks && (last == "RUN_PAUSED" || last == "RUN_FAILED"):
			return []string{"respond", fmt.Sprintf("approval/ask/%d", n["ESCALATION_OPENED"]), "approve"}
		case n["RUN_FAILED"] > 0 && n["LIMITS_CHANGED"] == 0:
			return append(goOn, "--cap-usd", "200", "--until", "ask", "--rerun", "look")
		case last == "RUN_PAUSED" && events[len(events)-1].Payload.Reason == "selection":
			return append(goOn, "--all")
		case last == "RUN_PAUSED" && n["last failed"] > 0 && n["PLAN_ADOPTED"] == 0:
			return []string{"apply", spec, "--quiet", "--jobs", "1"}
		case last != "RUN_COMPLETED":
			return goOn
		case n["REVERTED"] == 0:
			return []string{"revert", "cp-save"}
		}
		return nil
	}
}

// countingEveryEvent is a copy of everyEvent whose calls leave a line in a file.
func countingEveryEvent(t *testing.T, calls string) string {
	return editIn(t, everyEvent, "spec.yaml", func(spec string) string {
		return strings.Replace(spec, "wrapper: &wrapper [env]", "wrapper: &wrapper ["+countCalls(calls)+"]", 1)
	})
}

// The same at every event of the corpus part, each in a run of its own: make faults.
func TestFaultsOfTheCorpus(t *testing.T) {
	large(t)
	want := corpusRun(t)
	matrix{want: want, points: points(want.events()), next: straight, spec: func(t *testing.T, calls string) string {
		return editYAML(t, counting(calls))
	}}.walk(t)
}

// And of the hardening, short and without a browser (P-12).
func TestFaultsOfTheHardening(t *testing.T) {
	large(t)
	short := func(spec string) string { return auditorBlock.ReplaceAllString(withoutBrowser(spec), "") }
	want := newSite(t)
	want.must("apply", edit(t, short), "--seed", "7", "--quiet", "--jobs", "1")
	all := points(want.events())
	all = slices.DeleteFunc(all, func(p point) bool { return !strings.HasPrefix(p.node, "hardening/") })
	if len(all) < 60 {
		t.Fatalf("the hardening has only %d events", len(all))
	}
	matrix{want: want, points: all, next: straight, spec: func(t *testing.T, calls string) string {
		return edit(t, func(spec string) string { return counting(calls)(short(spec)) })
	}}.walk(t)
}

// large skips a matrix that takes hours of processor time.
func large(t *testing.T) {
	if os.Getenv("DAGRUN_FAULTS") == "" {
		t.Skip("make faults kills a run of the large pipeline at every event; TestFaults, a small one")
	}
}

// straight applies a specification and resumes until it has ended.
func straight(spec string) func(events []record) []string {
	return func(events []record) []string {
		switch {
		case len(events) <= 2:
			return []string{"apply", spec, "--seed", "7", "--quiet", "--jobs", "1"} // one by one: a kill costs one attempt
		case events[len(events)-1].Type == "RUN_COMPLETED":
			return nil
		}
		return []string{"resume", "--quiet", "--jobs", "1"}
	}
}

// A matrix is what is killed where.
type matrix struct {
	want   *site // undisturbed
	points []point
	spec   func(t *testing.T, calls string) string // of a run whose calls are written to a file
	next   func(spec string) func(events []record) []string
	before bool // with DAGRUN_FAULTS: also before each of them
}

// walk kills one run at each point in turn. With DAGRUN_FAULTS=all each point has a run of its own,
// with DAGRUN_FAULTS=1/4 every fourth: the event of that number, since work that is sent back has many of a name twice.
func (m matrix) walk(t *testing.T) {
	for _, when := range []string{"", "before "} {
		name := strings.TrimSpace("kill " + when)
		if os.Getenv("DAGRUN_FAULTS") != "" {
			if when == "" || m.before {
				t.Run(name, func(t *testing.T) { m.each(t, when) })
			}
			continue
		}
		for k, list := range rounds(m.points, when != "") {
			t.Run(fmt.Sprintf("%s %d", name, k+1), func(t *testing.T) {
				t.Parallel()
				v := m.victim(t)
				taken := false
				for _, p := range list {
					v.killAt(when, p)
					if lossy := p.lossy && when == "" || p.lossyBefore && when != ""; lossy && !taken {
						taken = true // and the process that takes over is killed as it says so
						v.killAt(when, point{typ: "RUN_INTERRUPTED"})
					}
				}
				v.end(m.want)
			})
		}
	}
}

// each kills a run of its own at every point, or at each n-th of them.
func (m matrix) each(t *testing.T, when string) {
	shard, of := 0, 1
	if s := os.Getenv("DAGRUN_FAULTS"); s != "all" {
		if _, err := fmt.Sscanf(s, "%d/%d", &shard, &of); err != nil {
			t.Fatalf("DAGRUN_FAULTS=%s: want all, or a part such as 1/4", s)
		}
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2*runtime.NumCPU()) // they wait for the disk as often as not
	for i, p := range m.points {
		if i%of != shard%of {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			t.Run(p.String(), func(t *testing.T) {
				v := m.victim(t)
				if slices.ContainsFunc(m.points[:i], func(q point) bool { return q.String() == p.String() }) {
					p = point{typ: strconv.Itoa(p.seq)}
				}
				v.killAt(when, p)
				v.end(m.want)
				os.RemoveAll(filepath.Dir(v.out))
			})
		})
	}
	wg.Wait()
}

// A point is an event by what it says, which a disturbed run has at another number.
type point struct {
	typ, node, name string
	lossy           bool // killed after it, the attempt under way is lost
	lossyBefore     bool // killed before it
	seq             int  // its number in the undisturbed run
}

func (p point) String() string { return strings.Join(strings.Fields(p.typ+" "+p.node+" "+p.name), " ") }

// points are the events of a run. An attempt under way is lost with its process unless a paid answer was
// kept: from LLM_CALL_FINISHED on it counts.
func points(events []record) []point {
	var list []point
	open := map[string]bool{} // attempts that would be lost, by node
	for i, e := range events {
		b := e.Payload
		p := point{typ: e.Type, node: b.Node, lossyBefore: open[b.Node], seq: i + 1}
		switch e.Type {
		case "WORK_ITEM_STARTED":
			open[b.Node] = true
		case "WORK_ITEM_FINISHED":
			p.name = b.Status
			delete(open, b.Node)
		case "LLM_CALL_FINISHED":
			p.lossyBefore = false // the answer is kept before it is recorded
			delete(open, b.Node)
		case "ARTIFACT_WRITTEN":
			p.name = b.Name
		case "GATE_RUN_STARTED", "GATE_RUN_FINISHED":
			p.name = b.Gate
		case "CHECKPOINT_CREATED":
			p.name = b.ID
		case "RUN_STATE_CHANGED":
			p.node, p.name = b.Section, b.New
		case "ISSUE_OPENED", "ISSUE_RESOLVED":
			p.name = b.IssueID
		case "RUN_PAUSED":
			p.node = "" // it is about the run
		}
		p.lossy = open[b.Node]
		list = append(list, p)
	}
	return list
}

// rounds spreads points over runs: a node that loses three attempts is stopped as one that kills its host,
// so at most two of its attempts are lost in each.
func rounds(all []point, before bool) (runs [][]point) {
	seen := map[string]int{}
	for _, p := range all {
		run := 0
		if p.lossy && !before || p.lossyBefore && before {
			run = seen[p.node] / 2
			seen[p.node]++
		}
		for len(runs) <= run {
			runs = append(runs, nil)
		}
		runs[run] = append(runs[run], p)
	}
	return runs
}

// A victim is a run that is killed again and again.
type victim struct {
	*site
	next     func(events []record) []string
	calls    string          // file with a line for each call of the agent
	answered map[string]bool // "node generation" of calls whose end is recorded, and nodes that are completed
	written  map[string]bool // points that the last process has passed
	read     int             // events looked at
	called   int             // calls looked at
}

func (m matrix) victim(t *testing.T) *victim {
	s := newSite(t)
	calls := filepath.Join(filepath.Dir(s.out), "calls")
	return &victim{site: s, calls: calls, next: m.next(m.spec(t, calls)), answered: map[string]bool{}}
}

// killAt goes on with the run until it kills itself at a point. Some events are written with the one before, by one
// call of the operating system: no process dies between them.
func (v *victim) killAt(when string, p point) {
	v.t.Helper()
	if v.written[p.String()] && together[p.typ] {
		return
	}
	if !v.site.live(v.next, fmt.Sprintf("DAGRUN_CRASH_AT=%s%s", when, p), "TMPDIR="+v.temp()) {
		v.t.Fatalf("the run ended and was to be killed %sat %s: its last events are %v", when, p, points(v.events()[v.read:]))
	}
	// e-work/27: whatever the next start has to renew, the record is not damaged.
	if out, err := v.site.dagrun(nil, "verify"); err != nil && len(v.site.eventsSoFar()) > 0 {
		v.t.Errorf("killed %sat %s, verify: %v\n%s", when, p, err, out)
	}
	v.look(p.String())
}

// together are the events that may be written with another one.
var together = map[string]bool{"INPUTS_CLONED": true, "ARTIFACT_WRITTEN": true, "RUN_STATE_CHANGED": true, "ISSUE_OPENED": true,
	"ISSUE_RESOLVED": true, "PR_OPENED": true, "WORK_ITEM_FINISHED": true}

// live does with a run what next says until there is nothing more to do. It reports whether a command killed itself;
// commands that end with a pause or a failure are part of the story.
func (s *site) live(next func(events []record) []string, env ...string) (killed bool) {
	s.t.Helper()
	said := ""
	for range 20 {
		args := next(s.eventsSoFar())
		if args == nil {
			return false
		}
		out, err := s.dagrun(env, args...)
		said = tail(out)
		var e *exec.ExitError
		switch {
		case err == nil:
		case !errors.As(err, &e):
			s.t.Fatal(err)
		case e.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
			return true
		case e.ExitCode() != 1 && e.ExitCode() != 3:
			s.t.Fatalf("dagrun %s: %v\n%s", strings.Join(args, " "), err, said)
		}
	}
	s.t.Fatalf("the run does not get on; its log is %v\n%s", points(s.eventsSoFar()), said)
	return false
}

// eventsSoFar are the events of a run that may be writing another one; none before there is a log.
func (s *site) eventsSoFar() []record {
	s.t.Helper()
	if _, err := os.Stat(filepath.Join(s.out, "_orchestrator/events.ndjson")); err != nil {
		return nil
	}
	log := s.read("_orchestrator/events.ndjson")
	return s.parsed(log[:strings.LastIndexByte(log, '\n')+1])
}

// ofNodes are the folders of nodes and their files below a run's own folder; accumulators have their files there too.
var ofNodes = map[string]bool{"nodes": true, "passes": true, "cycles": true, "screenshots": true}

// look finds the calls made since the last time that nobody needed any more.
func (v *victim) look(at string) {
	v.t.Helper()
	data, _ := os.ReadFile(v.calls) // there is none before the first call
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	events := v.eventsSoFar()
	for _, e := range events[v.read:] {
		if e.Type == "WORK_ITEM_FINISHED" && e.Payload.Status == "failed" { // an answer that was not accepted is asked for again
			delete(v.answered, e.id())
		}
	}
	for _, call := range lines[min(v.called, len(lines)):] {
		if v.answered[call] {
			v.t.Errorf("%s: asked again for an answer that was there: %s", at, call)
		}
	}
	if v.called = len(lines); len(data) == 0 {
		v.called = 0
	}
	// What a run makes in its own folder is a name that no node may take (e-work/13).
	own, _ := os.ReadDir(filepath.Join(v.out, "_orchestrator"))
	for _, e := range own {
		if !ofNodes[e.Name()] && !strings.HasSuffix(e.Name(), ".md") && !dag.Own(e.Name()) {
			v.t.Errorf("%s: a run makes %s in its own folder, and a node may take that name", at, e.Name())
		}
	}
	v.written = map[string]bool{}
	for _, p := range points(events[v.read:]) {
		v.written[p.String()] = true
	}
	for _, e := range events[v.read:] {
		id := e.id()
		switch {
		case e.Type == "WORK_ITEM_FINISHED" && e.Payload.Status == "failed":
			delete(v.answered, id)
		case e.Type == "WORK_ITEM_STARTED" && v.answered[id]:
			v.t.Errorf("%s: %s is completed and was started again", at, id)
		case e.Type == "LLM_CALL_FINISHED", e.Type == "WORK_ITEM_FINISHED" && e.Payload.Status == "completed":
			v.answered[id] = true
		}
	}
	v.read = len(events)
}

// id is a node in its generation.
func (e record) id() string { return fmt.Sprint(e.Payload.Node, " ", max(1, e.Payload.Generation)) }

// end lets the run end and compares it with the undisturbed one.
func (v *victim) end(want *site) {
	v.t.Helper()
	v.live(v.next)
	v.look("end")
	v.intact(want)
	v.must("verify")
	if v.called == 0 {
		v.t.Error("no call was counted")
	}
	same, got := want.answers(), v.answers()
	for name, text := range same {
		if got[name] != text {
			v.t.Errorf("%s is not what the undisturbed run was asked and answered", name)
		}
	}
}

// answers are the prompts and answers that counted.
func (s *site) answers() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	root := filepath.Join(s.out, "_orchestrator")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "prompt.md" && d.Name() != "raw-output.txt" {
			return err
		}
		b, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, root)] = string(b)
		return err
	})
	if err != nil || len(found) == 0 {
		s.t.Fatalf("%d answers, %v", len(found), err)
	}
	return found
}

// counting has every call of the agent leave a line in a file: the node and its generation. The agent is told
// both. The cap is lifted: a lost attempt counts with its whole reservation.
func counting(calls string) func(string) string {
	return func(spec string) string {
		line := "wrapper: [" + countCalls(calls) + "]"
		for _, provider := range []string{`&provider "${params.agent.provider}"`, `*provider`, `"${params.agent.provider}"`} {
			spec = strings.ReplaceAll(spec, "provider: "+provider+"\n", "provider: "+provider+"\n\x00"+line+"\n")
		}
		return indented(caps.ReplaceAllString(spec, "${1}2000"))
	}
}

var caps = regexp.MustCompile(`(capUSD: )[0-9]+`)

// countCalls writes the wrapper of counting, and returns its path in quotes.
func countCalls(calls string) string {
	script := calls + ".sh"
	text := "#!/bin/sh\n" +
		`sed -n 's/.*"Node":"\([^"]*\)","Generation":\([0-9]*\).*/\1 \2/p' "$DAGRUN_SIM" >> '` + calls + "'\n" +
		`exec "$@"` + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		panic(err)
	}
	return strconv.Quote(script)
}

// indented gives lines that begin with a zero byte the indentation of the line before.
func indented(spec string) string {
	var b strings.Builder
	before := ""
	for line := range strings.Lines(spec) {
		if rest, ok := strings.CutPrefix(line, "\x00"); ok {
			line = before[:len(before)-len(strings.TrimLeft(before, " \t"))] + rest
		}
		b.WriteString(line)
		before = line
	}
	return b.String()
}

// killed runs a command that kills itself right after an event of the log, or before it. It is false when the
// command ended before.
func (s *site) killed(at any, args ...string) bool {
	s.t.Helper()
	out, err := s.dagrun([]string{fmt.Sprintf("DAGRUN_CRASH_AT=%v", at), "TMPDIR=" + s.temp()}, args...)
	var e *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &e) && e.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return true
	}
	s.t.Fatalf("dagrun %s: %v\n%s", strings.Join(args, " "), err, tail(out))
	return false
}

// intact compares with an undisturbed run: the same bytes, as many nodes sent back, and no node that was completed and
// ran again in the same generation.
func (s *site) intact(want *site) {
	s.t.Helper()
	same(s.t, want, s)
	done := map[string]bool{}
	for _, e := range s.events() {
		switch id := e.id(); e.Type {
		case "WORK_ITEM_STARTED":
			if done[id] {
				s.t.Errorf("%s was completed and started again", id)
			}
		case "WORK_ITEM_FINISHED":
			done[id] = done[id] || e.Payload.Status == "completed"
		}
	}
	for _, typ := range []string{"REWOUND", "REVERTED", "COMPENSATION_FINISHED"} {
		if a, b := count(want.events(), typ), count(s.events(), typ); a != b {
			s.t.Errorf("%d %s, want %d", b, typ, a)
		}
	}
}

func count(events []record, typ string) (n int) {
	for _, e := range events {
		if e.Type == typ {
			n++
		}
	}
	return n
}
