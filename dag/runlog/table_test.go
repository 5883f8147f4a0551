package runlog

import (
	"slices"
	"testing"

	"dagrun.dev/dag/machine"
)

// Whoever adds a type of event says what the logs make of it.
func TestEveryTypeOfEventIsInTheTable(t *testing.T) {
	for _, typ := range machine.Types() {
		if logged := table[typ] != nil; logged == slices.Contains(unlogged, typ) {
			t.Errorf("%s: give it a row in table, or name it in unlogged", typ)
		}
	}
}
