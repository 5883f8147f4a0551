package expr

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// TestSideBySide: an evaluator, and what it compiles for all expressions of one shape, may be used from any goroutine.
// The race stage runs it.
func TestSideBySide(t *testing.T) {
	e, err := New(&dag.Plan{Format: dag.Format, Nodes: []dag.Node{
		{ID: "a", Kind: "exec", Outputs: map[string]string{"n": "int", "list": "list"}},
		{ID: "each", Kind: "join", Needs: []string{"a"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e.Finish = func(_ *dag.Node, id string, _ *tree.Value) (dag.Node, error) { return dag.Node{ID: id}, nil }
	each := &dag.Node{ID: "each", Foreach: &dag.Foreach{
		In: "nodes['a'].out.list", Var: "x", Key: "string(x.value)", Most: 5,
		Template: json.RawMessage(`{"kind":"exec","with":{"run":"${x.key} ${params.p}"}}`),
	}}
	rec := scope{views: map[string]dag.View{"a": {Status: "completed", Out: out("n", "3", "list", "[1,2]")}}}
	e.lang.params["p"], e.lang.names["p"] = &tree.Value{Kind: tree.Int, Int: 1}, "int"
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for i := range 20 {
				src := fmt.Sprintf("nodes['a'].out.n + %d > 2 && nodes['a'].out.list.all(x, x > 0)", (worker+i)%5)
				if ok, err := e.Condition(src, rec); err != nil || !ok {
					t.Errorf("%s: %v, %v", src, ok, err)
				}
				if with, err := e.Resolve(json.RawMessage(`{"v":"${nodes['a'].out.n * 2}"}`), rec); err != nil || string(with) != `{"v":6}` {
					t.Errorf("%s, %v", with, err)
				}
				if made, err := e.Expand(each, rec); err != nil || len(made) != 2 || made[1].ID != "each/2" {
					t.Errorf("%v, %v", made, err)
				}
			}
		})
	}
	wait.Wait()
}
