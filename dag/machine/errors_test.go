package machine

import (
	"fmt"
	"testing"

	"dagrun.dev/dag"
)

// The state remembers the last failures only; the log has all of them.
func TestLastErrorsAreKept(t *testing.T) {
	x := tell(t, &dag.Plan{Nodes: []dag.Node{{ID: "a", Kind: "k"}}})
	for k := range ErrorsKept + 3 {
		x.apply(&StartedBody{Node: "a", Generation: 1, Attempt: k + 1})
		x.apply(&FinishedBody{Node: "a", Generation: 1, Attempt: k + 1, Status: dag.StatusFailed, Message: fmt.Sprint(k)})
	}
	for k, e := range x.s.Errors() {
		if e.Message != fmt.Sprint(k+3) || len(x.s.Errors()) != ErrorsKept {
			t.Errorf("%d of %d: %v", k, len(x.s.Errors()), e)
		}
	}
}
