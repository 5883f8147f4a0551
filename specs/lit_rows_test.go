package specs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/program"
)

// litRows are the rows of the tables of the document on error handling, each with what holds it: tests of this folder, and
// scripts and tests elsewhere by their path, after a colon the words of their title.
var litRows = map[string]map[string]string{
	"compensation matrix": {
		"1 user abort":                 "TestLiteratureUserAborts",
		"2 convergence < 2":            "TestLiteratureNotConverged",
		"3 user rejects 2x":            "TestLiteratureOutlineRejectedTwice",
		"4 inconsistent with outline":  "TestLiteratureIntroductionNotAsOutlined",
		"5 fails validation 3x":        "TestLiteratureSectionReassigned",
		"6a validation fails":          "TestLiteratureSectionReassigned",
		"6b deep check timeout":        "TestLiteratureDeepCheckTimeout",
		"6c timeout":                   "TestLiteratureDevilsAdvocateTimeout",
		"6c agent crash":               "TestLiteratureDevilsAdvocateCrash",
		"6c persistent disagreement":   "TestLiteratureDisagreement",
		"7 cross-section inconsistent": "TestLiteratureInconsistent",
		"7.5 timeout":                  "TestLiteratureSynthesisReviewTimeout",
		"7.5 trigger ambiguous":        "TestLiteratureTriggerAmbiguous",
		"8 major issues":               "TestLiteratureMajorIssues",
	},
	"circuit breakers": {
		"stage 2":     "TestLiteratureNeverConverges",
		"stage 5":     "TestLiteratureSectionFailsThreeTimes",
		"stage 6c":    "TestLiteratureDevilsAdvocateBreaker",
		"transitions": "../dag/executor/breaker_test.go:TestBreakerTransitions",
	},
	"escalations": {
		"stage timeout":   "TestLiteratureStageTimeout",
		"breaker opens":   "TestLiteratureDevilsAdvocateBreaker",
		"compensation":    "../internal/cli/testdata/script/notify.txtar:L-1, L-3",
		"quality floor":   "TestLiteratureQualityFloor",
		"resource limit":  "../internal/cli/testdata/script/pool.txtar:L-8",
		"answer format":   "TestLiteratureDevilsAdvocateBreaker",
		"by another user": "../internal/cli/testdata/script/escalations.txtar:L-3",
	},
	"nobody answers": {
		"timeout: extend":             "../dag/machine/testdata/machine/escalate.txt:is given more time",
		"breaker: go on":              "../dag/machine/testdata/machine/escalate.txt:an open breaker has a type and a policy of its own",
		"compensation: wait for user": "../dag/machine/testdata/machine/compensate.txt:go on without this undo", // no deadline
		"quality floor: wait":         "TestLiteratureQualityFloor",
	},
	"recovery checklist": {
		"interrupt in stage 2":         "TestLiteratureInterrupted",
		"interrupt in stage 5":         "TestLiteratureInterrupted",
		"section fails validation 3x":  "TestLiteratureSectionFailsThreeTimes",
		"user rejects 2x":              "TestLiteratureOutlineRejectedTwice",
		"state file corrupted":         "TestLiteratureStateCorrupted",
		"agent timeout":                "TestLiteratureStageTimeout",
		"resource limit":               "TestLiteratureResourceLimit",
		"resume after system restart":  "TestFaultsOfTheDocuments",
		"partial pieces are preserved": "../internal/cli/testdata/script/pieces.txtar:L-5, R-8",
	},
	"recovery on corruption": {
		"1 try the backup":         "TestLiteratureStateCorrupted",
		"2 scan for a checkpoint":  "TestLiteratureRecovery",
		"3 resume from checkpoint": "TestLiteratureRecovery",
		"3 resume from stage":      "TestLiteratureRecovery",
		"3 restart, keep scope":    "TestLiteratureRecovery",
		"3 options for the user":   "../internal/cli/recover_test.go:TestRecoveryIsChosen",
	},
	"failure modes": {
		"agent timeout":              "TestLiteratureStageTimeout",
		"agent crash":                "TestLiteratureDevilsAdvocateCrash",
		"parse error":                "TestLiteratureHandoffRejected",
		"state corruption":           "TestLiteratureStateCorrupted",
		"convergence never achieved": "TestLiteratureNeverConverges",
		"infinite validation loop":   "TestLiteratureQualityFloor",
		"resource exhaustion":        "../internal/cli/testdata/script/pool.txtar:L-8",
		"network failure":            "TestLiteratureSearchFails",
	},
}

// L-1, L-2, L-3, L-4, L-7, L-8: every row of the document has a test that is there.
func TestLiteratureRows(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var here strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		here.Write(b)
	}
	for table, rows := range litRows {
		for row, by := range rows {
			text, want := here.String(), "func "+by+"("
			if path, title, elsewhere := strings.Cut(by, ":"); elsewhere {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Errorf("%s, %s: %v", table, row, err)
				}
				text, want = string(b), title
			}
			if !strings.Contains(text, want) {
				t.Errorf("%s, %s: there is no %s", table, row, by)
			}
		}
	}
}

// L-7, L-5: an interrupt while several agents are at work. What was complete stays, and the rest is done when the run goes on.
func TestLiteratureInterrupted(t *testing.T) {
	for stage, nodes := range map[string]string{"2": "review/", "5": "write/"} {
		t.Run("stage "+stage, func(t *testing.T) {
			faults := filepath.Join(t.TempDir(), "faults.yaml") // the agents of the stage do not end before they are interrupted
			says := func(text string) {
				if err := os.WriteFile(faults, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			says("- {match: {node: '" + nodes + "*'}, fault: hang, times: -1}\n")
			r := literature(t, "", `faults: "${params.agent.faults}"`, "faults: "+faults)
			args := []string{"apply", r.spec}
			if stage == "5" {
				r.answers["outline/first"] = nil
				r.run(3)
				r.answers = map[string][]string{}
				r.respond()
				args = []string{"resume"}
			}
			args = append(args, "--quiet", "--jobs", "4", "--stop-after", "10ms", "--output-dir", r.site.out)
			cmd := program.Command(t.Context(), filepath.Join(program.Folder(t), "dagrun"), args...)
			cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+r.state, "HOME="+filepath.Dir(r.site.out))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			program.Await(t, "agents at work side by side", func() bool {
				n := 0
				for _, e := range r.eventsSoFar() {
					if e.Type == "LLM_CALL_STARTED" && strings.HasPrefix(e.Payload.Node, nodes) {
						n++
					}
				}
				return n > 1
			})
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("interrupted: %v", err)
			}
			if n := len(r.facts("RUN_PAUSED")); n == 0 {
				t.Error("it is not paused")
			}
			says("[]\n")
			done := map[string]bool{}
			for id, e := range finished(r.events()) {
				done[id] = e.Payload.Status == "completed"
			}
			before := len(r.events())
			r.goOn(0, "resume", "--quiet")
			again := 0
			for _, e := range r.events()[before:] {
				if e.Type != "WORK_ITEM_STARTED" {
					continue
				}
				if done[e.Payload.Node] {
					t.Errorf("%s was complete and began again", e.Payload.Node)
				}
				if strings.HasPrefix(e.Payload.Node, nodes) {
					again++
				}
			}
			if again < 2 {
				t.Errorf("%d pieces were stopped and began again", again)
			}
			r.has("review.md", "## Durable execution", "## What follows")
			r.must("verify")
		})
	}
}
