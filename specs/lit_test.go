package specs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dagrun.dev/dag/report"
)

const lit = "lit-pm"

// D-2, D-5: the plan and the graph of the literature pipeline are those that were last looked at.
func TestLiteraturePlan(t *testing.T) {
	t.Parallel()
	res := compiled(t, lit)
	var plan, graph bytes.Buffer
	if err := report.BuildPlan(report.PlanInput{Graph: res.Graph, Notes: res.Notes}).WriteText(&plan); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteDOT(&graph, res.Graph, res.Notes); err != nil {
		t.Fatal(err)
	}
	golden(t, lit+".plan.txt", bytes.ReplaceAll(plan.Bytes(), []byte(res.Plan.Digest()[:12]), []byte("DIGEST")))
	golden(t, lit+".graph.dot", graph.Bytes())
}

// A litRun is one run of the literature pipeline from a copy of its folder, in which nothing waits for long.
type litRun struct {
	*site
	spec string
	// answers are what the user says, by node or breaker, one after the other; an outline is approved where nothing is said.
	answers map[string][]string
	asked   []litQuestion
	out     string
}

type litQuestion struct {
	ID, Node, Type, Stage, Message, Default string
	Options                                 []string
	After                                   any
}

// literature makes a copy. Agents answer as says tells, in the format of sim/answers.yaml, and otherwise as ever; edits are
// pairs of old and new text of the specification.
func literature(t *testing.T, says string, edits ...string) *litRun {
	t.Helper()
	t.Parallel()
	return &litRun{site: newSite(t), answers: map[string][]string{}, spec: literatureSpec(t, says, edits...)}
}

// literatureSpec is the specification of such a copy.
func literatureSpec(t *testing.T, says string, edits ...string) string {
	t.Helper()
	edits = append(edits, "base: 5s", "base: 10ms", "base: 2s", "base: 10ms", "grace: 30s", "grace: 1s")
	spec := editIn(t, lit, "spec.yaml", strings.NewReplacer(edits...).Replace)
	if says != "" {
		rewrite(t, filepath.Join(filepath.Dir(spec), "sim", "answers.yaml"), func(old string) string { return says + "\n" + old })
	}
	return spec
}

// run applies the specification and answers what is asked until the run has ended with a status.
func (r *litRun) run(status int, args ...string) {
	r.t.Helper()
	r.goOn(status, append([]string{"apply", r.spec, "--quiet"}, args...)...)
}

func (r *litRun) goOn(status int, args ...string) {
	r.t.Helper()
	for range 20 {
		got, meanwhile := r.attended(args...) // what was answered as the program came to its end, nobody has acted on
		if got == 3 && (r.respond() || meanwhile) {
			args = []string{"resume", "--quiet"}
			continue
		}
		if got != status {
			r.t.Fatalf("status %d, want %d\n%s", got, status, tail(r.out))
		}
		return
	}
	r.t.Fatalf("it goes on and on\n%s", tail(r.out))
}

// attended runs the program, answers what is asked while it waits, and returns its exit status.
func (r *litRun) attended(args ...string) (status int, answered bool) {
	r.t.Helper()
	ended := make(chan error, 1)
	var out string
	go func() {
		var err error
		out, err = r.dagrun(nil, args...)
		ended <- err
	}()
	for asked := 0; ; {
		select {
		case err := <-ended:
			r.out += out
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return exit.ExitCode(), answered
			}
			return 0, answered
		case <-time.After(100 * time.Millisecond):
			log, _ := os.ReadFile(filepath.Join(r.site.out, "_orchestrator/events.ndjson")) // not there yet
			if n := bytes.Count(log, []byte(`"ESCALATION_OPENED"`)); n > asked && bytes.Contains(log, []byte(`"deadline"`)) {
				asked = n
				answered = r.respond() || answered
			}
		}
	}
}

// respond answers the open questions that there is an answer to.
func (r *litRun) respond() (answered bool) {
	r.t.Helper()
	for _, q := range r.open() {
		about := q.Node
		if about == "" {
			about = q.Type
		}
		list, said := r.answers[about]
		if !said && about == "outline/first" {
			list = []string{"approve"}
		}
		if len(list) == 0 {
			continue
		}
		if r.answers[about] = list[1:]; !said {
			delete(r.answers, about)
		}
		r.asked = append(r.asked, q)
		answer, text, _ := strings.Cut(list[0], ": ")
		r.must("respond", q.ID, answer, "--by", "editor", "--text", text)
		answered = true
	}
	return answered
}

func (r *litRun) open() []litQuestion {
	r.t.Helper()
	var list struct{ Questions []litQuestion }
	if err := json.Unmarshal([]byte(r.must("escalations", "--json")), &list); err != nil {
		r.t.Fatal(err)
	}
	return list.Questions
}

// facts are the events of a type as JSON, each as long as its line.
func (r *litRun) facts(typ string) (list []string) {
	r.t.Helper()
	for line := range strings.Lines(r.read("_orchestrator/events.ndjson")) {
		if strings.Contains(line, `"type":"`+typ+`"`) {
			list = append(list, line)
		}
	}
	return list
}

// started counts the attempts of a node.
func (r *litRun) started(node string) (n int) {
	r.t.Helper()
	for _, e := range r.events() {
		if e.Type == "WORK_ITEM_STARTED" && e.Payload.Node == node {
			n++
		}
	}
	return n
}

// status is how a node ended last, with its category.
func (r *litRun) status(node string) string {
	r.t.Helper()
	e, ok := finished(r.events())[node]
	if !ok {
		return ""
	}
	return strings.TrimSpace(e.Payload.Status + " " + e.Payload.Category)
}

func (r *litRun) has(file string, want ...string) {
	r.t.Helper()
	text := r.read(file)
	for _, w := range want {
		if !strings.Contains(text, w) {
			r.t.Errorf("%s has no %q:\n%s", file, w, tail(text))
		}
	}
}

func (r *litRun) is(node, want string) {
	r.t.Helper()
	if got := r.status(node); got != want {
		r.t.Errorf("%s is %q, want %q\n%s", node, got, want, tail(r.out))
	}
}

func (r *litRun) times(node string, want int) {
	r.t.Helper()
	if got := r.started(node); got != want {
		r.t.Errorf("%s was started %d times, want %d", node, got, want)
	}
}

// undone holds the protocol of a compensation: its reason is recorded, what is there is kept in a checkpoint, and then the
// action is carried out.
func (r *litRun) undone(node, reason string) {
	r.t.Helper()
	id := "cp-UNDO-" + strings.ReplaceAll(node, "/", "-")
	if _, err := os.Stat(filepath.Join(r.site.out, "_orchestrator/checkpoints", id)); err != nil {
		r.t.Errorf("nothing was kept before %s was undone: %v", node, err)
	}
	var said, kept, done int
	for i, line := range strings.Split(r.read("_orchestrator/events.ndjson"), "\n") {
		about := strings.Contains(line, `"node":"`+node+`"`)
		switch {
		case said == 0 && about && strings.Contains(line, `"COMPENSATION_STARTED"`) && strings.Contains(line, reason):
			said = i + 1
		case kept == 0 && strings.Contains(line, `"CHECKPOINT_CREATED"`) && strings.Contains(line, `"`+id+`"`):
			kept = i + 1
		case done == 0 && about && strings.Contains(line, `"COMPENSATION_FINISHED"`) && strings.Contains(line, `"completed"`):
			done = i + 1
		}
	}
	if said == 0 || kept < said || done < kept {
		r.t.Errorf("%s: line %d gives the reason %q, line %d keeps what was there, line %d has undone it\n%s", node, said, reason,
			kept, done, strings.Join(r.facts("COMPENSATION_STARTED"), ""))
	}
}

// D-5: the whole pipeline, offline: it asks about its outline, and ends with a text that holds every section and cites
// nothing that is not in its library.
func TestLiterature(t *testing.T) {
	r := literature(t, "")
	r.run(0)
	r.has("review.md", "# Surviving the process", "## What can fail", "## Durable execution", "## What follows",
		"- [garcia87] H. Garcia-Molina, K. Salem: Sagas.")
	if strings.Contains(r.read("review.md"), "## Notes") {
		t.Error("there is a note although nothing went wrong")
	}
	if len(r.asked) != 1 || r.asked[0].Stage != "3 Outline" {
		t.Errorf("asked: %+v", r.asked)
	}
	var states []string
	for _, line := range r.facts("RUN_STATE_CHANGED") {
		if _, state, ok := strings.Cut(line, `"new_state":"`); ok && !strings.Contains(line, `"section"`) {
			state, _, _ = strings.Cut(state, `"`)
			states = append(states, state)
		}
	}
	if want := "scoped reviewed outlined introduced written challenged synthesized published"; strings.Join(states, " ") != want {
		t.Errorf("milestones: %v", states)
	}
	r.must("verify")
}

// L-1, row 1: a user gives up. All that was done is undone, the last first; the scope is withdrawn, and kept.
func TestLiteratureUserAborts(t *testing.T) {
	r := literature(t, "")
	r.answers["outline/first"] = nil
	r.run(3)
	r.ends(0, "cancel", "--undo")
	r.undone("scope", "")
	var order []string
	for _, line := range r.facts("COMPENSATION_STARTED") {
		for _, n := range []string{"outline", "scope"} {
			if strings.Contains(line, `"node":"`+n+`"`) {
				order = append(order, n)
			}
		}
	}
	if !slices.Equal(order, []string{"outline", "scope"}) {
		t.Errorf("undone in the order %v", order)
	}
	r.has("scope.md", "Delete scope, reset workflow")
	r.has("_orchestrator/checkpoints/cp-UNDO-scope/scope.md", "## Questions")
	r.answers = map[string][]string{}
	r.run(0, "--fresh")
	r.has("review.md", "## What follows")
}

// disagree has the reviewers name works that nobody else names, in some generations.
func disagree(generations string) string {
	return `
- match: {node: "review/*", generation: [` + generations + `]}
  answer: |
    Nobody else has read this [gray81].

    {{"` + "```" + `"}}json
    {"papers": ["only-{{.Node}}"]}
    {{"` + "```" + `"}}
`
}

// L-1 and L-8, row 2: the reviewers agree on less than two works. What they found is kept and withdrawn, and they begin anew.
func TestLiteratureNotConverged(t *testing.T) {
	r := literature(t, disagree(`"1"`))
	r.run(0)
	r.undone("review/databases", "the reviewers agree on 0 works, of 2 at least")
	r.times("review/runtimes", 2)
	r.times("converge", 2)
	r.has("_orchestrator/checkpoints/cp-UNDO-review-databases/databases.md", "Nobody else has read this")
	r.has("reviews/databases.md", "Gray names undo and redo")
}

// L-2, L-8, stage 2: after two failures in a row the breaker opens, and the run goes on with what the reviewers have.
func TestLiteratureNeverConverges(t *testing.T) {
	r := literature(t, disagree(`"1", "2", "3"`))
	r.run(0)
	r.times("converge", 2)
	r.is("converge", "rejected breaker_open")
	r.has("outline.md", "What can fail")
}

// L-1 and L-7, row 3: the user rejects two outlines. What was made since is withdrawn, and the reviewers begin anew.
func TestLiteratureOutlineRejectedTwice(t *testing.T) {
	r := literature(t, "")
	r.answers = map[string][]string{"outline/first": {"reject: begin with the disk", "approve"}, "outline/second": {"reject"}}
	r.run(0)
	r.undone("outline/revised", "refused: the answer is reject")
	r.undone("review/databases", "refused")
	for _, node := range []string{"review/databases", "review/distributed", "review/runtimes", "outline"} {
		r.times(node, 2)
	}
	r.times("outline/revised", 1)
	r.times("scope", 1)
	r.has("_orchestrator/nodes/outline/revised/prompt.md", "begin with the disk")
	r.has("review.md", "## What follows")
}

// L-1, row 4: an introduction that does not go with the outline is withdrawn, and written anew.
func TestLiteratureIntroductionNotAsOutlined(t *testing.T) {
	r := literature(t, `
- match: {node: introduction, generation: "1"}
  answer: "An introduction to something else."
`)
	r.run(0)
	r.undone("introduction", "the introduction does not name")
	r.times("introduction", 2)
	r.has("review.md", "# Surviving the process")
}

// chatter is an answer without the section that was asked for.
const chatter = `
- match: {node: [NODES]}
  answer: "Sure, here is a section about that."
`

func chats(nodes string) string { return strings.Replace(chatter, "NODES", nodes, 1) }

// L-1, rows 5 and 6a: a draft that is not valid goes back to its writer with the issues. After the third one what there is
// is archived, and another agent writes the section.
func TestLiteratureSectionReassigned(t *testing.T) {
	r := literature(t, chats("write/durable-execution"), "threshold: 3, each", "threshold: 9, each")
	r.run(0)
	r.times("write/durable-execution", 3)
	r.is("write/durable-execution", "failed section_invalid")
	r.has("_orchestrator/nodes/write/durable-execution/prompt-FAILED-3.md", "Your previous answer was not accepted", "it cites nothing")
	r.undone("write/durable-execution", "it cites nothing")
	r.has("failed/durable-execution.md", "Archive failed section, reassign to different agent")
	r.is("rewrite/durable-execution", "completed")
	r.times("write/failure-models", 1)
	r.has("review.md", "Boki puts a shared log below such functions")
}

// L-2, L-7, stage 5: a section that fails validation three times opens the breaker; the text is made without it.
func TestLiteratureSectionFailsThreeTimes(t *testing.T) {
	r := literature(t, chats("write/durable-execution, rewrite/durable-execution"))
	r.run(0, "--jobs", "1") // nobody else succeeds between its attempts
	r.times("write/durable-execution", 3)
	r.is("rewrite/durable-execution", "rejected breaker_open")
	r.opened("stage-5")
	r.has("review.md", "## Undoing what cannot be rolled back", "Left out, because nobody could write it: durable-execution.")
	if strings.Contains(r.read("review.md"), "## Durable execution") {
		t.Error("the section that failed is in the text")
	}
}

func (r *litRun) opened(breaker string) {
	r.t.Helper()
	for _, e := range r.events() {
		if e.Type == "BREAKER_CHANGED" && e.Payload.State == "open" && strings.Contains(r.read("_orchestrator/events.ndjson"), `"breaker":"`+breaker+`"`) {
			return
		}
	}
	r.t.Errorf("breaker %s never opened", breaker)
}

// L-1, row 6b: a deep check that takes too long leaves a section for manual review.
func TestLiteratureDeepCheckTimeout(t *testing.T) {
	r := literature(t, "", "each: [deep], timeout: 30m", "each: [deep], timeout: 8s")
	r.run(0, "--set", "agent.faults=node=deep/durable-execution:hang*inf")
	r.is("deep/durable-execution", "failed deadline")
	r.undone("deep/durable-execution", "")
	r.has("manual-review/durable-execution.md", "Flag issues for manual review")
	r.has("review.md", "## Durable execution", "To be checked by hand: durable-execution.")
}

// L-1 and L-4, row 6c: a review that takes too long is not tried again. The section passes with uncertainty.
func TestLiteratureDevilsAdvocateTimeout(t *testing.T) {
	r := literature(t, "", "timeout: {attempt: 30m}", "timeout: {attempt: 8s}")
	r.run(0, "--set", "agent.faults=node=challenge/durable-execution:hang*inf")
	r.times("challenge/durable-execution", 1)
	r.is("challenge/durable-execution", "failed stalled")
	r.undone("challenge/durable-execution", "")
	r.has("uncertain/durable-execution.md", "Archive review state, pass with uncertainty")
	r.has("review.md", "## Durable execution", "Passed with uncertainty, the objection against it stands: durable-execution.")
}

// L-4, L-8, 6c: an agent that crashes is asked once more; then the section passes with uncertainty.
func TestLiteratureDevilsAdvocateCrash(t *testing.T) {
	r := literature(t, "")
	r.run(0, "--set", "agent.faults=node=challenge/failure-models:crash*1;node=challenge/durable-execution:crash*2")
	r.times("challenge/failure-models", 2)
	r.is("challenge/failure-models", "completed")
	r.times("challenge/durable-execution", 2)
	r.is("challenge/durable-execution", "failed killed")
	r.has("review.md", "stands: durable-execution.")
}

// allCrash has every review of a section fail.
const allCrash = "agent.faults=node=challenge/*:crash*2"

// L-2, L-3, L-4: two failures in a row open the breaker of stage 6c. The user is asked, in the words of the table.
func TestLiteratureDevilsAdvocateBreaker(t *testing.T) {
	r := literature(t, "", "pools: {agents: 5}", "pools: {agents: 1}")
	r.answers["stage-6c"] = []string{"continue: the deadline is near"}
	r.run(0, "--set", allCrash)
	r.opened("stage-6c")
	if len(r.asked) != 2 {
		t.Fatalf("asked: %+v", r.asked)
	}
	q := r.asked[1]
	if q.Type != "stage-6c" || q.Default != "extend" || !strings.Contains(q.Message, "Devil's advocate review failed for consecutive sections.") ||
		!slices.Equal(q.Options, []string{"extend", "continue", "wait", "abort"}) {
		t.Errorf("asked: %+v", q)
	}
	left := 0
	for _, section := range []string{"failure-models", "logging-and-recovery", "checkpoints-and-replay", "sagas-and-compensation", "durable-execution"} {
		if r.status("challenge/"+section) == "rejected breaker_open" {
			left++
		}
	}
	if left != 3 {
		t.Errorf("%d sections were not begun, want 3", left)
	}
	r.has("review.md", "stands: failure-models, logging-and-recovery, checkpoints-and-replay, sagas-and-compensation, durable-execution.")
}

// stands has the devil's advocate keep an objection against some sections.
const stands = `
- match: {node: "challenge/*", section: [failure-models, checkpoints-and-replay, durable-execution]}
  answer: |
    The objection stands.

    {{"BLOCK"}}json
    {"thesis": "A thesis.", "objection": "An objection.", "resolved": false}
    {{"BLOCK"}}
`

// L-4: objections against three sections stand. The user decides; with more time all of them are answered.
func TestLiteratureDisagreement(t *testing.T) {
	r := literature(t, strings.ReplaceAll(stands, "BLOCK", "```"))
	r.answers["disagreement"] = []string{"extend-timeout"}
	r.run(0)
	if q := r.asked[len(r.asked)-1]; q.Message != "Stage 6c: 3 sections have unresolved disagreement" || q.Default != "" {
		t.Errorf("asked: %+v", q)
	}
	r.times("challenge/again/checkpoints-and-replay", 1)
	r.times("challenge/again/logging-and-recovery", 0)
	if strings.Contains(r.read("review.md"), "## Notes") {
		t.Error("an objection that was answered is noted")
	}
}

// inconsistent has the synthesis find that a section contradicts another one.
func inconsistent(nodes string) string {
	return strings.ReplaceAll(`
- match: {node: [`+nodes+`]}
  answer: |
    {{trim (between .Prompt "<!-- SECTIONS -->" "<!-- END -->")}}

    {{"BLOCK"}}json
    {"additions": 1.0, "inconsistencies": [{"section": "durable-execution", "with": "what the section on sagas says of retries"}]}
    {{"BLOCK"}}
`, "BLOCK", "```")
}

// L-1, row 7: sections contradict each other. The synthesis is archived, the section goes back with the reason, and there is
// a second synthesis.
func TestLiteratureInconsistent(t *testing.T) {
	r := literature(t, inconsistent("synthesis"))
	r.run(0)
	r.undone("synthesis", "durable-execution contradicts what the section on sagas says of retries")
	r.has("_orchestrator/nodes/revise/durable-execution/prompt.md", "An earlier version contradicts other sections: what the section on sagas says of retries")
	r.times("revise/failure-models", 0)
	r.is("synthesis/second", "completed")
	r.is("floor", "skipped")
	r.has("review.md", "## What follows")
}

// L-3: what is not good enough is never taken unasked, however long nobody answers.
func TestLiteratureQualityFloor(t *testing.T) {
	r := literature(t, inconsistent("synthesis, synthesis/second"), "&interactive 5m", "&interactive 100ms")
	r.run(3)
	q := r.open()
	if len(q) != 1 || q[0].Type != "quality" || q[0].Default != "" || !strings.HasPrefix(q[0].Message, "Cannot proceed: minimum quality not met. Issue: durable-execution") {
		t.Fatalf("asked: %+v", q)
	}
	r.ends(0, "respond", q[0].ID, "accept")
	r.goOn(0, "resume", "--quiet")
	r.has("review.md", "## References")
}

// L-1 and L-4, row 7.5: the review of the synthesis takes too long. It is archived, and the text is polished with a warning.
func TestLiteratureSynthesisReviewTimeout(t *testing.T) {
	r := literature(t, "", "timeout: {attempt: 60m}", "timeout: {attempt: 2s}")
	r.run(0, "--set", "agent.faults=node=synthesis/challenge:hang*inf")
	r.is("synthesis/challenge", "failed stalled")
	r.undone("synthesis/challenge", "")
	r.has("uncertain/synthesis.md", "Archive review, proceed to Stage 8 with warning")
	r.has("review.md", "Synthesis review incomplete.")
}

// silent has the synthesis not say how much of it is new.
const silent = `
- match: {node: synthesis}
  answer: |
    {{trim (between .Prompt "<!-- SECTIONS -->" "<!-- END -->")}}

    {{"BLOCK"}}json
    {"inconsistencies": []}
    {{"BLOCK"}}
`

// L-4, 7.5: whether the synthesis is to be reviewed cannot be told. The stakes decide.
func TestLiteratureTriggerAmbiguous(t *testing.T) {
	says := strings.ReplaceAll(silent, "BLOCK", "```")
	for tier, want := range map[string]string{"STANDARD": "skipped", "HIGH-STAKES": "completed"} {
		t.Run(tier, func(t *testing.T) {
			r := literature(t, says)
			rewrite(t, filepath.Join(filepath.Dir(r.spec), "sim", "answers.yaml"), func(old string) string {
				return strings.Replace(old, `"tier": "STANDARD"`, `"tier": "`+tier+`" `, 1)
			})
			r.run(0)
			r.is("synthesis/challenge", want)
		})
	}
}

// major has the editor find that a section needs more than language.
var major = strings.ReplaceAll(`
- match: {node: polish}
  answer: |
    {{trim (between .Prompt "<!-- DOCUMENT -->" "<!-- END -->")}}

    {{"BLOCK"}}json
    {"major": ["Checkpoints and replay"]}
    {{"BLOCK"}}
- match: {node: repair/*}
  answer: |
    ## Checkpoints and replay

    Shorter than before [chandy85].
`, "BLOCK", "```")

// L-1, row 8: the editor finds a section that needs more than language. It is edited again, alone.
func TestLiteratureMajorIssues(t *testing.T) {
	r := literature(t, major)
	r.run(0)
	r.times("repair/checkpoints-and-replay", 1)
	r.times("repair/failure-models", 0)
	r.has("review.md", "## Checkpoints and replay\n\nShorter than before [chandy85].\n\n## Undoing what cannot be rolled back")
	if strings.Contains(r.read("review.md"), "A job that keeps a log for days") {
		t.Error("the section as it was is still there")
	}
}

// L-3, L-7: an agent exceeds the time of its stage. The user is asked; with more time the stage is done.
func TestLiteratureStageTimeout(t *testing.T) {
	r := literature(t, "", "of: [scope], timeout: 30m", "of: [scope], timeout: 2s")
	r.answers["scope"] = slices.Repeat([]string{"extend"}, 9) // a slow machine needs more than one
	r.run(0, "--set", "agent.faults=node=scope:hang*1")
	q := r.asked[0]
	if q.Type != "timeout" || q.Stage != "1 Scope" || q.Default != "extend" || !slices.Contains(q.Options, "skip") || !slices.Contains(q.Options, "abort") {
		t.Errorf("asked: %+v", q)
	}
	r.has("scope.md", "## Questions")
}

// L-8: an answer that cannot be read is not handed on: its producer is asked again, with the reason.
func TestLiteratureHandoffRejected(t *testing.T) {
	r := literature(t, "")
	r.run(0, "--set", "agent.faults=node=outline:bad_answer*1")
	r.times("outline", 2)
	r.has("_orchestrator/nodes/outline/prompt.md", "Your previous answer was not accepted")
}

// L-8: the search fails three times; the review is made of the library alone.
func TestLiteratureSearchFails(t *testing.T) {
	r := literature(t, "")
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	r.run(0, "--set", "search="+server.URL)
	if n := asked.Load(); n != 3 {
		t.Errorf("the search was asked %d times", n)
	}
	r.has("_orchestrator/nodes/review/databases/prompt.md", "Nothing: there was no search.")
}

// L-7, L-8: what is kept of the state is damaged. It is made again from the log.
func TestLiteratureStateCorrupted(t *testing.T) {
	r := literature(t, "")
	r.answers["outline/first"] = nil
	r.run(3)
	own := filepath.Join(r.site.out, "_orchestrator")
	for _, name := range []string{"snapshot.json", "state.json"} {
		if err := os.WriteFile(filepath.Join(own, name), []byte("{\"half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.answers = map[string][]string{}
	r.respond()
	r.goOn(0, "resume", "--quiet")
	r.times("scope", 1)
	r.has("review.md", "## What follows")
	r.must("verify")
}

// L-6: every field of the document's records is where docs/reference/documents.md says.
func TestLiteratureDocument(t *testing.T) {
	r := literature(t, "")
	r.run(0, "--set", "agent.faults=node=outline:bad_answer*1; node=challenge/durable-execution:exit*inf")
	documented(t, r.site, `(error_log|log|compensation_record|escalation|interrupt|state|recovery)`, 24)
}

// S-4, L-7: the log itself is damaged. What to type is said: it goes on from the end of a stage, the last one, the scope or any
// other, or from what stands before the damage, with a stage done again; what came before stays as it was.
func TestLiteratureRecovery(t *testing.T) {
	for name, c := range map[string]struct {
		way          string   // how the command begins that the message holds
		resume       []string // what is added to the resume after it
		again, stays string   // nodes that are, and are not, done again
	}{
		"from the last stage":   {"revert --checkpoint stage-6c-complete", nil, "synthesis", "challenge/durable-execution"},
		"from a stage":          {"revert --checkpoint stage-4-complete", nil, "write/durable-execution", "introduction"},
		"with the scope alone":  {"revert --checkpoint stage-1-complete", nil, "review/databases", "scope"},
		"a stage is done again": {"resume --salvage", []string{"--rerun", "stage-7/"}, "synthesis", "challenge/durable-execution"},
	} {
		t.Run(name, func(t *testing.T) {
			r := literature(t, "")
			r.run(0)
			own := filepath.Join(r.site.out, "_orchestrator")
			rewrite(t, filepath.Join(own, "events.ndjson"), func(log string) string {
				lines := strings.SplitAfter(log, "\n")
				k := slices.IndexFunc(lines, func(l string) bool {
					return strings.Contains(l, "WORK_ITEM_STARTED") && strings.Contains(l, `"node":"polish"`)
				})
				lines[k] = strings.Replace(lines[k], `"attempt":1`, `"attempt":2`, 1)
				return strings.Join(lines, "")
			})
			for _, name := range []string{"snapshot.json", "snapshot.json.bak"} {
				if err := os.Remove(filepath.Join(own, name)); err != nil {
					t.Fatal(err)
				}
			}
			said := r.site.ends(5, "resume")
			command, id, _ := strings.Cut(c.way, "--checkpoint ")
			if !strings.Contains(said, "dagrun "+command) || !strings.Contains(said, id) {
				t.Fatalf("how to go on is not said:\n%s", said)
			}
			status := 0
			if id == "" {
				status = 3 // the end of the log, which is lost, tells of work that was paid for
			}
			r.ends(status, strings.Fields(c.way)...)
			r.goOn(0, append([]string{"resume", "--quiet"}, c.resume...)...)
			r.times(c.again, 2)
			r.times(c.stays, 1)
			r.has("review.md", "## What follows")
			r.must("verify")
		})
	}
}

// L-7: with one place for agents they wait for each other, and all is done.
func TestLiteratureResourceLimit(t *testing.T) {
	r := literature(t, "", "pools: {agents: 5}", "pools: {agents: 1}")
	r.run(0)
	running, agents := "", 0
	for _, e := range r.events() {
		switch {
		case e.Type == "LLM_CALL_STARTED" && running != "":
			t.Fatalf("%s was asked while %s was", e.Payload.Node, running)
		case e.Type == "LLM_CALL_STARTED":
			running = e.Payload.Node
			agents++
		case e.Type == "LLM_CALL_FINISHED":
			running = ""
		}
	}
	if agents < 20 {
		t.Errorf("only %d calls", agents)
	}
}

// ends runs the program, which must end with a status, and keeps what it says.
func (r *litRun) ends(status int, args ...string) {
	r.t.Helper()
	r.out += r.site.ends(status, args...)
}
