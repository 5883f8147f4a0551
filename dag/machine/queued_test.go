package machine

import (
	"testing"
	"time"

	"dagrun.dev/dag"
)

// An attempt that lies in a queue uses up no time of its node: the total time, and how long it took, count from when a
// worker began. A start that is recorded twice begins it once.
func TestTimeCountsFromWhenTheWorkBegins(t *testing.T) {
	limit := dag.Timeout{Total: dag.Duration(time.Minute)}
	g := mustGraph(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "k", Timeout: limit}}})
	s, start := new(State), time.Unix(1700000000, 0).UTC()
	apply := func(after time.Duration, b Body) error {
		e := New(start.Add(after), b)
		e.Plan = g
		return s.Apply(&e)
	}
	stops := func(after time.Duration) bool {
		s.Advance(start.Add(after))
		cmds, _ := s.Decide(start.Add(after), 1)
		return len(cmds) == 1 && cmds[0].Op == Cancel
	}
	begin := &StartedBody{Node: "a", Generation: 1, Attempt: 1}
	for _, err := range []error{
		apply(0, &RunCreatedBody{RunID: "r", Schema: Schema}),
		apply(0, &StartedBody{Node: "a", Generation: 1, Attempt: 1, Queued: true}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if v, _ := s.NodeByID("a"); !v.Queued || v.Status != Running || stops(time.Hour) {
		t.Errorf("while it is queued: %+v", v)
	}
	if err := apply(time.Hour, begin); err != nil {
		t.Fatal(err)
	}
	v, _ := s.NodeByID("a")
	in := time.Hour + time.Minute
	if v.Queued || !v.Started.Equal(start.Add(time.Hour)) || stops(in-time.Second) || !stops(in) {
		t.Errorf("when it has begun: %+v", v)
	}
	if err := apply(time.Hour, begin); err == nil {
		t.Error("it began twice")
	}
}
