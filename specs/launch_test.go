package specs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dagrun.dev/dag/report"
)

const launch = "docs-launch"

// D-2: plan and graph of the documentation launcher are those that were last looked at.
func TestLaunchGolden(t *testing.T) {
	res := compiled(t, filepath.Join(launch, "spec.cue"))
	var plan, graph bytes.Buffer
	if err := report.BuildPlan(report.PlanInput{Graph: res.Graph, Notes: res.Notes}).WriteText(&plan); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteDOT(&graph, res.Graph, res.Notes); err != nil {
		t.Fatal(err)
	}
	digest := []byte(res.Plan.Digest()[:12])
	golden(t, launch+".plan.txt", bytes.ReplaceAll(plan.Bytes(), digest, []byte("DIGEST")))
	golden(t, launch+".graph.dot", bytes.ReplaceAll(graph.Bytes(), digest, []byte("DIGEST")))
}

// launchRun is a whole run, with a call that fails on the way.
func launchRun(t *testing.T) *site {
	t.Helper()
	return once(t, launch+"-with-a-failure", func(s *site) {
		s.must("apply", launch, "--seed", "7", "--quiet", "--set", "agent.faults=section=lock:overloaded")
	})
}

// declared gathers the declared states of the run (under "") and of its sections, in their order. Each change begins
// where the one before has ended.
func (s *site) declared() map[string]string {
	s.t.Helper()
	moves := map[string]string{}
	for _, e := range s.events() {
		b := e.Payload
		if e.Type != "RUN_STATE_CHANGED" {
			continue
		}
		was := moves[b.Section][strings.LastIndexByte(moves[b.Section], ' ')+1:]
		if was == "" {
			was = map[bool]string{true: "CREATED", false: "NOT_STARTED"}[b.Section == ""]
		}
		if b.Old != was {
			s.t.Errorf("section %q goes from %s to %s, and it was in %s", b.Section, b.Old, b.New, was)
		}
		moves[b.Section] = strings.TrimSpace(moves[b.Section] + " " + b.New)
	}
	return moves
}

const launchStates = "CLONED_INPUTS INGESTED FACTS_READY PLAN_READY DRAFTING DRAFT_READY LINKING VALIDATING FIXING VALIDATING READY_FOR_PR PR_OPENED DONE"

// D-5, V-2, L-9: the whole run, offline. It goes through the states that the specification declares, opens an issue for each
// gate that fails and resolves it when it passes; the pull request is a commit on a branch of a bare repository.
func TestLaunch(t *testing.T) {
	t.Parallel()
	s := launchRun(t)
	want := map[string]string{"": launchStates}
	for _, section := range []string{"start", "retry", "lock", "put", "log"} {
		want[section] = "OUTLINED DRAFTED MERGED_IN_WORKTREE DONE"
	}
	moves := s.declared()
	for section, states := range want {
		if moves[section] != states {
			t.Errorf("states of section %q: %s, want %s", section, moves[section], states)
		}
	}
	if len(moves) != len(want) {
		t.Errorf("states of %d sections, want %d", len(moves), len(want))
	}
	issues := map[string]string{}
	for _, e := range s.events() {
		if strings.HasPrefix(e.Type, "ISSUE_") {
			issues[e.Payload.IssueID] += e.Type + " "
		}
	}
	for _, gate := range []string{"coverage", "statuses", "names", "links"} {
		if got := issues["validation/"+gate]; got != "ISSUE_OPENED ISSUE_RESOLVED " {
			t.Errorf("the issue of %s: %s", gate, got)
		}
	}
	if len(issues) != 4 {
		t.Errorf("issues: %v", issues)
	}
	s.pullRequest(6)
	s.must("verify")
}

// git runs git on a bare repository.
func (s *site) git(repository string, args ...string) string {
	s.t.Helper()
	out, err := exec.Command("git", append([]string{"--git-dir=" + repository}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// pullRequest looks at what the run asks to be taken over: the last one, with so many pages.
func (s *site) pullRequest(pages int) {
	s.t.Helper()
	var pr record
	for _, e := range s.events() {
		if e.Type == "PR_OPENED" {
			pr = e
		}
	}
	repository, b := filepath.Join(s.out, "repo.git"), pr.Payload
	for _, ref := range []string{"refs/heads/" + b.Branch, "refs/pull/1/head"} {
		if got := s.git(repository, "rev-parse", ref); got != b.Commit {
			s.t.Errorf("%s is at %s, the event says %q", ref, got, b.Commit)
		}
	}
	if b.Base != "main" || s.git(repository, "rev-parse", b.Branch+"~1") != s.git(repository, "rev-parse", "main") {
		s.t.Errorf("the branch does not begin at %s", b.Base)
	}
	changed := s.git(repository, "diff", "--name-only", "main", b.Branch)
	if strings.Count(changed, "docs/keep/") != pages || s.git(repository, "show", b.Branch+":docs/keep/retry.md")+"\n" != s.read("docs/retry.md") {
		s.t.Errorf("the commit changes\n%s", changed)
	}
	if asked := s.read("pull-request.json"); !strings.Contains(asked, b.Commit) || !strings.Contains(asked, b.Branch) {
		s.t.Errorf("pull-request.json: %s", asked)
	}
	s.git(repository, "fsck", "--strict")
}

// seed001 are the types of events that the document of states and events asks for.
var seed001 = strings.Fields(`RUN_CREATED INPUTS_CLONED ARTIFACT_WRITTEN WORK_ITEM_QUEUED WORK_ITEM_STARTED WORK_ITEM_FINISHED
	GATE_RUN_STARTED GATE_RUN_FINISHED ISSUE_OPENED ISSUE_RESOLVED RUN_STATE_CHANGED PR_OPENED RUN_COMPLETED
	LLM_CALL_STARTED LLM_CALL_FINISHED LLM_CALL_FAILED RUN_FAILED`)

// V-1: the pipeline makes every type of event of the document, each valid against the published schema, and the calls of
// models say all that binds.
func TestLaunchEvents(t *testing.T) {
	t.Parallel()
	schema, err := jsonschema.NewCompiler().Compile("../schemas/event.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	ended := newSite(t)
	ended.ends(3, "apply", launch, "--quiet", "--until", "outline", "--set", "agent.faults=role=outline:auth")
	ended.dagrun(nil, "cancel", "--quiet")
	if got := ended.declared()[""]; got != "CLONED_INPUTS INGESTED FACTS_READY CANCELLED" {
		t.Errorf("states of a cancelled run: %s", got)
	}
	seen, calls, schemas := map[string]bool{}, map[string]string{}, map[string]any{}
	for _, line := range slices.Concat(launchRun(t).lines(), ended.lines()) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%v\n%s", err, line)
			continue
		}
		e := v.(map[string]any)
		typ, b := e["type"].(string), e["payload"].(map[string]any)
		seen[typ] = true
		if typ == "ARTIFACT_WRITTEN" && strings.HasSuffix(b["name"].(string), ".json") {
			schemas[b["name"].(string)] = b["schema_id"]
		}
		for name, pattern := range binding[typ] {
			raw, _ := json.Marshal(b[name])
			if !regexp.MustCompile("^(" + pattern + ")$").Match(raw) {
				t.Errorf("%s: %s is %s, want %s", typ, name, raw, pattern)
			}
		}
		if id, call := b["call_id"].(string); call {
			calls[e["run_id"].(string)+" "+id] += strings.TrimPrefix(typ, "LLM_CALL_") + " "
		}
	}
	for _, typ := range seed001 {
		if !seen[typ] {
			t.Errorf("no %s", typ)
		}
	}
	if len(calls) != 10 { // six pages, two of them mended, one failed call, and that of the run that was cancelled
		t.Errorf("calls: %v", calls)
	}
	for id, what := range calls {
		if what != "STARTED FINISHED " && what != "STARTED FAILED " {
			t.Errorf("call %s: %s", id, what)
		}
	}
	for name, id := range map[string]string{"inventory.json": "inventory", "facts.json": "facts", "outline.json": "outline", "pull-request.json": "pull-request"} {
		if schemas[name] != id {
			t.Errorf("the schema of %s is %v, want %s", name, schemas[name], id)
		}
	}
}

// binding are the fields that the document binds, as JSON.
var binding = map[string]map[string]string{
	"LLM_CALL_STARTED": {"call_id": `"[a-z0-9/-]+\.[0-9]+\.[0-9]+"`, "model": `".+"`, "provider_base_url": `"cli:sim"`, "prompt_hash": `"[0-9a-f]{64}"`,
		"temperature": `0`, "max_tokens": `8000`},
	"LLM_CALL_FINISHED": {"call_id": `".+"`, "latency_ms": `[0-9]+`, "finish_reason": `"(stop|length|tool_calls|error)"`, "output_hash": `"[0-9a-f]{64}"`,
		"token_usage": `\{"input_tokens":[1-9][0-9]*,"output_tokens":[1-9][0-9]*,"total_tokens":[1-9][0-9]*\}`, "api_cost_usd": `0\.[0-9]+`},
	"LLM_CALL_FAILED":   {"call_id": `".+"`, "latency_ms": `[0-9]+`, "error_class": `"[a-z_]+"`, "error_summary": `".+"`, "retryable": `true|false`},
	"RUN_STATE_CHANGED": {"old_state": `"[A-Z_]+"`, "new_state": `"[A-Z_]+"`, "stable": `true|false`},
	"ARTIFACT_WRITTEN":  {"name": `".+"`, "path": `".+"`, "sha256": `"[0-9a-f]{64}"`},
	"ISSUE_OPENED":      {"issue_id": `"validation/[a-z]+"`, "title": `".+"`, "severity": `"error"`},
	"ISSUE_RESOLVED":    {"issue_id": `"validation/[a-z]+"`},
	"GATE_RUN_FINISHED": {"gate": `"[a-z]+"`, "status": `"(pass|fail)"`},
	"PR_OPENED":         {"url": `"repo\.git#docs/keep-[0-9a-f]{12}"`, "branch": `"docs/keep-[0-9a-f]{12}"`, "base": `"main"`, "commit": `"[0-9a-f]{40}"`},
}

func (s *site) lines() []string {
	s.t.Helper()
	return strings.Split(strings.TrimSpace(s.read("_orchestrator/events.ndjson")), "\n")
}

// S-2, V-4: replay gives the snapshot, which is valid against its schema and holds what the document asks for; deleting it
// loses nothing.
func TestLaunchReplay(t *testing.T) {
	t.Parallel()
	s := copied(t, launchRun(t))
	const snapshot = "_orchestrator/snapshot.json"
	if out := s.must("replay"); !strings.Contains(out, "the snapshot is equal") {
		t.Error(out)
	}
	before := s.read(snapshot)
	schema, err := jsonschema.NewCompiler().Compile("../schemas/snapshot.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(before))
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		t.Error(err)
	}
	var doc struct {
		State struct {
			Observed struct {
				State    string `json:"run_state"`
				Stable   string `json:"stable_state"`
				Sections []struct{ Section, State string }
				Issues   []struct{ Status string }
				Gates    []struct{ Status string }
			} `json:"observed"`
		} `json:"state"`
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(before, `"section_states"`, `"Sections"`)), &doc); err != nil {
		t.Fatal(err)
	}
	o := doc.State.Observed
	if o.State != "DONE" || o.Stable != "DONE" || len(o.Sections) != 5 || o.Sections[0].State != "DONE" ||
		len(o.Issues) != 4 || o.Issues[0].Status != "RESOLVED" || len(o.Gates) != 10 {
		t.Errorf("the snapshot holds %+v", o)
	}
	for _, name := range []string{snapshot, snapshot + ".bak"} {
		if err := os.Remove(filepath.Join(s.out, name)); err != nil {
			t.Fatal(err)
		}
	}
	s.must("replay", "--write")
	if s.read(snapshot) != before {
		t.Error("the snapshot that replay writes is another one")
	}
}

// copied is a copy of a run, for tests that spoil it.
func copied(t *testing.T, from *site) *site {
	t.Helper()
	s := newSite(t)
	if err := os.CopyFS(s.out, os.DirFS(from.out)); err != nil {
		t.Fatal(err)
	}
	return s
}

// S-1: one byte of the log that is not as it was breaks the chain, at its line.
func TestLaunchBrokenChain(t *testing.T) {
	t.Parallel()
	s := copied(t, launchRun(t))
	log := filepath.Join(s.out, "_orchestrator/events.ndjson")
	lines := s.lines()
	i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"PR_OPENED"`) })
	lines[i] = strings.Replace(lines[i], `"base":"main"`, `"base":"mine"`, 1)
	if err := os.WriteFile(log, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := s.ends(5, "replay")
	if want := regexp.MustCompile(`EVENT_CHAIN_BROKEN`); !want.MatchString(out) || !regexp.MustCompile(`events\.ndjson:`+strconv.Itoa(i+1)+`\b|line `+strconv.Itoa(i+1)+`\b`).MatchString(out) {
		t.Errorf("line %d was changed:\n%s", i+1, out)
	}
}

// V-4: a forced full replay does all work again but what was paid for and would be given the same, and comes to the same.
func TestLaunchForcedReplay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.must("apply", launch, "--seed", "7", "--quiet")
	if err := os.Remove(filepath.Join(s.out, "_orchestrator/snapshot.json")); err != nil {
		t.Fatal(err)
	}
	before := s.events()
	s.must("resume", "--rerun", "*", "--quiet")
	same(t, launchRun(t), s)
	again := map[string]bool{}
	for _, e := range s.events()[len(before):] {
		switch e.Type {
		case "WORK_ITEM_STARTED":
			again[e.Payload.Node] = true
		case "LLM_CALL_STARTED":
			t.Errorf("%s was asked again", e.Payload.Node)
		}
	}
	for _, e := range before {
		if id := e.Payload.Node; e.Type == "WORK_ITEM_STARTED" && again[id] == agents.MatchString(id) {
			t.Errorf("%s ran again: %v", id, again[id])
		}
	}
	if got := s.declared()[""]; !strings.HasPrefix(got, launchStates+" CLONED_INPUTS ") || !strings.HasSuffix(got, " DONE") {
		t.Errorf("states: %s", got)
	}
	s.pullRequest(6)
	s.must("verify")
}

var agents = regexp.MustCompile(`^outline$|^draft/|/mend/`)

// V-2: killed in a state on the way, a run goes back to the last stable one when it is resumed, and reaches the others anew
// without doing work again.
func TestLaunchResumesFromTheLastStableState(t *testing.T) {
	t.Parallel()
	states := strings.Fields(launchStates)
	for state, stable := range map[string]string{
		"DRAFTING": "PLAN_READY", "LINKING": "DRAFT_READY", "VALIDATING": "DRAFT_READY", "FIXING": "DRAFT_READY", "READY_FOR_PR": "",
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if !s.killed("RUN_STATE_CHANGED "+state, "apply", launch, "--seed", "7", "--quiet") {
				t.Fatal("it was not killed")
			}
			s.must("resume", "--quiet")
			want := states
			if stable != "" {
				want = slices.Concat(states[:slices.Index(states, state)+1], states[slices.Index(states, stable):])
			}
			if got := s.declared()[""]; got != strings.Join(want, " ") {
				t.Errorf("got  %s\nwant %s", got, strings.Join(want, " "))
			}
			s.intact(launchRun(t))
		})
	}
}

// L-9, S-6: an outline that is edited half-way, and again when all is done, runs the page that is new and what is made of all
// pages; no other page is asked for again.
func TestLaunchEditedOutline(t *testing.T) {
	t.Parallel()
	brief := editIn(t, launch, "context/brief.md", replaced("One page for each thing", "A page for each thing"))
	spec := filepath.Dir(filepath.Dir(brief))
	s := newSite(t)
	if !s.killed("WORK_ITEM_FINISHED draft/lock completed", "apply", spec, "--quiet", "--jobs", "1") {
		t.Fatal("it was not killed")
	}
	line := `{"id": "log", "title": "Messages", "covers": ["log"], "see": ["retry"]}`
	page := `{"id": "words", "title": "Levels in words", "covers": [], "see": ["log"]}`
	rewrite(t, brief, replaced(line, line+",\n  "+page))
	s.must("apply", spec, "--quiet")
	asked := map[string]int{}
	for _, e := range s.events() {
		if e.Type == "LLM_CALL_STARTED" {
			asked[e.Payload.Node]++
		}
	}
	for id, times := range map[string]int{"outline": 2, "draft/start": 1, "draft/retry": 1, "draft/lock": 1, "draft/put": 1, "draft/log": 1, "draft/words": 1} {
		if asked[id] != times {
			t.Errorf("%s was asked %d times, want %d", id, asked[id], times)
		}
	}
	s.pullRequest(7)
	before := len(s.events())
	rewrite(t, brief, replaced(",\n  "+page, ""))
	s.must("apply", spec, "--quiet")
	for _, e := range s.events()[before:] {
		if e.Type == "LLM_CALL_STARTED" && e.Payload.Node != "outline" {
			t.Errorf("%s was asked again", e.Payload.Node)
		}
	}
	if got := s.declared(); !strings.HasSuffix(got[""], " DONE") || !strings.HasSuffix(got["words"], " NOT_STARTED") {
		t.Errorf("in the end the run is in %s, the page that was dropped in %s", got[""], got["words"])
	}
	s.pullRequest(6)
	s.must("verify")
}
