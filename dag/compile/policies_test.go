package compile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
)

// TestZeroIsAValue: the same words have the same meaning on a node, under defaults, under categories and in the template
// of a run-time foreach: zero is zero, and a formula nearer by replaces delays (e-work/11).
func TestZeroIsAValue(t *testing.T) {
	const (
		zero    = "base: 0s, jitter: 0, cap: 0s"
		formula = "factor: 1, cap: 1s, jitter: 0"
	)
	for name, tt := range map[string]struct {
		spec  string
		late  bool // the node is made at run time
		total time.Duration
	}{
		"zero on a node":         {spec: "nodes: {a: {kind: sh, retry: {on: {exit_nonzero: {" + zero + "}}}}}"},
		"zero of a node":         {spec: "nodes: {a: {kind: sh, retry: {" + zero + "}}}"},
		"zero under defaults":    {spec: `{defaults: {"*": {retry: {on: {exit_nonzero: {` + zero + "}}}}}, nodes: {a: {kind: sh}}}"},
		"zero over defaults":     {spec: `{defaults: {sh: {retry: {delays: [20s]}}}, nodes: {a: {kind: sh, retry: {` + zero + "}}}}"},
		"zero under categories":  {spec: "{categories: {exit_nonzero: {class: transient, then: retry, retry: {" + zero + "}}}, nodes: {a: {kind: sh}}}"},
		"zero in a template":     {late: true, spec: "nodes: {l: {kind: sh, with: {values: {list: list}}}, e: {kind: join, foreach: {in: \"nodes['l'].out.list\", as: i, key: i.value, most: 9, node: {kind: sh, retry: {on: {exit_nonzero: {" + zero + "}}}}}}}"},
		"formula on a node":      {total: 2 * time.Second, spec: "nodes: {a: {kind: sh, retry: {delays: [20s], on: {exit_nonzero: {" + formula + "}}}}}"},
		"formula over defaults":  {total: 2 * time.Second, spec: `{defaults: {sh: {retry: {delays: [20s]}}}, nodes: {a: {kind: sh, retry: {` + formula + "}}}}"},
		"formula in both":        {total: 2 * time.Second, spec: `{defaults: {"*": {retry: {delays: [20s], on: {exit_nonzero: {` + formula + "}}}}}, nodes: {a: {kind: sh}}}"},
		"formula in categories":  {total: 2 * time.Second, spec: "{categories: {exit_nonzero: {class: transient, then: retry, retry: {" + formula + "}}}, nodes: {a: {kind: sh, retry: {delays: [20s]}}}}"},
		"formula in a template":  {late: true, total: 2 * time.Second, spec: `{defaults: {sh: {retry: {delays: [20s]}}}, nodes: {l: {kind: sh, with: {values: {list: list}}}, e: {kind: join, foreach: {in: "nodes['l'].out.list", as: i, key: i.value, most: 9, node: {kind: sh, retry: {` + formula + "}}}}}}"},
		"category in a template": {late: true, total: 2 * time.Second, spec: `{defaults: {sh: {retry: {on: {exit_nonzero: {` + formula + "}}}}}, nodes: {l: {kind: sh, with: {values: {list: list}}}, e: {kind: join, foreach: {in: \"nodes['l'].out.list\", as: i, key: i.value, most: 9, node: {kind: sh, retry: {delays: [20s]}}}}}}"},
	} {
		dir := t.TempDir()
		spec := tt.spec
		if !strings.HasPrefix(spec, "{") {
			spec = "{" + spec + "}"
		}
		must(t, os.WriteFile(filepath.Join(dir, "p.yaml"), []byte("pipeline: {name: zero, "+spec[1:]+"\n"), 0o644))
		r, err := compileIn(dir, "p.yaml")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		plan := decoded(t, r.Plan)
		n := &plan.Nodes[len(plan.Nodes)-1]
		if tt.late {
			n = itemOf(t, plan, n)
		}
		policy := plan.PolicyFor(n, "exit_nonzero")
		if policy.Retry.Attempts != 3 || policy.Retry.Jitter != 0 || 2*policy.Retry.Cap.D() != tt.total || len(policy.Retry.Delays) > 0 ||
			tt.total == 0 && policy.Retry.Base != 0 {
			t.Errorf("%s: %+v", name, policy.Retry)
		}
	}
}

// decoded is a plan as a run reads it.
func decoded(t *testing.T, p *dag.Plan) *dag.Plan {
	t.Helper()
	raw, err := p.Encode()
	must(t, err)
	out := new(dag.Plan)
	must(t, dag.DecodeJSON(raw, out))
	return out
}

// itemOf is a node that a run-time foreach makes.
func itemOf(t *testing.T, p *dag.Plan, parent *dag.Node) *dag.Node {
	t.Helper()
	e, err := NewEvaluator(p, planKinds)
	must(t, err)
	made, err := e.Expand(parent, record{"l": {Status: "completed", Out: values("list", `["x"]`)}})
	must(t, err)
	return &made[0]
}
