package runlog

import (
	"encoding/json"
	"testing"

	"dagrun.dev/dag"
)

// 000 §2.3: decisions about nodes that have a counted label are called what the phase says, with fields of the note or
// labels in it; others, and those of nodes beside it, keep the program's own word.
func TestWordsOfDecisions(t *testing.T) {
	p := &dag.Plan{Phases: []dag.Phase{
		{Group: "a", Counts: &dag.Counted{Label: "leg", Decisions: map[string]string{"skip": "skip-leg", "execute": "walk-{by}-{none}", "found": "{name}-found"}}},
		{Group: "b", Steps: &dag.Counted{Label: "by", Decisions: map[string]string{"found": "{by}"}}, Parts: &dag.Counted{Label: "leg", Decisions: map[string]string{"skip": "x"}}},
	}}
	leg := map[string]string{"leg": "1", "by": "foot"}
	for _, tt := range []struct {
		node       *dag.Node
		what, want string
	}{
		{&dag.Node{Group: "a", Labels: leg}, "skip", "skip-leg"},
		{&dag.Node{Group: "a/sub", Labels: leg}, "execute", "walk-foot-{none}"},
		{&dag.Node{Group: "a", Labels: leg}, "found", "spring-found"},
		{&dag.Node{Group: "a", Labels: leg}, "retry", "retry"},
		{&dag.Node{Group: "a", Labels: map[string]string{"by": "foot"}}, "skip", "skip"},
		{&dag.Node{Group: "b", Labels: leg}, "found", "foot"},
		{&dag.Node{Group: "b", Labels: leg}, "skip", "x"},
		{&dag.Node{Group: "c", Labels: leg}, "skip", "skip"},
		{nil, "skip", "skip"},
	} {
		w := writer{&entry{plan: p, node: tt.node}, func(log int, line []byte) {
			var got struct{ Decision, Name string }
			if err := json.Unmarshal(line, &got); err != nil || log != decisionLog || got.Decision != tt.want || got.Name != "spring" {
				t.Errorf("%+v, %s: %s %v, want %s", tt.node, tt.what, line, err, tt.want)
			}
		}}
		w.decide(tt.what, json.RawMessage(`{"name":"spring"}`))
	}
}
