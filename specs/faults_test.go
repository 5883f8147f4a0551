package specs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// S-5, S-7, S-10, B-3: one run of the corpus part is killed at every event that an undisturbed run has, right
// after it was written, and another one right before; after each kill it is resumed. No answer that was recorded
// is asked for again, and both end with the bytes of the undisturbed run.
func TestFaults(t *testing.T) {
	want := corpusRun(t)
	c := matrix{want: want, points: points(want.events()), spec: func(t *testing.T, calls string) string {
		return editYAML(t, counting(calls))
	}}
	c.walk(t)
}

// The same for the hardening, short and without a browser (P-12).
func TestFaultsOfTheHardening(t *testing.T) {
	short := func(spec string) string { return auditorBlock.ReplaceAllString(withoutBrowser(spec), "") }
	want := newSite(t)
	want.must("apply", edit(t, short), "--seed", "7", "--quiet", "--jobs", "1")
	all := points(want.events())
	all = slices.DeleteFunc(all, func(p point) bool { return !strings.HasPrefix(p.node, "hardening/") })
	if len(all) < 60 {
		t.Fatalf("the hardening has only %d events", len(all))
	}
	c := matrix{want: want, points: all, spec: func(t *testing.T, calls string) string {
		return edit(t, func(spec string) string { return counting(calls)(short(spec)) })
	}}
	c.walk(t)
}

// A matrix is what is killed where.
type matrix struct {
	want   *site // undisturbed
	points []point
	spec   func(t *testing.T, calls string) string // of a run whose calls are written to a file
}

// walk kills one run at each point in turn. With DAGRUN_FAULTS=all each point has a run of its own,
// with DAGRUN_FAULTS=1/4 every fourth.
func (m matrix) walk(t *testing.T) {
	for _, when := range []string{"", "before "} {
		name := strings.TrimSpace("kill " + when)
		if os.Getenv("DAGRUN_FAULTS") != "" {
			if when == "" {
				t.Run(name, func(t *testing.T) { m.each(t, when) })
			}
			continue
		}
		for k, list := range rounds(m.points, when != "") {
			if len(list) == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s %d", name, k+1), func(t *testing.T) {
				t.Parallel()
				v := m.victim(t)
				for _, p := range list {
					v.killAt(when, p)
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
}

func (p point) String() string { return strings.TrimRight(p.typ+" "+p.node+" "+p.name, " ") }

// points are the events of a run. An attempt under way is lost with its process unless a paid answer was
// kept: from LLM_CALL_FINISHED on it counts.
func points(events []record) []point {
	var list []point
	open := map[string]bool{} // attempts that would be lost, by node
	for _, e := range events {
		b := e.Payload
		p := point{typ: e.Type, node: b.Node, lossyBefore: open[b.Node]}
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
		}
		p.lossy = open[b.Node]
		list = append(list, p)
	}
	return list
}

// rounds spreads points over two runs: a node that loses three attempts is stopped as one that kills its host,
// so two of its attempts are lost in each. Of a node with more places to lose them, such as one that reports
// every check, the first and the last are taken.
func rounds(all []point, before bool) (runs [2][]point) {
	lossy := func(p point) bool { return p.lossy && !before || p.lossyBefore && before }
	most, seen := map[string]int{}, map[string]int{}
	for _, p := range all {
		if lossy(p) {
			most[p.node]++
		}
	}
	for _, p := range all {
		if !lossy(p) {
			runs[0] = append(runs[0], p)
			continue
		}
		seen[p.node]++
		switch n := seen[p.node]; {
		case n <= 2:
			runs[0] = append(runs[0], p)
		case n > most[p.node]-2:
			runs[1] = append(runs[1], p)
		}
	}
	return runs
}

// A victim is a run that is killed again and again.
type victim struct {
	*site
	spec     string
	calls    string          // file with a line for each call of the agent
	answered map[string]bool // "node generation" of calls whose end is recorded, and nodes that are completed
	written  map[string]bool // points that the last process has passed
	read     int             // events looked at
	called   int             // calls looked at
}

func (m matrix) victim(t *testing.T) *victim {
	s := newSite(t)
	calls := filepath.Join(filepath.Dir(s.out), "calls")
	return &victim{site: s, calls: calls, spec: m.spec(t, calls), answered: map[string]bool{}}
}

// killAt goes on with the run until it kills itself at a point. Some events are written with the one before, by one
// call of the operating system: no process dies between them.
func (v *victim) killAt(when string, p point) {
	v.t.Helper()
	if v.written[p.String()] && (p.typ == "INPUTS_CLONED" || p.typ == "ARTIFACT_WRITTEN") {
		return
	}
	if !v.killed(when+p.String(), v.goOn()...) {
		v.t.Fatalf("the run ended and was to be killed %sat %s", when, p)
	}
	v.look(p.String())
}

// goOn is the command that begins the run or goes on. A run that was killed as it began knows no more of its
// specification than the log: resume refers to apply then.
func (v *victim) goOn() []string {
	if v.read <= 2 {
		return []string{"apply", v.spec, "--seed", "7", "--quiet", "--jobs", "1"} // one by one: a kill costs one attempt
	}
	return []string{"resume", "--quiet", "--jobs", "1"}
}

// look finds the calls made since the last time that nobody needed any more.
func (v *victim) look(at string) {
	v.t.Helper()
	data, _ := os.ReadFile(v.calls) // there is none before the first call
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for _, call := range lines[min(v.called, len(lines)):] {
		if v.answered[call] {
			v.t.Errorf("%s: asked again for an answer that was there: %s", at, call)
		}
	}
	if v.called = len(lines); len(data) == 0 {
		v.called = 0
	}
	if _, err := os.Stat(filepath.Join(v.out, "_orchestrator/events.ndjson")); err != nil {
		return // killed before there was a run
	}
	events := v.events()
	v.written = map[string]bool{}
	for _, p := range points(events[v.read:]) {
		v.written[p.String()] = true
	}
	for _, e := range events[v.read:] {
		id := fmt.Sprint(e.Payload.Node, " ", max(1, e.Payload.Generation))
		switch {
		case e.Type == "WORK_ITEM_STARTED" && v.answered[id]:
			v.t.Errorf("%s: %s is completed and was started again", at, id)
		case e.Type == "LLM_CALL_FINISHED", e.Type == "WORK_ITEM_FINISHED" && e.Payload.Status == "completed":
			v.answered[id] = true
		}
	}
	v.read = len(events)
}

// end lets the run end and compares it with the undisturbed one.
func (v *victim) end(want *site) {
	v.t.Helper()
	v.must(v.goOn()...)
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
	script := calls + ".sh"
	return func(spec string) string {
		text := "#!/bin/sh\nsed -n 's/.*\"Node\":\"\\([^\"]*\\)\",\"Generation\":\\([0-9]*\\).*/\\1 \\2/p' \"$DAGRUN_SIM\" >> '" + calls + "'\nexec \"$@\"\n"
		if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
			panic(err)
		}
		line := fmt.Sprintf("wrapper: [%q]", script)
		for _, provider := range []string{`provider: &provider "${params.agent.provider}"`, `provider: *provider`, `provider: "${params.agent.provider}"`} {
			spec = strings.ReplaceAll(spec, provider+"\n", provider+"\n\x00"+line+"\n")
		}
		return indented(strings.Replace(spec, "capUSD: 200}", "capUSD: 2000}", 1))
	}
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

// intact compares with an undisturbed run: the same bytes, and no completed node that ran again.
func (s *site) intact(want *site) {
	s.t.Helper()
	same(s.t, want, s)
	done := map[string]bool{}
	for _, e := range s.events() {
		switch id := e.Payload.Node; e.Type {
		case "WORK_ITEM_STARTED":
			if done[id] {
				s.t.Errorf("%s was completed and started again", id)
			}
		case "WORK_ITEM_FINISHED":
			done[id] = done[id] || e.Payload.Status == "completed"
		}
	}
}
