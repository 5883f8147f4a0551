package specs_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
)

// passes returns the passes in order: nodes with a global number.
func passes(p *dag.Plan) []*dag.Node {
	var out []*dag.Node
	for i := range p.Nodes {
		if p.Nodes[i].Labels["pass"] != "" {
			out = append(out, &p.Nodes[i])
		}
	}
	return out
}

// files returns the sources of a pass in order, without folder and extension.
func files(t *testing.T, n *dag.Node) []string {
	t.Helper()
	var with struct {
		Prompt struct {
			Vars map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(n.With, &with); err != nil {
		t.Fatal(err)
	}
	var sources struct{ Files []string }
	if err := json.Unmarshal(with.Prompt.Vars["CORPUS_FILES_CONCATENATED"], &sources); err != nil {
		t.Fatalf("%s: %v", n.ID, err)
	}
	for i, f := range sources.Files {
		sources.Files[i] = strings.TrimSuffix(filepath.Base(f), ".md")
	}
	return sources.Files
}

// C-1: seven subsets of eight passes in one chain, numbered through.
func TestFiftySixPassesInOneChain(t *testing.T) {
	p := basePlan(t).Plan
	all := passes(p)
	if len(all) != 56 {
		t.Fatalf("%d passes, want 56", len(all))
	}
	for i, n := range all {
		if want := fmt.Sprintf("S%d/p%d", i/8+1, i%8+1); n.ID != want {
			t.Errorf("pass %d is %s, want %s", i+1, n.ID, want)
		}
		if n.Labels["pass"] != fmt.Sprint(i+1) || n.Dir != fmt.Sprintf("passes/pass-%03d", i+1) {
			t.Errorf("%s: label %s, folder %s", n.ID, n.Labels["pass"], n.Dir)
		}
		if len(n.Needs) > 1 {
			t.Errorf("%s needs %v: the passes are not a chain", n.ID, n.Needs)
		}
	}
	// From the last pass one comes back to the first over every other one.
	seen := 0
	for n := all[55]; ; n = node(t, p, n.Needs[0]) {
		if n.Labels["pass"] != "" {
			seen++
		}
		if len(n.Needs) == 0 {
			break
		}
	}
	if seen != 56 {
		t.Errorf("the chain holds %d passes, want 56", seen)
	}
}

// C-2: passes 1, 3, 4, 6, 7 build, 2, 5, 8 verify; rotation A on 1-3, B on 4-6, C on 7-8.
func TestRhythm(t *testing.T) {
	for i, n := range passes(basePlan(t).Plan) {
		step := i%8 + 1
		role := "builder"
		if step == 2 || step == 5 || step == 8 {
			role = "verifier"
		}
		rotation := "AAABBBCC"[step-1 : step]
		if n.Labels["role"] != role || n.Labels["rotation"] != rotation {
			t.Errorf("%s is a %s in rotation %s, want %s in %s", n.ID, n.Labels["role"], n.Labels["rotation"], role, rotation)
		}
	}
}

// C-3: the shift is floor(n*0/5), floor(n*2/5), floor(n*4/5), whatever n is.
func TestRotationShiftsFiles(t *testing.T) {
	p := basePlan(t).Plan
	for subset := 1; subset <= 7; subset++ {
		first := files(t, node(t, p, fmt.Sprintf("S%d/p1", subset)))
		for step, times := range map[int]int{2: 0, 3: 0, 4: 2, 5: 2, 6: 2, 7: 4, 8: 4} {
			k := len(first) * times / 5
			want := append(slices.Clone(first[k:]), first[:k]...)
			id := fmt.Sprintf("S%d/p%d", subset, step)
			if got := files(t, node(t, p, id)); !slices.Equal(got, want) {
				t.Errorf("%s reads %v, want %v", id, got, want)
			}
		}
	}
	if got := files(t, node(t, p, "S1/p4"))[0]; got != "expansion" {
		t.Errorf("of five files rotation B begins with %s, want the third", got)
	}
	if got := files(t, node(t, p, "S4/p4"))[0]; got != "retries-that-end" {
		t.Errorf("of four files rotation B begins with %s, want the second", got)
	}
}

// C-3: each source in the folder is read by the passes of one subset.
func TestEverySourceIsRead(t *testing.T) {
	read := map[string]int{}
	for subset := 1; subset <= 7; subset++ {
		for _, name := range files(t, node(t, basePlan(t).Plan, fmt.Sprintf("S%d/p1", subset))) {
			read[name]++
		}
	}
	sources, err := filepath.Glob(filepath.Join(corpus, "corpus", "*", "*.md"))
	if err != nil || len(sources) != len(read) {
		t.Errorf("%d sources are read, %d stand in the folder: %v", len(read), len(sources), err)
	}
	for _, source := range sources {
		if name := strings.TrimSuffix(filepath.Base(source), ".md"); read[name] != 1 {
			t.Errorf("%s is read by %d subsets", source, read[name])
		}
	}
}

// C-4: verifiers write no artifact; builder passes 3 and 6 alone are given observations.
func TestWhoWritesAndWhoIsToldWhat(t *testing.T) {
	for i, n := range passes(basePlan(t).Plan) {
		step := i%8 + 1
		writes := slices.Contains(n.Writes, "artifact.html")
		if writes != (n.Labels["role"] == "builder") {
			t.Errorf("%s, a %s, writes %v", n.ID, n.Labels["role"], n.Writes)
		}
		told := slices.ContainsFunc(n.Reads, func(r string) bool { return strings.HasPrefix(r, "observations-") })
		if told != (step == 3 || step == 6) {
			t.Errorf("%s reads %v", n.ID, n.Reads)
		}
		fresh := strings.Contains(string(n.With), "New rotation")
		if fresh != (step == 4 || step == 7) {
			t.Errorf("%s is told of a new rotation: %v", n.ID, fresh)
		}
	}
}

// C-5: a retrospective and a checkpoint after each subset; a cross-check after S2, S4, S6.
func TestAfterEachSubset(t *testing.T) {
	p := basePlan(t).Plan
	for i := 1; i <= 7; i++ {
		s := fmt.Sprintf("S%d", i)
		before := []string{s + "/p8"}
		if n := node(t, p, s+"/retrospective"); !slices.Equal(n.Needs, before) || n.OnFail != "continue" {
			t.Errorf("%s needs %v, on failure %s", n.ID, n.Needs, n.OnFail)
		}
		before = []string{s + "/retrospective"}
		if i%2 == 0 {
			if n := node(t, p, s+"/cross-check"); !slices.Equal(n.Needs, before) || slices.Contains(n.Writes, "artifact.html") {
				t.Errorf("%s needs %v and writes %v", n.ID, n.Needs, n.Writes)
			}
			before = []string{s + "/cross-check"}
		}
		n := node(t, p, s+"/checkpoint")
		if !slices.Equal(n.Needs, before) || !strings.Contains(string(n.With), `"cp-`+s+`"`) {
			t.Errorf("%s needs %v: %s", n.ID, n.Needs, n.With)
		}
	}
	if got := len(having(p, "role", "cross-check")); got != 3 {
		t.Errorf("%d cross-checks, want 3", got)
	}
	for _, n := range having(p, "role", "builder") {
		if !slices.Contains(n.Reads, "subset-summaries") {
			t.Errorf("%s does not see the summaries of earlier subsets", n.ID)
		}
	}
}

// C-9: the caps of the accumulators.
func TestAccumulatorCaps(t *testing.T) {
	caps := map[string]int{}
	for _, a := range basePlan(t).Plan.Accumulators {
		caps[a.Name] = a.Cap
	}
	if caps["conviction-layer"] != 10 || caps["discovery-log"] != 30 {
		t.Errorf("caps are %v, want conviction-layer 10 and discovery-log 30", caps)
	}
}

// D-2, C-3: a change of the layout is an edit of the specification. Each edit changes the plan in
// the way it says and in no other.
func TestEditsOfTheLayout(t *testing.T) {
	t.Parallel()
	before := compiled(t, edit(t, corpusOnly)).Plan // the hardening has edits of its own
	for _, c := range []struct {
		name  string
		edit  func(string) string
		check func(t *testing.T, before, after *dag.Plan)
	}{
		{"two subsets change places", subsetsInOrder(2, 1, 3, 4, 5, 6, 7), func(t *testing.T, before, after *dag.Plan) {
			if got := passes(after)[0]; got.ID != "S2/p1" || got.Dir != "passes/pass-001" || len(got.Needs) != 0 {
				t.Errorf("the first pass is %s in %s, needs %v", got.ID, got.Dir, got.Needs)
			}
			if n := node(t, after, "S1/p1"); !slices.Equal(n.Needs, []string{"S2/checkpoint"}) || n.Labels["pass"] != "9" {
				t.Errorf("S1/p1 needs %v, is pass %s", n.Needs, n.Labels["pass"])
			}
			// The second subset is S1 now, so the cross-check stands behind it.
			added, removed := ids(after, before), ids(before, after)
			if !slices.Equal(added, []string{"S1/cross-check"}) || !slices.Equal(removed, []string{"S2/cross-check"}) {
				t.Errorf("added %v, removed %v", added, removed)
			}
		}},
		{"five subsets instead of seven", subsetsInOrder(1, 2, 3, 4, 5), func(t *testing.T, before, after *dag.Plan) {
			if got := len(passes(after)); got != 40 {
				t.Errorf("%d passes, want 40", got)
			}
			if got := len(having(after, "role", "checkpoint")) - len(having(before, "role", "checkpoint")); got != -2 {
				t.Errorf("%d checkpoints more", got)
			}
			if added := ids(after, before); len(added) != 0 {
				t.Errorf("added %v", added)
			}
			for _, id := range ids(before, after) {
				if !strings.HasPrefix(id, "S6/") && !strings.HasPrefix(id, "S7/") {
					t.Errorf("removed %s", id)
				}
			}
			if slices.ContainsFunc(after.Files, func(f dag.File) bool { return strings.HasPrefix(f.Path, "corpus/agents/") }) {
				t.Error("the files of S6 are still inputs")
			}
		}},
		{"pass 6 observes", replaced(`{role: "builder", rotation: "B", observations: true}`, `{role: "verifier", rotation: "B"}`), func(t *testing.T, before, after *dag.Plan) {
			n := node(t, after, "S3/p6")
			if n.Labels["role"] != "verifier" || slices.Contains(n.Writes, "artifact.html") {
				t.Errorf("S3/p6 is a %s and writes %v", n.Labels["role"], n.Writes)
			}
			if got := len(having(after, "role", "builder")); got != 28 {
				t.Errorf("%d builders, want 28", got)
			}
		}},
		{"a ninth pass", replaced(`	{role: "verifier", rotation: "C"},`, "\t{role: \"verifier\", rotation: \"C\"},\n\t{role: \"builder\", rotation: \"C\", observations: true},"), func(t *testing.T, before, after *dag.Plan) {
			if got := len(passes(after)); got != 63 {
				t.Errorf("%d passes, want 63", got)
			}
			if n := node(t, after, "S2/p1"); n.Labels["pass"] != "10" {
				t.Errorf("S2/p1 is pass %s, want 10", n.Labels["pass"])
			}
			if n := node(t, after, "S1/retrospective"); !slices.Equal(n.Needs, []string{"S1/p9"}) {
				t.Errorf("the retrospective needs %v", n.Needs)
			}
		}},
		{"another shift", replaced(`B: {times: 2, over: 5,`, `B: {times: 1, over: 3,`), func(t *testing.T, before, after *dag.Plan) {
			if got := files(t, node(t, after, "S1/p4"))[0]; got != "from-spec-to-plan" {
				t.Errorf("rotation B begins with %s, want the second of five", got)
			}
			if got := changed(before, after); !slices.ContainsFunc(got, func(id string) bool { return id == "S1/p5" }) || slices.Contains(got, "S1/p3") || slices.Contains(got, "S1/p7") {
				t.Errorf("changed %v, want rotation B only", got)
			}
		}},
		{"another formula", replaced(`places: div(of*by.times, by.over)`, `places: of - div(of*by.times, by.over)`), func(t *testing.T, before, after *dag.Plan) {
			for id, want := range map[string]string{"S1/p1": "what-a-plan-is", "S1/p4": "plan-as-a-contract", "S1/p7": "from-spec-to-plan", "S4/p4": "circuit-breakers"} {
				if got := files(t, node(t, after, id))[0]; got != want {
					t.Errorf("%s begins with %s, want %s", id, got, want)
				}
			}
			if slices.Contains(changed(before, after), "S1/p1") {
				t.Error("rotation A has changed")
			}
		}},
		{"a formula over other numbers", func(s string) string {
			s = replaced(`places: div(of*by.times, by.over)`, `places: by.from - 1`)(s)
			for _, r := range []string{"times: 0, over: 5", "times: 2, over: 5", "times: 4, over: 5"} {
				s = strings.Replace(s, r, "from: "+string(r[7]+1), 1)
			}
			return s
		}, func(t *testing.T, before, after *dag.Plan) {
			// From the third and the fifth file: with four files the fifth is the first again.
			for id, want := range map[string]string{"S1/p4": "expansion", "S4/p4": "undoing-work", "S4/p7": "categories-and-classes"} {
				if got := files(t, node(t, after, id))[0]; got != want {
					t.Errorf("%s begins with %s, want %s", id, got, want)
				}
			}
		}},
		{"another order of files", replaced(`"what-a-plan-is", "from-spec-to-plan"`, `"from-spec-to-plan", "what-a-plan-is"`), func(t *testing.T, before, after *dag.Plan) {
			if got := files(t, node(t, after, "S1/p1"))[:2]; !slices.Equal(got, []string{"from-spec-to-plan", "what-a-plan-is"}) {
				t.Errorf("pass 1 begins with %v", got)
			}
			for _, id := range changed(before, after) {
				if !strings.HasPrefix(id, "S1/p") {
					t.Errorf("changed %s", id)
				}
			}
		}},
		{"a smaller memory", replaced(`cap: 10`, `cap: 5`), func(t *testing.T, before, after *dag.Plan) {
			for _, a := range after.Accumulators {
				if a.Name == "conviction-layer" && a.Cap != 5 {
					t.Errorf("cap is %d", a.Cap)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			after := compiled(t, edit(t, func(s string) string { return c.edit(corpusOnly(s)) })).Plan
			if before.Digest() == after.Digest() {
				t.Error("the plan's digest is the same")
			}
			c.check(t, before, after)
		})
	}
}

// ids returns the ids in a that are not in b, in plan order.
func ids(a, b *dag.Plan) []string {
	in := map[string]bool{}
	for i := range b.Nodes {
		in[b.Nodes[i].ID] = true
	}
	var out []string
	for i := range a.Nodes {
		if !in[a.Nodes[i].ID] {
			out = append(out, a.Nodes[i].ID)
		}
	}
	return out
}

// changed returns the ids whose fingerprint differs between two plans that both hold them.
func changed(a, b *dag.Plan) []string {
	prints := map[string]string{}
	for i := range a.Nodes {
		prints[a.Nodes[i].ID] = reuse.Fingerprint(a, int32(i))
	}
	var out []string
	for i := range b.Nodes {
		if old, ok := prints[b.Nodes[i].ID]; ok && old != reuse.Fingerprint(b, int32(i)) {
			out = append(out, b.Nodes[i].ID)
		}
	}
	return out
}

// D-1: the YAML twin gives the plan of the corpus part, to the last byte.
func TestYAMLTwin(t *testing.T) {
	cue := compiled(t, edit(t, corpusOnly)).Plan
	yaml := compiled(t, filepath.Join(corpus, "spec.yaml")).Plan
	if cue.Digest() == yaml.Digest() {
		return
	}
	for i := range min(len(cue.Nodes), len(yaml.Nodes)) {
		a, b := cue.Nodes[i], yaml.Nodes[i]
		a.Pos, b.Pos = "", ""
		if !reflect.DeepEqual(a, b) {
			x, _ := json.MarshalIndent(a, "", " ")
			y, _ := json.MarshalIndent(b, "", " ")
			t.Fatalf("node %d differs\ncue: %s\nyaml: %s", i, x, y)
		}
	}
	a, b := *cue, *yaml
	a.Nodes, b.Nodes = nil, nil
	x, _ := json.MarshalIndent(a, "", " ")
	y, _ := json.MarshalIndent(b, "", " ")
	t.Fatalf("the plans differ: %d and %d nodes\ncue: %s\nyaml: %s", len(cue.Nodes), len(yaml.Nodes), x, y)
}

// corpusOnly leaves the hardening out.
func corpusOnly(spec string) string {
	return strings.Replace(spec, "hardened: true", "hardened: false", 1)
}
