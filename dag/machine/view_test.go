package machine

import (
	"slices"
	"testing"

	"dagrun.dev/dag"
)

// An expression may compare a status with these words alone.
func TestStatusWordsAreKnownToExpressions(t *testing.T) {
	var seen []string
	for st := Waiting; st <= Undone; st++ {
		if w := string(st.word()); !slices.Contains(seen, w) {
			seen = append(seen, w)
		}
	}
	want := slices.Sorted(slices.Values(dag.ViewStatuses))
	if slices.Sort(seen); !slices.Equal(seen, want) {
		t.Errorf("statuses are %v, dag.ViewStatuses %v", seen, want)
	}
}
