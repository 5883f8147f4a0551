package specs_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/report"
)

// shown is what plan and graph print, without the plan's digest.
func shown(t *testing.T, res *compile.Result) (plan, graph string) {
	t.Helper()
	var p, g bytes.Buffer
	if err := report.BuildPlan(report.PlanInput{Graph: res.Graph, Notes: res.Notes}).WriteText(&p); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteDOT(&g, res.Graph, res.Notes); err != nil {
		t.Fatal(err)
	}
	digest := res.Plan.Digest()[:12]
	return strings.ReplaceAll(p.String(), digest, ""), strings.ReplaceAll(g.String(), digest, "")
}

// D-2: whatever a user edits in the hardening shows in the plan and in the graph, in the user's own words, and gives
// another digest.
func TestEditsShowInPlanAndGraph(t *testing.T) {
	t.Parallel()
	before := compiled(t, edit(t, bare)) // small: each edit is compiled
	planBefore, graphBefore := shown(t, before)
	for _, c := range []struct {
		name        string
		pairs       []string
		plan, graph string // among what is new
	}{
		{"threshold", []string{lowerRelease, `release: {type: "number", default: 3.0`}, "hardening.release = 3\n", `hardening.release = 3\l`},
		{"least cycles", []string{moreCycles, `minCycles: {type: "int", default: 1`}, "hardening.minCycles = 1\n", `hardening.minCycles = 1\l`},
		{"most cycles", []string{"\ncycles: 3", "\ncycles: 4"}, "hardening/4/route", `"hardening/4/route"`},
		{"refinements", []string{loop, "refinements:   5\n\t" + loop}, "hardening/2/refine-5", `"hardening/2/refine-5"`},
		{"going on refining", []string{`contains('[HIGH]')`, `contains('[MEDIUM]')`}, "contains('[MEDIUM]')", "contains('[MEDIUM]')"},
		{"missing readers", []string{loop, "missing:       2\n\t" + loop}, "needs 7 of (those that fail", "after 7 of 9"},
		{"reruns of missing readers", []string{loop, "rerun:         3\n\t" + loop}, "3 times at most", "run again, 3 times at most"},
		{"a question", []string{question, `"PA-09": "Which sentence would you strike?"`}, "- PA-09: Which sentence would you strike?", "strike?"},
		{"what an auditor looks at", []string{`focus: "space"`, `focus: "emptiness"`}, "auditor C, emptiness", "auditor C, emptiness"},
		{"a viewport", []string{`{width: 375, height: 812}`, `{width: 390, height: 844}`}, "at 1440x900, 768x1024, 390x844", `screenshot\nat 1440x900, 768x1024, 390x844`},
		{"widths of checks", []string{passing, inBrowser, `gateViewports: [{width: 1440, height: 900}`, `gateViewports: [{width: 1280, height: 800}`}, "checks at 1280x800", "checks at 1280x800"},
		{"a check's bound", []string{`max: 0.2}`, `max: 0.3}`}, "GR-62 <= 0.3", "GR-62 <= 0.3"},
		{"a check's class", []string{"\t\t\"GR-17\": \"no gradients\"\n", "", "\tstructure: {\n", "\tstructure: {\n\t\t\"GR-17\": \"no gradients\"\n"}, "GR-84, GR-17", "GR-84, GR-17"},
		{"the verdict of the checks", []string{`atLeast: 3, then: "RETHINK"`, `atLeast: 2, then: "RETHINK"`}, "2 recommended -> RETHINK", "2 recommended -> RETHINK"},
		{"where a rule leads", []string{notYet, strings.Replace(notYet, `"refine"`, `"polish"`, 1)}, "rule not-yet -> polish when", "rule not-yet -> polish when"},
		{"when a rule holds", []string{`_n >= 3 {
				{name: "floor"`, `_n >= 2 {
				{name: "floor"`}, "rule floor -> abort when nodes['hardening/2/weaver']", "rule floor -> abort when nodes['hardening/2/weaver']"},
		{"what is blocked", []string{loop, "blockedBy: [\"BLOCK_PA\"]\n\t" + loop}, "in ['BLOCK_PA'])", "in ['BLOCK_PA'])"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			res := compiled(t, edit(t, func(s string) string { return edits(t, bare(s), c.pairs...) }))
			if res.Plan.Digest() == before.Plan.Digest() {
				t.Error("the plan has the same digest")
			}
			plan, graph := shown(t, res)
			if !strings.Contains(plan, c.plan) || strings.Contains(planBefore, c.plan) {
				t.Errorf("the plan does not show %q, or showed it before", c.plan)
			}
			// Tooltips are broken between words.
			if g := unbroken(graph); !strings.Contains(g, c.graph) || strings.Contains(unbroken(graphBefore), c.graph) {
				t.Errorf("the graph does not show %q, or showed it before", c.graph)
			}
		})
	}
}

func unbroken(dot string) string { return strings.ReplaceAll(dot, `\n    `, " ") }

// A-1, D-2, K-5: who may be asked, and how the parameters of the shipped specification reach the passes.
func TestParameters(t *testing.T) {
	small := edit(t, func(s string) string { return corpusOnly(subsetsInOrder(1)(s)) })
	_, err := compile.Compile(compile.Options{Path: small, Set: []string{"agent.provider=nobody"}, Kinds: kinds})
	if err == nil || !strings.HasPrefix(err.Error(), "--set agent.provider=nobody: params.agent.provider: want one of sim, claude, codex, gemini, command, anthropic, openai, ") {
		t.Errorf("who may be asked: %v", err)
	}
	set := compiled(t, small, "agent.model=m", "agent.faults=role=builder:refused").Plan
	if s, _ := json.Marshal(with[map[string]any](t, node(t, set, "S1/p1"))); !strings.Contains(string(s), `"model":"m"`) || !strings.Contains(string(s), `"faults":"role=builder:refused"`) {
		t.Errorf("model and faults do not reach the passes: %s", s)
	}
}
