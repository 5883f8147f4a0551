package specs_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
)

// with decodes a node's settings.
func with[T any](t *testing.T, n *dag.Node) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(n.With, &v); err != nil {
		t.Fatalf("%s: %v", n.ID, err)
	}
	return v
}

func h(cycle int, name string) string { return fmt.Sprintf("hardening/%d/%s", cycle, name) }

// P-1, P-12: six cycles are drawn out; each but the first is guarded by the route before it, and
// each ends in a checkpoint.
func TestCyclesAreDrawnOut(t *testing.T) {
	p := basePlan(t).Plan
	for c := 1; c <= 6; c++ {
		first := node(t, p, h(c, "capture"))
		if c == 1 && (first.When != "" || !slices.Equal(first.Needs, []string{"S7/checkpoint"})) {
			t.Errorf("cycle 1 begins with needs %v, when %q", first.Needs, first.When)
		}
		if c > 1 && !strings.Contains(first.When, h(c-1, "route")) {
			t.Errorf("cycle %d runs when %q", c, first.When)
		}
		if n := node(t, p, h(c, "checkpoint")); !strings.Contains(string(n.With), fmt.Sprintf(`"cp-PA-%d"`, c)) {
			t.Errorf("the checkpoint of cycle %d is %s", c, n.With)
		}
		if c > 1 && !slices.Contains(node(t, p, h(c, "weaver")).Reads, fmt.Sprintf("hardening/cycle-%d/weaver-synthesis.md", c-1)) {
			t.Errorf("the weaver of cycle %d does not see its previous report", c)
		}
	}
	if slices.ContainsFunc(p.Nodes, func(n dag.Node) bool { return strings.HasPrefix(n.ID, "hardening/7/") }) {
		t.Error("there is a seventh cycle")
	}
}

// P-2, P-4: what is photographed, how often it is tried, and what happens without a browser.
func TestCapture(t *testing.T) {
	p := basePlan(t).Plan
	n := node(t, p, h(1, "capture"))
	s := with[struct {
		Viewports []struct{ Width, Height int }
		Scale     float64
		Browser   struct {
			Install []string
			Missing string
		}
	}](t, n)
	if got := fmt.Sprint(s.Viewports); got != "[{1440 900} {768 1024} {375 812}]" || s.Scale != 1 {
		t.Errorf("viewports %s at scale %v", got, s.Scale)
	}
	on := n.Retry.On[0]
	if n.Retry.Attempts != 3 || on.Category != "screenshot_failed" || !slices.Equal(on.Retry.Delays, []dag.Duration{dag.Duration(5 * time.Second), dag.Duration(10 * time.Second)}) {
		t.Errorf("tried %d times, %+v", n.Retry.Attempts, n.Retry.On)
	}
	if n.OnFail != "continue" || s.Browser.Missing != "degrade" || len(s.Browser.Install) == 0 {
		t.Errorf("on failure %s, browser %+v", n.OnFail, s.Browser)
	}
	if n.Dir != "screenshots/cycle-1" {
		t.Errorf("pictures are in %s", n.Dir)
	}
	source := node(t, p, h(1, "source"))
	if !strings.Contains(source.When, "status == 'failed'") {
		t.Errorf("the source is laid out when %q", source.When)
	}
}

// P-3, P-5, P-6: the named gates, their widths, and the order of the verdict.
func TestGates(t *testing.T) {
	s := with[struct {
		Viewports []struct{ Width int }
		Checks    []struct {
			Name, Class, File string
			Max               *float64
		}
		Verdict struct {
			Rules []struct {
				Class, Then string
				Checks      []string
				AtLeast     int
			}
			Else string
		}
	}](t, node(t, basePlan(t).Plan, h(1, "gates")))
	class := map[string]string{}
	for _, c := range s.Checks {
		class[c.Name] = c.Class
		if c.File != "" && c.File != "gates/"+c.Name+".js" {
			t.Errorf("%s is in %s", c.Name, c.File)
		}
		if c.Name == "GR-62" && (c.Max == nil || *c.Max != 0.2) || c.Name == "GR-62-row" && (c.Max == nil || *c.Max != 2) {
			t.Errorf("%s: at most %v", c.Name, c.Max)
		}
	}
	for name, want := range map[string]string{
		"GR-01": "identity", "GR-02": "identity", "GR-03": "identity", "GR-10": "identity", "GR-07": "recommended",
		"GR-11": "perception", "GR-13": "perception", "GR-14": "perception", "GR-15": "perception", "GR-18": "perception",
		"GR-44": "perception", "GR-60": "perception", "GR-63": "perception", "A-03": "perception", "GR-61": "screenshots", "GR-61-pictures": "screenshots",
		"GR-62": "pictures", "GR-48": "meta", "GR-49": "meta", "BV-08": "recommended", "GR-83": "structure", "GR-84": "structure",
	} {
		if class[name] != want {
			t.Errorf("gate %s is of class %q, want %s", name, class[name], want)
		}
	}
	if len(s.Viewports) != 2 || s.Viewports[0].Width != 1440 || s.Viewports[1].Width != 768 {
		t.Errorf("gates look at %v", s.Viewports)
	}
	var order []string
	for _, r := range s.Verdict.Rules {
		order = append(order, r.Then)
	}
	if got := strings.Join(append(order, s.Verdict.Else), " "); got != "BLOCK_SCREENSHOTS BLOCK_PA RETHINK RETHINK IMPROVE INCOMPLETE PROCEED_TO_PA" {
		t.Errorf("verdicts in the order %s", got)
	}
	if s.Verdict.Rules[3].Class != "recommended" || s.Verdict.Rules[3].AtLeast != 3 {
		t.Errorf("the fourth rule is %+v", s.Verdict.Rules[3])
	}
}

// P-7, P-8, P-13: eight readers side by side that know nothing of each other, a ninth that has not
// read them, a weaver that has read all.
func TestReaders(t *testing.T) {
	p := basePlan(t).Plan
	questions := regexp.MustCompile(`- (PA-\d\d): `)
	seen := map[string]string{}
	for _, name := range strings.Split("ABCDEFGHI", "") {
		n := node(t, p, h(1, "auditor-"+name))
		for _, r := range n.Reads {
			if r != "artifact.html" && !strings.HasPrefix(r, "hardening/cycle-1/pictures.") && r != "hardening/cycle-1/source.html" {
				t.Errorf("auditor %s reads %s", name, r)
			}
		}
		for _, f := range n.Files {
			if !slices.Contains([]string{"context/guardrails.md", "templates/auditor.md", "templates/integrative.md"}, f) {
				t.Errorf("auditor %s is given %s", name, f)
			}
		}
		if n.Retry.Attempts != 2 || n.OnFail != "continue" {
			t.Errorf("auditor %s is asked %d times, on failure %s", name, n.Retry.Attempts, n.OnFail)
		}
		s := with[struct {
			ByProvider map[string]struct {
				Tools    []string
				MaxTurns int
			}
			Report string
			Answer struct {
				Schema struct {
					Properties struct {
						Completion struct {
							MinItems int
							Items    struct {
								Properties struct{ Question struct{ Enum []string } }
							}
						}
					}
				}
			}
		}](t, n)
		completion := s.Answer.Schema.Properties.Completion
		if !slices.Equal(s.ByProvider["claude"].Tools, []string{"Read", "Write", "Glob"}) || s.ByProvider["claude"].MaxTurns == 0 || s.Report != "report.md" {
			t.Errorf("auditor %s has %+v", name, s)
		}
		own := questions.FindAllStringSubmatch(string(n.With), -1)
		if len(own) < 3 {
			t.Errorf("auditor %s has %d questions", name, len(own))
		}
		for _, q := range own {
			if seen[q[1]] != "" {
				t.Errorf("%s is asked of %s and of %s", q[1], seen[q[1]], name)
			}
			seen[q[1]] = name
			if !slices.Contains(completion.Items.Properties.Question.Enum, q[1]) || completion.MinItems != len(own) {
				t.Errorf("the completion of %s need not name %s: %+v", name, q[1], completion)
			}
		}
		if name == "I" && (len(own) != 6 || n.AtLeast != 7 || len(n.Needs) != 8) {
			t.Errorf("the integrative auditor has %d questions and starts after %d of %d", len(own), n.AtLeast, len(n.Needs))
		}
		if name != "I" && !slices.Equal(n.Needs, []string{h(1, "gates")}) {
			t.Errorf("auditor %s waits for %v", name, n.Needs)
		}
		if cross := strings.Contains(string(n.With), "## Cross-validation"); cross != strings.Contains("BCFG", name) {
			t.Errorf("auditor %s cross-validates: %v", name, cross)
		}
	}
	w := node(t, p, h(1, "weaver"))
	if len(w.Needs) != 9 || w.AtLeast != 8 || w.Timeout.Attempt.D() != 2*node(t, p, "S1/p1").Timeout.Attempt.D() {
		t.Errorf("the weaver starts after %d of %d and has %v", w.AtLeast, len(w.Needs), w.Timeout.Attempt)
	}
	for _, want := range []string{"reports-1", "hardening/cycle-1/gates.json", "artifact.html"} {
		if !slices.Contains(w.Reads, want) {
			t.Errorf("the weaver does not read %s: %v", want, w.Reads)
		}
	}
}

// P-9, A-1, K-1: an answer that cannot be read is no crash and no release; what was not read is absent.
func TestWeaverVerdict(t *testing.T) {
	n := node(t, basePlan(t).Plan, h(1, "weaver"))
	if !strings.Contains(string(n.With), `"else":{"anchor":"","blockers":[],"changes":[],"decision":"IMPROVE","vector":""}`) {
		t.Error("an unreadable answer does not become IMPROVE without scores")
	}
	for name, typ := range map[string]string{"pa05": "number?", "tier5": "int?", "decision": "string", "blockers": "list", "anchor": "string", "vector": "string", "changes": "list", "arc": "map?"} {
		if n.Outputs[name] != typ {
			t.Errorf("the weaver's value %s is of type %q", name, n.Outputs[name])
		}
	}
}

// P-10, P-14, P-15: the rules of the route, in order, in a middle cycle and in the last one.
func TestRoute(t *testing.T) {
	p := basePlan(t).Plan
	type rule struct {
		Name, When, Then string
		Require          []struct{ That, Else string }
	}
	names := func(cycle int) (out []string, byName map[string]rule) {
		byName = map[string]rule{}
		for _, r := range with[struct{ Rules []rule }](t, node(t, p, h(cycle, "route"))).Rules {
			out = append(out, r.Name+":"+r.Then)
			byName[r.Name] = r
		}
		return out, byName
	}
	for cycle, want := range map[int]string{
		1: "blocked:abort rethink:rebuild release:ship not-yet:refine polish:polish",
		4: "blocked:abort floor:abort rethink:rebuild stalled:ship release:ship not-yet:refine polish:polish",
		6: "blocked:abort floor:abort rethink:abort stalled:ship release:ship last:ship unscored:ask",
	} {
		got, _ := names(cycle)
		if strings.Join(got, " ") != want {
			t.Errorf("the route of cycle %d: %v\nwant %s", cycle, got, want)
		}
	}
	_, rules := names(3)
	for _, want := range []string{"params.hardening.release", "params.hardening.tier5", "params.hardening.minCycles", "'GR-01'", "'GR-60'", "gates-after", "pa05.hasValue()", "tier5.hasValue()", "unproven"} {
		if !strings.Contains(fmt.Sprint(rules["release"]), want) {
			t.Errorf("a release does not ask for %s", want)
		}
	}
	if !strings.Contains(rules["stalled"].When, "params.hardening.maxStalledCycles == 2 && ") {
		t.Errorf("a standstill does not ask for the parameter: %s", rules["stalled"].When)
	}
	rebuild := node(t, p, h(1, "rebuild"))
	if !slices.Contains(rebuild.Files, "context/conviction-brief.md") || !slices.Contains(rebuild.Writes, "artifact.html") || !strings.Contains(string(rebuild.With), "weaver'].?out.vector") || !strings.Contains(string(rebuild.With), "weaver'].?out.changes") {
		t.Errorf("a rebuild is given %v and %v and writes %v", rebuild.Files, rebuild.Reads, rebuild.Writes)
	}
}

// P-11: one to four refinements; each sees wishes and impressions and no measure.
func TestRefinements(t *testing.T) {
	p := basePlan(t).Plan
	for k := 1; k <= 4; k++ {
		n := node(t, p, h(2, fmt.Sprintf("refine-%d", k)))
		for _, r := range n.Reads {
			if strings.Contains(r, "gates") || strings.Contains(r, "report") || strings.Contains(r, "synthesis") {
				t.Errorf("refinement %d reads %s", k, r)
			}
		}
		if regexp.MustCompile(`PA-\d\d|GR-\d\d|hardening\.release`).Match(n.With) {
			t.Errorf("refinement %d is told of questions, gates or thresholds", k)
		}
		if k > 1 && (!strings.Contains(n.When, "[HIGH]") || !strings.Contains(n.When, "status == 'completed'")) {
			t.Errorf("refinement %d runs when %q", k, n.When)
		}
		if n.OnFail != "continue" || n.Retry.Attempts != 1 {
			t.Errorf("refinement %d: on failure %s after %d attempts", k, n.OnFail, n.Retry.Attempts)
		}
	}
	if slices.ContainsFunc(p.Nodes, func(n dag.Node) bool { return n.ID == h(2, "refine-5") }) {
		t.Error("there is a fifth refinement")
	}
}

var auditorBlock = regexp.MustCompile(`(?s)\t\{name: "[D-H]", focus:.*?\n\t\}\},\n`)

// D-2, P-1: thresholds, auditors, viewports and cycles are edits of the specification, and nothing else
// changes with them.
func TestEditsOfTheHardening(t *testing.T) {
	for _, c := range []struct {
		name  string
		edit  func(string) string
		check func(t *testing.T, before, after *dag.Plan)
	}{
		{"a lower threshold", replaced(`release: {type: "number", default: 3.5`, `release: {type: "number", default: 3.0`), func(t *testing.T, before, after *dag.Plan) {
			for _, id := range changed(before, after) {
				if !strings.HasSuffix(id, "/route") {
					t.Errorf("changed %s", id)
				}
			}
			if got := len(changed(before, after)); got != 6 {
				t.Errorf("%d routes changed, want 6", got)
			}
		}},
		{"three auditors", func(s string) string { return auditorBlock.ReplaceAllString(s, "") }, func(t *testing.T, before, after *dag.Plan) {
			if got := len(having(after, "role", "auditor")); got != 18 {
				t.Errorf("%d auditors, want 3 in each of 6 cycles", got)
			}
			if n := node(t, after, h(1, "weaver")); len(n.Needs) != 4 || n.AtLeast != 3 {
				t.Errorf("the weaver starts after %d of %v", n.AtLeast, n.Needs)
			}
		}},
		{"one viewport", replaced("\t{width: 768, height: 1024},\n\t{width: 375, height: 812},\n", ""), func(t *testing.T, before, after *dag.Plan) {
			for _, id := range changed(before, after) {
				if !strings.HasSuffix(id, "/capture") {
					t.Errorf("changed %s", id)
				}
			}
		}},
		{"two cycles", replaced("cycles: 6", "cycles: 2"), func(t *testing.T, before, after *dag.Plan) {
			if removed := ids(before, after); len(removed) != 4*22+1 {
				t.Errorf("removed %d nodes, want four cycles of 22, and the question of the last", len(removed))
			}
			if n := node(t, after, h(2, "route")); !strings.Contains(string(n.With), `"last"`) {
				t.Error("cycle 2 is not the last one")
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := basePlan(t).Plan
			after := compiled(t, edit(t, c.edit)).Plan
			if before.Digest() == after.Digest() {
				t.Error("the plan's digest is the same")
			}
			c.check(t, before, after)
		})
	}
}
