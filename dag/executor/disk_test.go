package executor

import (
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// S-10, R-1: a full disk is no failure of the node that met it. Nothing is tried again, so nothing is
// paid again, until somebody has made room and the run is resumed.
func TestFullDiskPausesTheRun(t *testing.T) {
	onStage(t, &dag.Plan{Nodes: []dag.Node{
		{ID: "a", With: script("full", "ok"), Retry: dag.Retry{Attempts: 3}},
		{ID: "b", Needs: []string{"a"}},
	}}, func(s *stage) {
		if v := s.carryOn(); v.Status != machine.RunPause || v.Pause.Reason != "disk" || v.Pause.Node != "a" {
			t.Errorf("%+v", v)
		}
		s.want("start a.1", "failed a.1 disk", "paused disk")
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Errorf("after making room: %+v", v)
		}
	})
}

// R-7, S-10: what is paid for is not started where its answer could not be kept.
func TestNoRoomNoCall(t *testing.T) {
	onStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Paid: true}, {ID: "b", Paid: true}, {ID: "c"}}}, func(s *stage) {
		room := int64(1 << 20)
		s.opts.Free = func() int64 { return room }
		if v := s.carryOn(); v.Status != machine.RunPause || v.Pause.Reason != "disk" {
			t.Errorf("%+v", v)
		}
		for _, line := range s.log {
			if line == "start a.1" || line == "start b.1" {
				t.Error(line)
			}
		}
		room = 1 << 30
		if v := s.carryOn(); v.Status != machine.RunDone {
			t.Errorf("after making room: %+v", v)
		}
	})
}
