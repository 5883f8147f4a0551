package specs_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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

// D-5, V-2, L-9: the whole run, offline. It goes through the states that the specification declares, opens an issue for each
// gate that fails and resolves it when it passes; the pull request is a commit on a branch of a bare repository.
func TestLaunch(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.must("apply", launch, "--seed", "7", "--quiet")
	moves := map[string][]string{}
	for _, e := range s.events() {
		if b := e.Payload; e.Type == "RUN_STATE_CHANGED" {
			if was := append([]string{map[bool]string{true: "CREATED", false: "NOT_STARTED"}[b.Section == ""]}, moves[b.Section]...); b.Old != was[len(was)-1] {
				t.Errorf("section %q goes from %s to %s, and it was in %s", b.Section, b.Old, b.New, was[len(was)-1])
			}
			moves[b.Section] = append(moves[b.Section], b.New)
		}
	}
	want := map[string]string{"": "CLONED_INPUTS INGESTED FACTS_READY PLAN_READY DRAFTING DRAFT_READY LINKING VALIDATING FIXING VALIDATING READY_FOR_PR PR_OPENED DONE"}
	for _, section := range []string{"start", "retry", "lock", "put", "log"} {
		want[section] = "OUTLINED DRAFTED MERGED_IN_WORKTREE DONE"
	}
	for section, states := range want {
		if got := strings.Join(moves[section], " "); got != states {
			t.Errorf("states of section %q: %s, want %s", section, got, states)
		}
	}
	if len(moves) != len(want) {
		t.Errorf("states of %d sections, want %d", len(moves), len(want))
	}
	open := map[string]string{}
	for _, e := range s.events() {
		if strings.HasPrefix(e.Type, "ISSUE_") {
			open[e.Payload.IssueID] += e.Type + " "
		}
	}
	for _, gate := range []string{"coverage", "statuses", "names", "links"} {
		if got := open["validation/"+gate]; got != "ISSUE_OPENED ISSUE_RESOLVED " {
			t.Errorf("the issue of %s: %s", gate, got)
		}
	}
	if len(open) != 4 {
		t.Errorf("issues: %v", open)
	}
	s.pullRequest()
}

// pullRequest looks at what the run asks to be taken over.
func (s *site) pullRequest() {
	s.t.Helper()
	i := slices.IndexFunc(s.events(), func(e record) bool { return e.Type == "PR_OPENED" })
	if i < 0 {
		s.t.Fatal("no pull request was opened")
	}
	pr := s.events()[i].Payload
	git := func(args ...string) string {
		s.t.Helper()
		out, err := exec.Command("git", append([]string{"--git-dir=" + filepath.Join(s.out, "repo.git")}, args...)...).CombinedOutput()
		if err != nil {
			s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, ref := range []string{"refs/heads/" + pr.Branch, "refs/pull/1/head"} {
		if got := git("rev-parse", ref); got != pr.Commit {
			s.t.Errorf("%s is at %s, the event says %s", ref, got, pr.Commit)
		}
	}
	if pr.Base != "main" || git("rev-parse", pr.Branch+"~1") != git("rev-parse", "main") {
		s.t.Errorf("the branch does not begin at %s", pr.Base)
	}
	if got := git("diff", "--name-only", "main", pr.Branch); strings.Count(got, "\n") != 5 || git("show", pr.Branch+":docs/keep/retry.md")+"\n" != s.read("docs/retry.md") {
		s.t.Errorf("the commit changes\n%s", got)
	}
	git("fsck", "--strict")
}
