package specs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag/report"
)

const meta = "meta-phases"

// D-2, D-5: plan and graph of the scheduler of phases are those that were last looked at.
func TestMetaPlan(t *testing.T) {
	t.Parallel()
	res := compiled(t, meta)
	var plan, graph bytes.Buffer
	if err := report.BuildPlan(report.PlanInput{Graph: res.Graph, Notes: res.Notes}).WriteText(&plan); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteDOT(&graph, res.Graph, res.Notes); err != nil {
		t.Fatal(err)
	}
	golden(t, meta+".plan.txt", bytes.ReplaceAll(plan.Bytes(), []byte(res.Plan.Digest()[:12]), []byte("DIGEST")))
	golden(t, meta+".graph.dot", graph.Bytes())
}

// A library is a copy of the pipeline with entities of its own, whose ticks are carried out one by one.
type library struct {
	*site
	spec string // folder
}

// newLibrary makes one with these entities: the metadata of each. Each has one document.
func newLibrary(t *testing.T, entities map[string]string, edits ...string) *library {
	t.Helper()
	t.Parallel()
	l := &library{newSite(t), t.TempDir()}
	if err := os.CopyFS(l.spec, os.DirFS(meta)); err != nil {
		t.Fatal(err)
	}
	if len(edits) > 0 {
		rewrite(t, filepath.Join(l.spec, "spec.yaml"), strings.NewReplacer(edits...).Replace)
	}
	if entities != nil {
		os.RemoveAll(filepath.Join(l.spec, "library"))
	}
	for name, text := range entities {
		l.write(name+"/.meta/meta.json", text)
		l.write(name+"/text.md", "# About "+name+"\n")
	}
	return l
}

func (l *library) path(name string) string { return filepath.Join(l.spec, "library", name) }

func (l *library) write(name, text string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(l.path(name)), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(l.path(name), []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// metadata is what the files of the entities say.
type metadata struct {
	State   map[string]string `json:"_phaseState"`
	Seen    string            `json:"_seen"`
	At      string            `json:"_generatedAt"`
	Rounds  int               `json:"_synthesisCount"`
	Brief   string            `json:"_builder"`
	Content string            `json:"_content"`
	Said    string            `json:"_feedback"`
	Covered any               `json:"_state"`
	Error   *struct {
		Step, Code, At string
		Failures       int
	} `json:"_error"`
}

func (l *library) meta(entity string) (m metadata) {
	l.t.Helper()
	b, err := os.ReadFile(l.path(entity + "/.meta/meta.json"))
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		l.t.Errorf("%s: %v", entity, err)
	}
	return m
}

// stands is how the phases of an entity stand, in their order.
func (l *library) stands(entity string) string {
	s := l.meta(entity).State
	return s["architect"] + " " + s["builder"] + " " + s["critic"]
}

// tick carries out one tick and says what it was: PHASE ENTITY, with ! behind it where the phase failed, or idle.
func (l *library) tick(args ...string) string {
	l.t.Helper()
	l.must(append([]string{"apply", l.spec, "--quiet"}, args...)...)
	return l.ticked()
}

func (l *library) ticked() string {
	l.t.Helper()
	ends := finished(l.events())
	if ends["idle"].Payload.Status == "completed" {
		return "idle"
	}
	v := ends["settle"].Payload.Values
	var phase, entity string
	json.Unmarshal(v["phase"], &phase)
	json.Unmarshal(v["entity"], &entity)
	out := phase + " " + strings.TrimSuffix(strings.TrimPrefix(entity, "library/"), "/.meta/meta.json")
	if string(v["ok"]) != "true" {
		out += "!"
	}
	return out
}

// ticks expects ticks one after the other.
func (l *library) ticks(want ...string) {
	l.t.Helper()
	for _, w := range want {
		if got := l.tick(); got != w {
			l.t.Fatalf("the tick was %q, want %q", got, w)
		}
	}
}

func (l *library) faults(rules string) {
	l.t.Helper()
	rewrite(l.t, filepath.Join(l.spec, "spec.yaml"), func(s string) string {
		a := strings.Index(s, `faults: {type: string, default: "`) + len(`faults: {type: string, default: "`)
		return s[:a] + rules + s[a+strings.Index(s[a:], `"`):]
	})
}

// since has so much time pass that the failure of an entity, the last one, lies as far back as is said, however long the
// ticks since then have taken.
func (l *library) since(entity string, ago time.Duration) {
	l.t.Helper()
	at, err := time.Parse(time.RFC3339Nano, l.meta(entity).Error.At)
	if err != nil {
		l.t.Fatal(err)
	}
	l.later(ago - time.Since(at))
}

// later has time pass: what the metadata say of instants lies so much further back.
func (l *library) later(d time.Duration) {
	l.t.Helper()
	files, _ := filepath.Glob(filepath.Join(l.spec, "library", "*", ".meta", "meta.json"))
	nested, _ := filepath.Glob(filepath.Join(l.spec, "library", "*", "*", ".meta", "meta.json"))
	for _, f := range append(files, nested...) {
		b, err := os.ReadFile(f)
		if err != nil {
			l.t.Fatal(err)
		}
		var m map[string]any
		if json.Unmarshal(b, &m) != nil {
			continue // one that is not to be parsed
		}
		back := func(m map[string]any, name string) {
			if text, ok := m[name].(string); ok {
				at, err := time.Parse(time.RFC3339Nano, text)
				if err != nil {
					l.t.Fatal(err)
				}
				m[name] = at.Add(-d).Format(time.RFC3339Nano)
			}
		}
		back(m, "_generatedAt")
		if e, ok := m["_error"].(map[string]any); ok {
			back(e, "at")
		}
		if b, err = json.Marshal(m); err == nil {
			err = os.WriteFile(f, b, 0o644)
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// owedByDocument is the phase that an entity owes, written down from the document and not from the specification: derive,
// cascade, promote, select. An empty state stands for metadata without _phaseState.
func owedByDocument(state [3]string, has [3]bool, errorStep int, changed bool) string {
	if state[0] == "" { // legacy: what is there is done
		for p := range state {
			switch {
			case p == errorStep:
				state[p] = "failed"
			case has[p]:
				state[p] = "fresh"
			case p == 0 || state[p-1] == "fresh":
				state[p] = "pending"
			default:
				state[p] = "stale"
			}
		}
	}
	architectFailed := state[0] == "failed"
	if changed {
		state, architectFailed = [3]string{"stale", "pending", "pending"}, false
	}
	for p := range state {
		if state[p] == "failed" || state[p] == "running" || state[p] == "fresh" && !has[p] {
			state[p] = "pending"
		}
	}
	switch {
	case state[2] != "fresh" && state[1] == "fresh" && has[1]:
		return "critic"
	case state[1] != "fresh" && has[0] && (state[0] == "fresh" || architectFailed):
		return "builder"
	case state[0] != "fresh":
		return "architect"
	}
	return ""
}

// M-1, M-2, M-3, M-4: for every state of the three phases, with and without what each makes, with and without a change of
// the documents, and for metadata of earlier programs, what is owed is what the document says; critics come before builders
// before architects, and among them the one that has waited longest.
func TestMetaWhatIsOwed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names, fields := []string{"architect", "builder", "critic"}, []string{"_builder", "_content", "_feedback"}
	states := []string{"fresh", "stale", "pending", "running", "failed"}
	want, n := map[string]string{}, 0
	add := func(state [3]string, has [3]bool, failed int, changed bool) {
		m := map[string]any{"_generatedAt": time.Now().Add(-time.Duration(n%7) * time.Hour).UTC().Format(time.RFC3339Nano)}
		if state[0] != "" {
			m["_phaseState"] = map[string]string{"architect": state[0], "builder": state[1], "critic": state[2]}
		}
		for p, f := range fields {
			if has[p] {
				m[f] = "text"
			}
		}
		if failed >= 0 {
			m["_error"] = map[string]any{"step": names[failed]}
		}
		if changed {
			m["_seen"] = "other"
		}
		name := fmt.Sprintf("e%04d", n)
		n++
		b, err := json.Marshal(m)
		folder := filepath.Join(dir, "library", name)
		if err == nil {
			err = os.MkdirAll(filepath.Join(folder, ".meta"), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, ".meta", "meta.json"), b, 0o644)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, "a.md"), []byte(name), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		want[name] = owedByDocument(state, has, failed, changed)
	}
	for k := range 2 * 8 {
		changed, has := k&1 != 0, [3]bool{k&2 != 0, k&4 != 0, k&8 != 0}
		for a := range 125 {
			if k > 1 && k < 14 && a%4 != k%4 {
				continue // every state with all and with nothing made; of the others a quarter each
			}
			add([3]string{states[a%5], states[a/5%5], states[a/25]}, has, -1, changed)
		}
		for failed := -1; failed < 3; failed++ {
			add([3]string{}, has, failed, changed)
		}
	}
	spec := `
package rules

import "dagrun.dev/flow"

_p: flow.#Phases & {root: "library", steps: [
	{name: "architect", keeps: "_builder", fields: _builder: "brief", cached: true, moves: "stale"},
	{name: "builder", keeps: "_content", fields: _content: "content"},
	{name: "critic", keeps: "_feedback", fields: _feedback: "feedback"},
]}
pipeline: {name: "rules", nodes: pick: {kind: "scan", with: {take: 1000, for k, v in _p.nodes.pick.with if k != "take" && k != "if" {(k): v}}}}
`
	if err := os.WriteFile(filepath.Join(dir, "spec.cue"), []byte(spec), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	s.must("apply", dir, "--quiet")
	var items []struct {
		Path, Phase   string
		Failures, Nth int
		Due           float64
	}
	if err := json.Unmarshal(finished(s.events())["pick"].Payload.Values["items"], &items); err != nil {
		t.Fatal(err)
	}
	if len(items) != n {
		t.Fatalf("%d entities were found, want %d", len(items), n)
	}
	for i, it := range items {
		name := strings.Split(it.Path, "/")[1]
		if it.Phase != want[name] {
			b, _ := os.ReadFile(filepath.Join(dir, it.Path))
			t.Errorf("owed is %q, want %q: %s", it.Phase, want[name], b)
		}
		if i > 0 {
			a := items[i-1]
			before := slices.Compare([]float64{float64(a.Failures), -float64(a.Nth), -a.Due}, []float64{float64(it.Failures), -float64(it.Nth), -it.Due})
			if before > 0 {
				t.Errorf("%s stands before %s", a.Path, it.Path)
			}
		}
	}
}

// M-2, M-4, M-5: an entity from nothing to a whole round; a change of its documents; how its phases stand after every tick;
// what else stands in its metadata; the copies of its rounds, of which the oldest go.
func TestMetaRound(t *testing.T) {
	l := newLibrary(t, map[string]string{"a": `{"_steer": "Be brief.", "mine": {"n": 9007199254740993}}`}, "archive: 5", "archive: 2")
	for _, step := range []struct{ tick, stands string }{
		{"architect a", "fresh pending stale"}, {"builder a", "fresh fresh pending"}, {"critic a", "fresh fresh fresh"}, {"idle", "fresh fresh fresh"},
	} {
		if got := l.tick() + ": " + l.stands("a"); got != step.tick+": "+step.stands {
			t.Fatalf("%s, want %s: %s", got, step.tick, step.stands)
		}
	}
	m := l.meta("a")
	if m.Rounds != 1 || m.Brief == "" || m.Content == "" || m.Said == "" || m.Covered == nil || m.Error != nil || m.At == "" {
		t.Errorf("after a round: %+v", m)
	}
	b, _ := os.ReadFile(l.path("a/.meta/meta.json"))
	if !bytes.Contains(b, []byte(`"mine":{"n":9007199254740993}`)) || !bytes.Contains(b, []byte(`"_steer":"Be brief."`)) {
		t.Errorf("what the program does not know is gone: %s", b)
	}
	for round := 2; round <= 4; round++ {
		l.write("a/text.md", fmt.Sprintf("# Another %d\n", round))
		l.ticks("architect a")
		if got := l.stands("a"); got != "fresh pending pending" {
			t.Fatalf("a change, and the architect: %s", got)
		}
		l.ticks("builder a", "critic a", "idle")
		if got := l.meta("a").Rounds; got != round {
			t.Fatalf("%d rounds, want %d", got, round)
		}
	}
	kept, _ := filepath.Glob(l.path("a/.meta/archive/*"))
	for i := range kept {
		kept[i] = filepath.Base(kept[i])
	}
	if got := strings.Join(kept, " "); got != "000003.json 000004.json" {
		t.Errorf("the archive holds %s", got)
	}
	last, _ := os.ReadFile(l.path("a/.meta/archive/000004.json"))
	if b, _ := os.ReadFile(l.path("a/.meta/meta.json")); !bytes.Equal(last, b) {
		t.Error("the copy is not the metadata of the round")
	}
	l.must("verify")
}

// M-4, M-6: a failure touches its own phase alone, the next tick tries it again, and the second in a row waits; the builder
// may begin from what the architect made earlier; nobody else is held up, by a mistake in metadata neither.
func TestMetaFailures(t *testing.T) {
	l := newLibrary(t, map[string]string{
		"a": `{"_builder": "the brief of an earlier day", "_phaseState": {"architect": "stale", "builder": "pending", "critic": "pending"}}`,
		"b": `{"_generatedAt": "2026-01-01T00:00:00Z"}`, "broken": `{"_phaseState": `,
	})
	l.faults("phase=architect:exit(7)*inf")
	l.ticks("architect a!")
	if got, m := l.stands("a"), l.meta("a"); got != "failed pending pending" || m.Error.Step != "architect" || m.Error.Code != "exit_nonzero" || m.Error.Failures != 1 {
		t.Errorf("after the failure: %s, %+v", got, m.Error)
	}
	l.ticks("builder a") // with the brief that was there, before the architect of b, which has not failed
	if got := l.stands("a"); got != "pending fresh pending" {
		t.Errorf("after the builder: %s", got)
	}
	l.ticks("critic a")
	if m := l.meta("a"); m.Rounds != 0 || m.Error == nil || m.Brief != "the brief of an earlier day" {
		t.Errorf("no round is whole without its architect: %+v", m)
	}
	l.ticks("architect b!", "architect b!", "architect a!", "idle") // first who has failed less, then who has waited longest
	l.faults("")
	l.since("a", 30*time.Second)
	l.ticks("idle")
	l.since("a", 61*time.Second)
	l.ticks("architect b", "builder b", "critic b", "architect a")
	if got, m := l.stands("a"), l.meta("a"); got != "fresh fresh fresh" || m.Rounds != 1 || m.Error != nil {
		t.Errorf("in the end: %s, %+v", got, m)
	}
	l.ticks("idle")
}

// M-6: a builder whose time is over keeps the state that it had advanced, beside its failed phase; half a file is none, and
// the state stays as it was. Killed around it the next process comes to the same, and the builder after it goes on from there.
func TestMetaOutOfTime(t *testing.T) {
	const title = "title: Write the summary\n"
	l := newLibrary(t, map[string]string{
		"a": `{"_builder": "b", "_content": "old", "_state": {"covered": ["old.md"]}, "_phaseState": {"architect": "fresh", "builder": "pending", "critic": "pending"}}`,
	}, title, title+"      timeout: {attempt: 4s, grace: 100ms}\n") // time enough to begin, on a busy machine too
	stands := func(when, covered string) {
		t.Helper()
		m := l.meta("a")
		if got := l.stands("a"); got != "fresh failed pending" || fmt.Sprint(m.Covered) != "map[covered:["+covered+"]]" || m.Content != "old" ||
			m.Error == nil || m.Error.Code != "stalled" {
			t.Fatalf("%s: %s, %+v", when, got, m)
		}
	}
	l.faults("phase=builder:drip(1h)*inf")
	whole := "  write:\n    state.json: |\n"
	answers := filepath.Join(l.spec, "sim", "answers.yaml")
	rewrite(t, answers, replaced(whole, "  write:\n    state.json: '{\"covered\": [\"te'\n    other: |\n"))
	l.ticks("builder a!")
	stands("half a file", "old.md")
	end := finished(l.events())["builder"].Payload
	if !strings.Contains(strings.Join(end.Warnings, "\n"), "not salvaged: state: ") {
		t.Errorf("why nothing was salvaged: %q", end.Warnings)
	}
	rewrite(t, answers, replaced("  write:\n    state.json: '{\"covered\": [\"te'\n    other: |\n", whole))
	for _, at := range []string{"before WORK_ITEM_FINISHED stalled", "WORK_ITEM_FINISHED stalled", "PUBLISHED"} {
		if !l.killed(at, "apply", l.spec, "--quiet") {
			t.Fatalf("it was not killed at %s", at)
		}
	}
	l.ticks("builder a!")
	stands("out of time", "text.md")
	l.must("verify")
	l.faults("")
	l.later(time.Hour)
	l.ticks("builder a")
	prompt, err := os.ReadFile(filepath.Join(l.out, "_orchestrator", "nodes", "builder", "prompt.md"))
	if err != nil || !bytes.Contains(prompt, []byte(`{"covered":["text.md"]}`)) {
		t.Errorf("the next builder is not told what was covered: %v\n%s", err, prompt)
	}
	l.ticks("critic a", "idle")
}

// M-6, M-7, S-12: the last tick of a round, killed after every one of its events in turn. Until it is committed the metadata are as
// they were, to the byte, and from then on as they are in the end; nothing is left over beside them, and the answer is bought once.
func TestMetaKilled(t *testing.T) {
	const before = `{"_builder": "b", "_content": "c", "_phaseState": {"architect": "fresh", "builder": "fresh", "critic": "pending"}, "_synthesisCount": 6}`
	want := newLibrary(t, map[string]string{"a": before})
	want.ticks("critic a")
	l := &library{newSite(t), t.TempDir()}
	if err := os.CopyFS(l.spec, os.DirFS(want.spec)); err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(l.path("a/.meta/archive"))
	l.write("a/.meta/meta.json", before)
	kills, committed := 0, ""
	all := points(want.events())
	for _, p := range all[slices.IndexFunc(all, func(p point) bool { return p.typ == "WORK_ITEM_STARTED" }):] {
		if p.typ == "WORK_ITEM_STARTED" && strings.Contains(p.node, "/") {
			continue // a node that is lost three times has failed
		}
		if !l.killed(p, "apply", l.spec, "--quiet", "--jobs", "1") {
			t.Errorf("it was not killed at %s", p)
			break
		}
		kills++
		now, _ := os.ReadFile(l.path("a/.meta/meta.json"))
		switch {
		case string(now) == before && committed == "": // not yet
		case committed == "":
			committed = string(now)
		case string(now) != committed:
			t.Errorf("killed at %s the metadata are %s", p, now)
		}
	}
	l.must("apply", l.spec, "--quiet", "--steps", "1") // nothing: the run was complete when it was killed for the last time
	if got := l.ticked(); got != "idle" {
		t.Errorf("what was killed %d times has to be done again: %s", kills, got)
	}
	got, end := l.meta("a"), want.meta("a")
	got.At, end.At = "", ""
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", end); a != b || committed == "" {
		t.Errorf("the metadata are %s, undisturbed %s", a, b)
	}
	var files []string
	filepath.WalkDir(l.path("a"), func(path string, d os.DirEntry, err error) error {
		if !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, l.path("a")))
		}
		return err
	})
	if s := strings.Join(files, " "); s != "/.meta/archive/000007.json /.meta/meta.json /text.md" {
		t.Errorf("left are %s", s)
	}
	l.must("verify")
}

// M-7: what somebody writes into the metadata while a phase is carried out stays; the phase is done again, on the new ones.
func TestMetaEditedMeanwhile(t *testing.T) {
	l := newLibrary(t, map[string]string{"a": `{}`})
	if !l.killed("LLM_CALL_FINISHED architect", "apply", l.spec, "--quiet") {
		t.Fatal("it was not killed")
	}
	const mine = `{"_steer": "Say more."}`
	l.write("a/.meta/meta.json", mine)
	l.must("apply", l.spec, "--quiet")
	if b, _ := os.ReadFile(l.path("a/.meta/meta.json")); string(b) != mine {
		t.Errorf("the metadata of the user are %s", b)
	}
	l.ticks("architect a", "builder a", "critic a", "idle")
	if b, _ := os.ReadFile(l.path("a/.meta/meta.json")); !bytes.Contains(b, []byte("Say more.")) {
		t.Errorf("the metadata of the user are %s", b)
	}
}

// M-1…M-6, S-6: a month of a library, each day some ticks from a timer: edits, folders that come and go, agents that fail or
// take too long, a keeper who turns an entity off. The sequence of phases is the one that was last looked at.
func TestMetaMonth(t *testing.T) {
	l := newLibrary(t, nil)
	const asUsual, hasty = "title: Say what the summary is to cover\n", "title: Say what the summary is to cover\n      timeout: {attempt: 300ms, grace: 100ms}\n"
	var out strings.Builder
	day := 1
	for _, d := range []struct {
		day, most int
		what      string
		do        func()
	}{
		{1, 12, "the library as it is shipped", func() {}},
		{2, 2, "nothing", func() {}},
		{3, 4, "a document of clocks is edited", func() { l.write("clocks/drift.md", "# Drift\n\nSome seconds a month.\n") }},
		{5, 8, "the folder of dead letters has another document, the one around it is not concerned", func() { l.write("queues/dead-letters/again.md", "# Again\n\nBy hand.\n") }},
		{8, 2, "two edits, and little time", func() {
			l.write("logs/chain.md", "# Chains\n\nEach line holds a digest.\n")
			l.write("clocks/leap.md", "# Leap seconds\n\nThey go in 2035.\n")
		}},
		{9, 9, "the rest", func() {}},
		{12, 5, "logs are edited, and their architect takes too long", func() {
			l.write("logs/chain.md", "# Chains\n\nAgain.\n")
			l.faults("phase=architect:hang*inf")
			rewrite(t, filepath.Join(l.spec, "spec.yaml"), replaced(asUsual, hasty))
		}},
		{13, 4, "it answers again", func() {
			l.faults("")
			rewrite(t, filepath.Join(l.spec, "spec.yaml"), replaced(hasty, asUsual))
		}},
		{15, 6, "the critic of all is ill while a new folder comes", func() {
			l.write("locks/.meta/meta.json", "{}")
			l.write("locks/lease.md", "# Leases\n\nThey end.\n")
			l.faults("phase=critic:exit(7)*inf")
		}},
		{16, 4, "it is well", func() { l.faults("") }},
		{20, 3, "an entity is turned off, and edited", func() {
			l.write("queues/order.md", "# Order\n\nNone.\n")
			m, _ := os.ReadFile(l.path("queues/.meta/meta.json"))
			l.write("queues/.meta/meta.json", strings.Replace(string(m), "{", `{"_disabled": true, `, 1))
		}},
		{22, 4, "it is turned on", func() {
			m, _ := os.ReadFile(l.path("queues/.meta/meta.json"))
			l.write("queues/.meta/meta.json", strings.Replace(string(m), `"_disabled":true`, `"_disabled":false`, 1))
			m, _ = os.ReadFile(l.path("queues/.meta/meta.json"))
			l.write("queues/.meta/meta.json", strings.Replace(string(m), `"_disabled": true`, `"_disabled": false`, 1))
		}},
		{25, 4, "a folder goes, and metadata are spoilt", func() {
			os.RemoveAll(l.path("locks"))
			l.write("logs/.meta/meta.json", "{")
		}},
		{30, 4, "they begin anew", func() { l.write("logs/.meta/meta.json", "{}") }},
	} {
		l.later(time.Duration(d.day-day) * 24 * time.Hour)
		day = d.day
		d.do()
		fmt.Fprintf(&out, "day %d: %s\n", d.day, d.what)
		for range d.most {
			tick := l.tick()
			fmt.Fprintf(&out, "    %s\n", tick)
			if tick == "idle" {
				break
			}
			l.later(15 * time.Minute)
		}
	}
	l.must("verify")
	golden(t, "meta-month.txt", []byte(out.String()))
}
