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
		x.apply(&StartedBody{Node: "a", Generation: 1, Attempt: k + 1}, &FinishedBody{Node: "a", Generation: 1, Attempt: k + 1,
			Status: dag.StatusFailed, Message: fmt.Sprint(k)})
	}
	errors := x.s.Errors()
	if len(errors) != ErrorsKept || errors[0].Message != "3" || errors[1].Message != "4" || errors[ErrorsKept-1].Attempt != ErrorsKept+3 {
		t.Errorf("%d, from %v to %v", len(errors), errors[0], errors[len(errors)-1])
	}
}
