package executor

import (
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// B-3: an attempt whose answer was lost is made again where that does no harm; where its effect must
// not happen twice, a person is asked first.
func TestLostAnswer(t *testing.T) {
	plan := func(effect dag.Effect) *dag.Plan {
		return &dag.Plan{
			Categories: []dag.Category{{Name: "answer_lost", Class: "transient", Then: "retry"}},
			Nodes:      []dag.Node{{ID: "a", Effect: effect, With: script("lost:answer_lost", "ok"), Retry: dag.Retry{Attempts: 3}}},
		}
	}
	onStage(t, plan("idempotent"), func(s *stage) {
		s.carryOn()
		s.want("start a.1", "failed a.1 answer_lost", "start a.2", "completed a.2", "ended")
	})
	onStage(t, plan("once"), func(s *stage) {
		if v := s.carryOn(); v.Status != machine.RunPause || v.Pause.Reason != "escalation" {
			t.Errorf("%+v", v)
		}
		s.want("start a.1", "lost a.1 answer_lost", "asked a", "paused escalation")
	})
}
