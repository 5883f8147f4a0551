package specs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A tale is what happens to a pipeline of the documents: how its agents answer and fail, and what its user says.
type tale struct {
	spec    func(t *testing.T) string
	args    []string            // more arguments of apply
	answers map[string][]string // by question, without its number, one after the other; cancel ends the run and undoes it
	must    []string            // types of event that it is about
}

// tales take the pipelines of both documents along every way on which work is undone, sent back, asked about or left out.
var tales = map[string]tale{
	// Every row of the compensation matrix but those that take time, one after the other.
	"literature/worst": {
		spec: func(t *testing.T) string {
			says := disagree(`"1"`) + chats("write/durable-execution") + `
- match: {node: introduction, generation: "1"}
  answer: "An introduction to something else."
` + strings.ReplaceAll(stands, "BLOCK", "```") + strings.Replace(inconsistent("synthesis, synthesis/second"), "1.0", "50.0", 1) + major
			return literatureSpec(t, says, "threshold: 3, each", "threshold: 9, each")
		},
		args: []string{"--set", "agent.faults=node=challenge/failure-models:crash*2;node=synthesis/challenge:crash*2;node=outline:bad_answer*1"},
		answers: map[string][]string{
			"approval/outline/first": {"reject", "approve"}, "approval/outline/second": {"reject"},
			"approval/disagreement": {"extend-timeout"}, "approval/floor": {"accept"},
		},
		must: []string{"COMPENSATION_FINISHED", "REWOUND", "ESCALATION_ANSWERED", "CHECKPOINT_CREATED", "RUN_COMPLETED"},
	},
	// Breakers open; one asks, and nobody answers.
	"literature/breakers": {
		spec: func(t *testing.T) string {
			return literatureSpec(t, disagree(`"1", "2", "3"`)+chats("write/durable-execution, rewrite/durable-execution"), "&interactive 5m", "&interactive 100ms", "openFor: 10m", "openFor: 10ms")
		},
		args:    []string{"--set", allCrash},
		answers: map[string][]string{"approval/outline/first": {"approve"}},
		must:    []string{"BREAKER_CHANGED", "ESCALATION_OPENED", "ESCALATION_ANSWERED", "RUN_COMPLETED"},
	},
	// The user gives up, and all is undone.
	"literature/cancelled": {
		spec:    func(t *testing.T) string { return literatureSpec(t, "") },
		answers: map[string][]string{"approval/outline/first": {"cancel"}},
		must:    []string{"COMPENSATION_STARTED", "COMPENSATION_FINISHED", "RUN_FAILED"},
	},
	"launch/mended": {
		spec: launchCopy,
		args: []string{"--set", "agent.faults=section=lock:overloaded"},
		must: []string{"PLAN_EXTENDED", "LLM_CALL_FAILED", "LLM_CALL_FINISHED", "ISSUE_RESOLVED", "PR_OPENED", "RUN_COMPLETED"},
	},
	// No page is ever mended: the gates fail to the last round, and the run with them.
	"launch/failed": {
		spec: launchCopy,
		args: []string{"--set", "agent.faults=role=fix:refused*inf"},
		must: []string{"ISSUE_OPENED", "LLM_CALL_FAILED", "RUN_FAILED"},
	},
	// The account is closed, and the user gives up.
	"launch/cancelled": {
		spec:    launchCopy,
		args:    []string{"--set", "agent.faults=section=put:auth"},
		answers: map[string][]string{"": {"cancel"}},
		must:    []string{"LLM_CALL_FAILED", "RUN_PAUSED", "RUN_FAILED"},
	},
}

func launchCopy(t *testing.T) string {
	return editIn(t, launch, "spec.cue", replaced(`"300ms"`, `"10ms"`))
}

// next is what is done with a run of the tale, by what its log holds.
func (x tale) next(spec string) func(events []record) []string {
	return func(events []record) []string {
		if len(events) <= 2 {
			return append([]string{"apply", spec, "--seed", "7", "--quiet", "--jobs", "1"}, x.args...)
		}
		var open []string
		answered := map[string]int{} // by question, without its number
		for _, e := range events {
			switch id := e.Payload.ID; e.Type {
			case "ESCALATION_OPENED":
				open = append(open, id)
			case "ESCALATION_ANSWERED":
				answered[filepath.Dir(id)]++
				open = slices.DeleteFunc(open, func(o string) bool { return o == id })
			case "ESCALATION_CLOSED":
				open = slices.DeleteFunc(open, func(o string) bool { return o == id })
			}
		}
		last := events[len(events)-1]
		switch last.Type {
		case "RUN_COMPLETED", "RUN_FAILED":
			return nil
		case "RUN_PAUSED":
			for _, id := range append(open, "") {
				list := x.answers[strings.TrimSuffix(filepath.Dir(id), ".")]
				switch n := answered[filepath.Dir(id)]; {
				case n >= len(list):
				case list[n] == "cancel":
					return []string{"cancel", "--undo"}
				default:
					return []string{"respond", id, list[n], "--by", "editor"}
				}
			}
		}
		return []string{"resume", "--quiet", "--jobs", "1"}
	}
}

// S-5, S-7, L-1, L-2, L-3, L-8, V-2: whatever happens to the pipelines of the documents, a run that is killed at any of its
// events ends as the undisturbed one does; what was undone is undone once, and who was asked is not asked again.
// Here at events of the kinds that a tale is about; make faults takes them all, each in a run of its own.
func TestFaultsOfTheDocuments(t *testing.T) {
	t.Parallel()
	for name, x := range tales {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := newSite(t)
			want.live(x.next(x.spec(t)))
			events := want.events()
			for _, typ := range x.must {
				if count(events, typ) == 0 {
					t.Errorf("the undisturbed run makes no %s", typ)
				}
			}
			sample, seen := os.Getenv("DAGRUN_FAULTS") == "", map[string]int{}
			all := slices.DeleteFunc(points(events), func(p point) bool {
				// The command that answers writes that and ends: nothing else can be lost with it.
				said := p.typ == "ESCALATION_ANSWERED" && events[p.seq-1].Payload.By == "editor"
				// A breaker asks only as long as it is open, which a start may take longer than here.
				timed := strings.HasPrefix(events[p.seq-1].Payload.ID, "breaker/") && strings.HasPrefix(p.typ, "ESCALATION_")
				seen[p.typ]++
				return said || timed || sample && (!slices.Contains(x.must, p.typ) || seen[p.typ] > 3)
			})
			matrix{want: want, points: all, next: x.next, before: true, spec: func(t *testing.T, calls string) string {
				spec := x.spec(t)
				rewrite(t, spec, counting(calls))
				return spec
			}}.walk(t)
		})
	}
}
