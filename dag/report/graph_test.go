package report

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"dagrun.dev/dag"
)

// A node that is skipped when all its needs are runs on their conditions: plan and graph say so of each, once,
// and name the nodes that have a condition.
func TestInheritedConditions(t *testing.T) {
	g, err := dag.NewGraph(&dag.Plan{Format: dag.Format, Name: "x", Nodes: []dag.Node{
		{ID: "first", Kind: "exec"},
		{ID: "look", Kind: "exec", Needs: []string{"first"}, When: "true"},
		{ID: "instead", Kind: "exec", Needs: []string{"look"}, When: "false"},
		{ID: "check", Kind: "exec", Needs: []string{"look", "instead"}},
		{ID: "after", Kind: "exec", Needs: []string{"check"}},
		{ID: "some", Kind: "exec", Needs: []string{"check", "after"}, AtLeast: 1},
		{ID: "both", Kind: "exec", Needs: []string{"check", "first"}},
		{ID: "own", Kind: "exec", Needs: []string{"after"}, When: "1 > 0"},
		{ID: "clean", Kind: "exec", Needs: []string{"check"}, Always: true},
		{ID: "w3", Kind: "exec", When: "3 > 0"}, {ID: "w4", Kind: "exec", When: "4 > 0"}, {ID: "w5", Kind: "exec", When: "5 > 0"},
		{ID: "three", Kind: "exec", Needs: []string{"own", "w3", "w4"}},
		{ID: "many", Kind: "exec", Needs: []string{"check", "own", "w3", "w4", "w5"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	plan := string(text(t, BuildPlan(PlanInput{Graph: g}).WriteText))
	dot := string(text(t, func(w io.Writer) error { return WriteDOT(w, g, nil) }))
	for id, want := range map[string]string{
		"first": "", "both": "", "clean": "",
		"look":  "only when true",
		"check": "only when look or instead runs",
		"after": "only when look or instead runs",
		"some":  "only when look or instead runs",
		"own":   "only when 1 > 0",
		"three": "only when own, w3 or w4 runs",
		"many":  "only when one of look, instead, own, w3, ... runs",
	} {
		var got string
		if m := regexp.MustCompile(`(?m)^ *\d+  run +` + id + ` .*\n((?:       .*\n)+)`).FindStringSubmatch(plan); m != nil {
			got = strings.Join(regexp.MustCompile(`only when .*`).FindAllString(m[1], -1), "; ")
		}
		if got != want {
			t.Errorf("the plan says of %s %q, want %q", id, got, want)
		}
		box := regexp.MustCompile(`(?m)^ +"` + id + `" \[.*`).FindString(dot)
		if strings.Contains(box, "dashed") != (want != "") || want != "" && !strings.Contains(box, `tooltip="`+want+`"`) {
			t.Errorf("the graph says of %s: %s", id, box)
		}
	}
	if !strings.Contains(plan, "14 to run (11 on a condition)") || !strings.Contains(dot, "14 nodes (11 on a condition)") {
		t.Errorf("counted otherwise:\n%s", plan[strings.LastIndex(plan, "\n\n"):])
	}
}

// D-2: the graph shows what a specification declares: parameters, the rules of a route and where each decision
// leads, what kinds say of their settings, how many needs are enough.
func TestGraphShowsSettings(t *testing.T) {
	g, err := dag.NewGraph(&dag.Plan{Format: dag.Format, Name: "x",
		Params: []dag.Param{{Name: "limit.high", Type: "number", Value: json.RawMessage("3.5")}},
		Nodes: []dag.Node{
			{ID: "a", Kind: "exec"}, {ID: "b", Kind: "exec"},
			{ID: "r", Kind: "route", Needs: []string{"a", "b"}, AtLeast: 1,
				With: json.RawMessage(`{"rules":[{"name":"one","when":"x","then":"ship"},{"name":"two","when":"y","then":"again"}],"else":"stop"}`)},
			{ID: "go", Kind: "exec", Needs: []string{"r"}, When: "nodes['r'].out.decision in ['ship', 'again']"},
			{ID: "end", Kind: "exec", Needs: []string{"r", "go"}, When: `nodes["r"].out.decision == "stop"`},
			{ID: "other", Kind: "exec", Needs: []string{"r"}, When: "nodes['b'].status == 'ship'"},
		}})
	if err != nil {
		t.Fatal(err)
	}
	long := "rule one -> ship when " + strings.Repeat("word ", 30) + "end"
	dot := string(text(t, func(w io.Writer) error {
		return WriteDOT(w, g, [][]string{{"at 9x9", "second"}, nil, {long}})
	}))
	for _, want := range []string{
		`label="Parameters\llimit.high = 3.5\l"`,
		`"a" [label="a\nexec\nat 9x9", tooltip="at 9x9\nsecond"]`,
		`"r" [label="r\nroute, after 1 of 2", shape=diamond, tooltip="rule one -> ship when word`,
		`word\n    word`,
		`label="ship, again"]`, `label="stop"]`,
	} {
		if !strings.Contains(dot, want) {
			t.Errorf("the graph lacks %s:\n%s", want, dot)
		}
	}
	if edge := regexp.MustCompile(`"r" -> "other".*`).FindString(dot); strings.Contains(edge, "label") {
		t.Errorf("a condition over another node names a decision: %s", edge)
	}
}

// A long chain of groups is drawn as lines of a text are: each group begins at the left. A short one is not.
func TestLongGraphsAreFolded(t *testing.T) {
	for _, c := range []struct {
		groups, size int
		folded       bool
	}{{8, 4, true}, {7, 4, false}, {40, 1, false}, {1, 40, false}} {
		p := &dag.Plan{Format: dag.Format, Name: "x"}
		for i := range c.groups * c.size {
			n := dag.Node{ID: fmt.Sprintf("n%d", i), Kind: "exec", Group: fmt.Sprintf("all/g%d", i/c.size)}
			if i > 0 {
				n.Needs = []string{p.Nodes[i-1].ID}
			}
			p.Nodes = append(p.Nodes, n)
		}
		g, err := dag.NewGraph(p)
		if err != nil {
			t.Fatal(err)
		}
		dot := string(text(t, func(w io.Writer) error { return WriteDOT(w, g, nil) }))
		want := 0
		if c.folded {
			want = c.groups - 1
		}
		if got := strings.Count(dot, "constraint=false"); got != want {
			t.Errorf("%d groups of %d: %d edges lead back to the left, want %d", c.groups, c.size, got, want)
		}
	}
}
