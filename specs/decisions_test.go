package specs_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/exec"
	"dagrun.dev/nodes/gates"
)

// A past is what expressions see of nodes that have ended; of others they see that they are pending.
type past map[string]dag.View

func (p past) View(id string) (dag.View, bool) {
	if v, ok := p[id]; ok {
		return v, true
	}
	return dag.View{Status: "pending"}, true
}

func (past) Run() map[string]any { return nil }

// ended adds a node that completed with values, each as JSON.
func (p past) ended(id string, values ...string) past {
	out := map[string]json.RawMessage{}
	for i := 0; i < len(values); i += 2 {
		if values[i+1] != "" {
			out[values[i]] = json.RawMessage(values[i+1])
		}
	}
	p[id] = dag.View{Status: "completed", Out: out}
	return p
}

var theEvaluator = sync.OnceValues(func() (*expr.Evaluator, error) {
	res, err := base()
	if err != nil {
		return nil, err
	}
	return expr.New(res.Plan)
})

func evaluator(t *testing.T) *expr.Evaluator {
	t.Helper()
	e, err := theEvaluator()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// resolved are the settings of a node as an attempt gets them.
func resolved(t *testing.T, id string, sc dag.Scope) map[string]any {
	t.Helper()
	raw, err := evaluator(t).Resolve(node(t, basePlan(t).Plan, id).With, sc)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	var with map[string]any
	if err := json.Unmarshal(raw, &with); err != nil {
		t.Fatal(err)
	}
	return with
}

// A look is what a cycle has found.
type look struct {
	score, tier5 string // empty: not read
	decision     string // of the weaver; empty: there is no answer of it
	gates        string // their verdict; empty: PROCEED_TO_PA
	failures     string // gates that failed, with blanks between
	unproven     string // gates that did not run
	after        string // verdict of the gates after the weaver; empty: HOLD
}

func quotedList(names string) string {
	b, _ := json.Marshal(append([]string{}, strings.Fields(names)...))
	return string(b)
}

func (l look) seen(p past, cycle int) {
	verdict, after := l.gates, l.after
	if verdict == "" {
		verdict = "PROCEED_TO_PA"
	}
	if after == "" {
		after = "HOLD"
	}
	p.ended(h(cycle, "gates"), "verdict", `"`+verdict+`"`, "failures", quotedList(l.failures), "unproven", quotedList(l.unproven))
	if l.decision != "" {
		for _, name := range strings.Split("ABCDEFGH", "") { // one is missing
			p.ended(h(cycle, "auditor-"+name))
		}
		p.ended(h(cycle, "weaver"), "pa05", l.score, "tier5", l.tier5, "decision", `"`+l.decision+`"`)
		p.ended(h(cycle, "gates-after"), "verdict", `"`+after+`"`, "failures", quotedList("GR-64"))
	}
}

// routedBy says which rule of a plan's route decides after these cycles, where to, what the rules before it lacked, and
// what is recorded.
func routedBy(t *testing.T, plan *dag.Plan, e *expr.Evaluator, looks ...look) (decision, lacking string, values map[string]string) {
	t.Helper()
	p, n := past{}, len(looks)
	for i, l := range looks {
		l.seen(p, i+1)
	}
	route := node(t, plan, h(n, "route"))
	settings := with[struct {
		Rules []struct {
			Name, When, Then string
			Require          []struct{ That, Else string }
		}
		Else   string
		Values map[string]string
	}](t, route)
	values = map[string]string{}
	for name, src := range settings.Values {
		raw, err := e.Value(src, p)
		if err != nil {
			t.Fatalf("%s: value %s: %v", route.ID, name, err)
		}
		values[name] = string(raw)
	}
	holds := func(src string) bool {
		ok, err := e.Condition(src, p)
		if err != nil {
			t.Fatalf("%s: %s: %v", route.ID, src, err)
		}
		return ok
	}
	for _, r := range settings.Rules {
		if !holds(r.When) {
			continue
		}
		var lacks []string
		for _, x := range r.Require {
			if !holds(x.That) {
				lacks = append(lacks, x.Else)
			}
		}
		if lacks == nil {
			return r.Then + ":" + r.Name, lacking, values
		}
		lacking += r.Name + ": " + strings.Join(lacks, "; ")
	}
	return settings.Else + ":else", lacking, values
}

// K-1, K-5, P-9, P-10, P-14: where the shipped route leads, on either side of each of its bounds, in cycles where a rule begins
// to count and where it does not yet, and where something was not read.
func TestRouteDecides(t *testing.T) {
	good := look{score: "3.6", tier5: "7", decision: "RELEASE"}
	improve := func(score string) look { return look{score: score, tier5: "5", decision: "IMPROVE"} }
	and := func(l look, change func(*look)) look { change(&l); return l }
	many := func(n int, l look) []look { return slices.Repeat([]look{l}, n) }
	rising := []look{improve("2.6"), improve("2.7"), improve("2.8"), improve("2.9"), improve("3.0"), improve("3.1")}
	soul := []string{"GR-01", "GR-02", "GR-03", "GR-04", "GR-05", "GR-06", "GR-08", "GR-09", "GR-10"}
	usable := []string{"GR-10", "GR-11", "GR-18", "GR-60"}
	type tested struct {
		name  string
		looks []look
		want  string
		lacks string
	}
	tests := []tested{
		{"a release", []look{improve("3.0"), good}, "ship:release", ""},
		{"at the threshold", []look{improve("3.0"), and(good, func(l *look) { l.score = "3.5" })}, "ship:release", ""},
		{"just below it", []look{improve("3.0"), and(good, func(l *look) { l.score = "3.49" })}, "refine:not-yet", "below"},
		{"fifth tier at its threshold", []look{improve("3.0"), and(good, func(l *look) { l.tier5 = "6" })}, "ship:release", ""},
		{"fifth tier below", []look{improve("3.0"), and(good, func(l *look) { l.tier5 = "5" })}, "refine:not-yet", "fifth tier is"},
		{"no score", []look{improve("3.0"), and(good, func(l *look) { l.score = "" })}, "refine:not-yet", "PA-05 was not read"},
		{"no fifth tier", []look{improve("3.0"), and(good, func(l *look) { l.tier5 = "" })}, "refine:not-yet", "fifth tier was not read"},
		{"too early", []look{good}, "refine:not-yet", "this is cycle 1"},
		{"no report of the weaver", []look{{}}, "refine:else", ""},
		{"polish", []look{and(good, func(l *look) { l.decision = "POLISH" })}, "polish:polish", ""},
		{"lowered after the weaver", []look{improve("3.0"), and(good, func(l *look) { l.after = "LOWER" })}, "refine:not-yet", "gates after the weaver"},
		{"gates after the weaver not run", []look{improve("3.0"), and(good, func(l *look) { l.after = "-" })}, "refine:not-yet", "gates after the weaver"},
		{"another gate failed", []look{improve("3.0"), and(good, func(l *look) { l.failures, l.unproven = "GR-13 GR-07", "GR-13 GR-07" })}, "ship:release", ""},
		{"pictures blocked", []look{and(good, func(l *look) { l.gates = "BLOCK_SCREENSHOTS" })}, "abort:blocked", ""},
		{"blank pictures", []look{improve("3.0"), and(good, func(l *look) { l.gates = "BLOCK_PA" })}, "abort:blocked", ""},
		{"rethink of the weaver", []look{and(good, func(l *look) { l.decision = "RETHINK" })}, "rebuild:rethink", ""},
		{"rethink of the gates", []look{improve("3.0"), and(good, func(l *look) { l.gates = "RETHINK" })}, "rebuild:rethink", ""},
		{"improve of the gates", []look{improve("3.0"), and(good, func(l *look) { l.gates = "IMPROVE" })}, "ship:release", ""},
		{"low before the third", many(2, improve("2.0")), "refine:else", ""},
		{"low in the third", many(3, improve("2.4")), "abort:floor", ""},
		{"at the floor", []look{improve("2.3"), improve("2.4"), improve("2.5")}, "refine:else", ""},
		{"low before a rethink", many(3, and(improve("2.4"), func(l *look) { l.decision = "RETHINK" })), "abort:floor", ""},
		{"rethink before a standstill", many(3, and(improve("3.0"), func(l *look) { l.decision = "RETHINK" })), "rebuild:rethink", ""},
		{"no score is not below the floor", many(3, improve("")), "refine:else", ""},
		{"two cycles show no standstill", many(2, improve("3.0")), "refine:else", ""},
		{"standstill", many(3, improve("3.0")), "ship:stalled", ""},
		{"worse", []look{improve("3.2"), improve("3.0"), improve("3.1")}, "ship:stalled", ""},
		{"better in the last", []look{improve("3.0"), improve("2.9"), improve("3.05")}, "refine:else", ""},
		{"better in the one before", []look{improve("3.0"), improve("3.1"), improve("3.0")}, "refine:else", ""},
		{"standstill later", append(rising[:2:2], many(3, improve("3.0"))...), "ship:stalled", ""},
		{"worse than the one before them", append(rising[:1:1], improve("3.4"), improve("3.0"), improve("3.1")), "ship:stalled", ""},
		{"better than all before", append(rising[:1:1], improve("3.0"), improve("2.9"), improve("3.1")), "refine:else", ""},
		{"a standstill of which one was not read", []look{improve("3.0"), improve(""), improve("3.0")}, "refine:else", ""},
		{"a standstill of which the first was not read", []look{improve(""), improve("3.0"), improve("3.0")}, "refine:else", ""},
		{"a standstill of which the last was not read", []look{improve("3.0"), improve("3.0"), improve("")}, "refine:else", ""},
		{"standstill unseen", many(3, and(improve("3.0"), func(l *look) { l.unproven = "GR-04" })), "refine:else", "stalled: identity gates that did not run"},
		{"the last", rising, "ship:last", ""},
		{"the last, to be polished", append(rising[:5:5], and(improve("3.1"), func(l *look) { l.decision = "POLISH" })), "ship:last", ""},
		{"the last, unreleased", append(rising[:5:5], and(good, func(l *look) { l.score = "3.4" })), "ship:last", "below"},
		{"rethink in the last", append(rising[:5:5], and(improve("3.1"), func(l *look) { l.decision = "RETHINK" })), "abort:rethink", ""},
		{"rethink of the gates in the last", append(rising[:5:5], and(improve("3.1"), func(l *look) { l.gates = "RETHINK" })), "abort:rethink", ""},
		{"no score of the last", append(rising[:5:5], improve("")), "ship:last", ""},
		{"no score of the one before", append(rising[:4:4], improve(""), improve("3.1")), "ship:last", ""},
		{"no score of the last two", append(rising[:4:4], improve(""), improve("")), "ask:unscored", ""},
		{"no score at all, released", many(6, and(good, func(l *look) { l.score = "" })), "ask:unscored", "PA-05 was not read"},
	}
	for _, name := range soul {
		tests = append(tests,
			tested{"soul: " + name, []look{improve("3.0"), and(good, func(l *look) { l.failures = name })}, "refine:not-yet", "identity gates failed"},
			tested{"soul unseen: " + name, []look{improve("3.0"), and(good, func(l *look) { l.unproven = name })}, "refine:not-yet", "identity gates that did not run"})
	}
	for _, name := range usable {
		tests = append(tests,
			tested{"usable: " + name, []look{improve("3.0"), and(good, func(l *look) { l.failures = name })}, "refine:not-yet", "what keeps from reading"},
			tested{"usable, unseen: " + name, []look{improve("3.0"), and(good, func(l *look) { l.unproven = name })}, "refine:not-yet", "usability gates that did not run"})
	}
	for _, tt := range tests {
		got, lacking, values := routedBy(t, basePlan(t).Plan, evaluator(t), tt.looks...)
		if got != tt.want || !strings.Contains(lacking, tt.lacks) || tt.lacks == "" && lacking != "" {
			t.Errorf("%s: %s, lacking %q; want %s, lacking %q", tt.name, got, lacking, tt.want, tt.lacks)
		}
		last, quoted := tt.looks[len(tt.looks)-1], func(s, otherwise string) string { b, _ := json.Marshal(cmp.Or(s, otherwise)); return string(b) }
		want := map[string]string{"score": strings.TrimSuffix(last.score, ".0"), "tier5": last.tier5, "verdict": quoted(last.decision, "IMPROVE"), "gates": quoted(last.gates, "PROCEED_TO_PA"),
			"threshold": "3.5", "metThreshold": fmt.Sprint(last.score >= "3.5"), "auditorCount": map[bool]string{true: "8", false: "0"}[last.decision != ""],
			"cycle": fmt.Sprint(len(tt.looks)), "degraded": fmt.Sprint(slices.ContainsFunc(soul, func(s string) bool { return strings.Contains(last.unproven, s) }))}
		for name := range want {
			if values[name] != want[name] {
				t.Errorf("%s: the route records %s %s, want %s", tt.name, name, values[name], want[name])
			}
		}
	}
}

// K-1, K-5, P-10, D-2: how many cycles make a standstill is a parameter; 0 means that none is one. The last cycle counts its
// own score and that of the one before, where there is one.
func TestRouteWithOtherNumbers(t *testing.T) {
	same := func(n int) []look { return slices.Repeat([]look{{score: "3.0", tier5: "5", decision: "IMPROVE"}}, n) }
	for _, tt := range []struct {
		stalled, cycles int
		want            string
	}{
		{0, 5, "refine:else"}, {1, 1, "refine:else"}, {1, 2, "ship:stalled"}, {3, 3, "refine:else"}, {3, 4, "ship:stalled"}, {5, 5, "refine:else"}, {5, 6, "ship:stalled"},
	} {
		plan := *basePlan(t).Plan
		plan.Params = slices.Clone(plan.Params)
		for i := range plan.Params {
			if plan.Params[i].Name == "hardening.maxStalledCycles" {
				plan.Params[i].Value = json.RawMessage(fmt.Sprint(tt.stalled))
			}
		}
		e, err := expr.New(&plan)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := routedBy(t, &plan, e, same(tt.cycles)...); got != tt.want {
			t.Errorf("%d cycles without a better score where %d are a standstill: %s, want %s", tt.cycles, tt.stalled, got, tt.want)
		}
	}
	one := compiled(t, edit(t, func(s string) string { return replaced("\ncycles: 6", "\ncycles: 1")(subsetsInOrder(1)(s)) })).Plan
	e, err := expr.New(one)
	if err != nil {
		t.Fatal(err)
	}
	for score, want := range map[string]string{"3.0": "ship:last", "": "ask:unscored"} {
		if got, _, _ := routedBy(t, one, e, look{score: score, tier5: "5", decision: "IMPROVE"}); got != want {
			t.Errorf("the only cycle scores %q: %s, want %s", score, got, want)
		}
	}
}

// K-5, P-1, P-4, P-7, P-11, P-15: which nodes run after a decision, and which do not.
func TestWhatRunsAfterADecision(t *testing.T) {
	p, e := basePlan(t).Plan, evaluator(t)
	runs := func(id string, sc dag.Scope) bool {
		ok, err := e.Condition(node(t, p, id).When, sc)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		return ok
	}
	for decision, want := range map[string][]string{
		"refine": {h(2, "refine-1"), h(3, "capture")}, "polish": {h(2, "refine-1"), h(3, "capture")},
		"rebuild": {h(2, "rebuild"), h(3, "capture")}, "ship": nil, "abort": {h(2, "abort")}, "ask": nil,
	} {
		sc := past{}.ended(h(2, "route"), "decision", `"`+decision+`"`)
		var got []string
		for _, id := range []string{h(2, "refine-1"), h(2, "rebuild"), h(2, "abort"), h(3, "capture")} {
			if runs(id, sc) {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("after %s there run %v, want %v", decision, got, want)
		}
	}
	// A route reads what every cycle has found and waits for its own.
	for cycle := 1; cycle <= 6; cycle++ {
		if got := node(t, p, h(cycle, "route")).Needs; !slices.Equal(got, []string{h(cycle, "gates"), h(cycle, "weaver"), h(cycle, "gates-after")}) {
			t.Errorf("the route of cycle %d waits for %v", cycle, got)
		}
	}
	for remaining, want := range map[string]bool{"- [HIGH] More air.": true, "- [MEDIUM] More air.\n- [LOW] A comma.": false, "": false} {
		quoted, _ := json.Marshal(remaining)
		if got := runs(h(2, "refine-2"), past{}.ended(h(2, "refine-1"), "remaining", string(quoted))); got != want {
			t.Errorf("after a refinement that leaves %q another one: %v", remaining, got)
		}
	}
	if runs(h(2, "refine-2"), past{h(2, "refine-1"): {Status: "failed"}}) {
		t.Error("a refinement that failed is followed by another one")
	}
	for verdict, want := range map[string]bool{"BLOCK_SCREENSHOTS": false, "BLOCK_PA": false, "RETHINK": true, "IMPROVE": true, "INCOMPLETE": true, "PROCEED_TO_PA": true} {
		sc := past{}.ended(h(2, "gates"), "verdict", `"`+verdict+`"`)
		for _, name := range []string{"auditor-A", "auditor-I", "weaver"} {
			if got := runs(h(2, name), sc); got != want {
				t.Errorf("after the verdict %s there runs %s: %v", verdict, name, got)
			}
		}
	}
	for answer, want := range map[string]bool{"ship": false, "abort": true} {
		if got := runs(h(6, "abort"), past{}.ended(h(6, "route"), "decision", `"ask"`).ended(h(6, "ask"), "answer", `"`+answer+`"`)); got != want {
			t.Errorf("answered %s, the run gives up: %v", answer, got)
		}
	}
}

// K-5, P-10: giving up says why, and is a failure that ends the run.
func TestGivingUp(t *testing.T) {
	p := basePlan(t).Plan
	sc := past{}.ended(h(3, "route"), "reason", `"PA-05 is 2.4 in cycle 3"`)
	task, host := nodetest.New(t, "exec", resolved(t, h(3, "abort"), sc))
	_, err := exec.Kind.Run(t.Context(), task)
	if nodetest.Category(err) != "gave_up" || !strings.Contains(fmt.Sprint(host.Kept), "gives up in cycle 3: PA-05 is 2.4 in cycle 3") {
		t.Errorf("it ends with %v and says %v", err, host.Kept)
	}
	for _, c := range p.Categories {
		if c.Name == "gave_up" && (c.Class != "fatal" || c.Then != "fail") {
			t.Errorf("giving up is %+v", c)
		}
	}
	ask := resolved(t, h(6, "ask"), past{})
	delete(ask, "message")
	if got, _ := json.Marshal(ask); string(got) != `{"after":"12h","default":"abort","options":["ship","abort"],"recommended":"abort","refuses":[]}` {
		t.Errorf("the last cycle asks %s", got)
	}
}

// gated runs checks of a node whose code passes as failing says, and gives the verdict.
func gated(t *testing.T, id string, sc dag.Scope, page string, failing ...string) (*nodes.Result, error) {
	t.Helper()
	settings := resolved(t, id, sc)
	delete(settings, "to")
	checks, _ := settings["checks"].([]any)
	for _, c := range checks {
		check := c.(map[string]any)
		if check["file"] != nil { // it needs a browser
			delete(check, "file")
			delete(check, "viewports")
			check["value"], check["max"] = 0, 0
		}
		if slices.Contains(failing, check["name"].(string)) {
			for _, method := range []string{"text", "meta", "min", "max"} {
				delete(check, method)
			}
			check["value"], check["max"] = 1, 0
		}
	}
	task, host := nodetest.New(t, "gates", settings)
	host.Artifacts["artifact.html"] = page
	content, err := os.ReadFile(corpus + "/context/content.md")
	if err != nil {
		t.Fatal(err)
	}
	task.File = func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(string(content))), nil }
	return gates.Kind.Run(t.Context(), task)
}

// K-5, P-3, P-5, P-6: the verdict of the shipped gates, by each class and by the values and texts that they look at.
func TestGatesDecide(t *testing.T) {
	content, err := os.ReadFile(corpus + "/context/content.md")
	if err != nil {
		t.Fatal(err)
	}
	page := func(intents, improvements, share int) string {
		return "<!DOCTYPE html><html><body><p>" + string(content[:len(content)*share/100]) + "</p>" +
			strings.Repeat("<!-- INTENT: x -->", intents) + strings.Repeat("<!-- IMPROVEMENTS: x -->", improvements) + "</body></html>"
	}
	sound := page(7, 1, 100)
	captured := func(values ...string) past { return past{}.ended(h(1, "capture"), values...) }
	for _, tt := range []struct {
		name    string
		sc      past
		page    string
		failing string
		verdict string
		failed  string
	}{
		{"sound", captured("dpr", "1.0", "maxBlankShare", "0.0", "maxConsecutiveBlanks", "0"), sound, "", "PROCEED_TO_PA", ""},
		{"no pictures", past{h(1, "capture"): {Status: "failed"}}, sound, "", "PROCEED_TO_PA", ""},
		{"another scale", captured("dpr", "2.0"), sound, "", "BLOCK_SCREENSHOTS", "GR-61-pictures"},
		{"a smaller scale", captured("dpr", "0.95"), sound, "", "BLOCK_SCREENSHOTS", "GR-61-pictures"},
		{"a slightly larger scale", captured("dpr", "1.05"), sound, "", "BLOCK_SCREENSHOTS", "GR-61-pictures"},
		{"some are blank", captured("maxBlankShare", "0.2", "maxConsecutiveBlanks", "2"), sound, "", "PROCEED_TO_PA", ""},
		{"many are blank", captured("maxBlankShare", "0.21"), sound, "", "BLOCK_PA", "GR-62"},
		{"three in a row are blank", captured("maxConsecutiveBlanks", "3"), sound, "", "BLOCK_PA", "GR-62-row"},
		{"one soul", captured(), sound, "GR-04", "RETHINK", "GR-04"},
		{"two recommended", captured(), sound, "GR-07 GR-16", "PROCEED_TO_PA", "GR-07 GR-16"},
		{"three recommended", captured(), sound, "GR-07 GR-16 GR-17", "RETHINK", "GR-07 GR-16 GR-17"},
		{"perception", captured(), sound, "GR-13", "IMPROVE", "GR-13"},
		{"structure", captured(), sound, "GR-23", "PROCEED_TO_PA", "GR-23"},
		{"scale before pictures", captured("maxBlankShare", "0.5"), sound, "GR-61", "BLOCK_SCREENSHOTS", "GR-61 GR-62"},
		{"pictures before soul", captured("maxBlankShare", "0.5"), sound, "GR-04", "BLOCK_PA", "GR-04 GR-62"},
		{"soul before perception", captured(), sound, "GR-04 GR-13", "RETHINK", "GR-04 GR-13"},
		{"perception before coverage", captured(), sound, "GR-13 GR-48", "IMPROVE", "GR-13 GR-48"},
		{"coverage", captured(), sound, "GR-48", "INCOMPLETE", "GR-48"},
		{"six intents", captured(), page(6, 1, 100), "", "PROCEED_TO_PA", "GR-83"},
		{"no improvements", captured(), page(7, 0, 100), "", "PROCEED_TO_PA", "GR-84"},
		{"half of the brief", captured(), page(7, 1, 55), "", "PROCEED_TO_PA", ""},
		{"less than half of the brief", captured(), page(7, 1, 45), "", "PROCEED_TO_PA", "BV-08"},
	} {
		res, err := gated(t, h(1, "gates"), tt.sc, tt.page, strings.Fields(tt.failing)...)
		if err != nil && res == nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		failed, _ := json.Marshal(res.Values["failures"])
		var names []string
		_ = json.Unmarshal(failed, &names)
		slices.Sort(names)
		if res.Values["verdict"] != tt.verdict || strings.Join(names, " ") != tt.failed {
			t.Errorf("%s: %v, failed %v; want %s, %s", tt.name, res.Values["verdict"], names, tt.verdict, tt.failed)
		}
	}
}

// K-5, P-14: what stands after the weaver lowers a release, and holds it where its report says what it must.
func TestGatesAfterTheWeaver(t *testing.T) {
	whole := []string{"blockers", `[]`, "changes", `[{"class":"MECHANICAL","text":"Shorter."}]`, "anchor", `"A"`, "vector", `"V"`}
	for i, want := range []string{"GR-64", "GR-81", "GR-81-anchor", "GR-81-vector"} {
		said := slices.Clone(whole)
		said[2*i+1] = []string{`["text is cut off"]`, `[]`, `""`, `""`}[i]
		for _, tt := range []struct {
			said            []string
			verdict, failed string
		}{{whole, "HOLD", ""}, {said, "LOWER", want}} {
			res, err := gated(t, h(2, "gates-after"), past{}.ended(h(2, "weaver"), tt.said...), "")
			if err != nil {
				t.Fatal(err)
			}
			if failed := strings.Trim(fmt.Sprint(res.Values["failures"]), "[]"); res.Values["verdict"] != tt.verdict || failed != tt.failed {
				t.Errorf("%v: %v, failed %s; want %s, %s", tt.said, res.Values["verdict"], failed, tt.verdict, tt.failed)
			}
		}
	}
	res, err := gated(t, h(2, "gates-after"), past{}, "")
	if failed := fmt.Sprint(res.Values["failures"]); err != nil || failed != "[GR-64 GR-81 GR-81-anchor GR-81-vector]" {
		t.Errorf("without a report there fail %s: %v", failed, err)
	}
}
