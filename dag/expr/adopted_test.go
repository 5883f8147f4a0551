package expr

import (
	"testing"

	"dagrun.dev/dag"
)

// TestAdoptedStatus: a plan that was adopted while a word that no status is was let through still opens
// and is evaluated.
func TestAdoptedStatus(t *testing.T) {
	p := &dag.Plan{Format: dag.Format, Nodes: []dag.Node{{ID: "a", Kind: "exec"},
		{ID: "b", Kind: "exec", Needs: []string{"a"}, When: "nodes['a'].status == 'lost'"}}}
	e, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := e.lang.Parse(p.Nodes[1].When); len(problems) > 0 {
		t.Error(problems)
	}
}
