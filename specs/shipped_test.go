package specs_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
)

// settingsOf decodes settings of a node that are looked at as they stand.
func settingsOf(t *testing.T, id string) map[string]any {
	t.Helper()
	return with[map[string]any](t, node(t, basePlan(t).Plan, id))
}

// K-4, K-5, P-7, P-8, P-11, P-13: how long, how often and for how much each role is asked, what it may hold in its
// hands, and what follows when it fails. A role's estimate is a guess of its author; it must stay below what is reserved.
func TestRoles(t *testing.T) {
	ill := []string{"exit_nonzero", "lost", "protocol", "rate_limited", "spawn_failed", "stalled", "timeout", "transient"}
	for _, tt := range []struct {
		role    string
		many    int    // nodes
		timeout string // first attempt, from the third on, grace
		tries   int    // 0: as usual
		onFail  string
		illness string // what follows when the service is ill
		tokens  int    // most of an answer; 0: no bound
		turns   int    // of those with tools
		paid    string // reserved
		prompt  string
	}{
		{"builder", 35, "10m 1.5 5s", 3, "continue", "fail", 60000, 0, "2.00", "builder"},
		{"verifier", 21, "10m 1.5 5s", 3, "continue", "fail", 8000, 0, "1.00", "verifier"},
		{"retrospective", 7, "10m 1.5 5s", 3, "continue", "fail", 2000, 0, "1.00", "retrospective"},
		{"cross-check", 3, "10m 1.5 5s", 3, "continue", "fail", 4000, 0, "1.00", "cross-check"},
		{"auditor", 48, "15m 1.5 5s", 2, "continue", "continue", 0, 30, "1.50", "auditor"},
		{"integrative", 6, "15m 1.5 5s", 2, "continue", "continue", 0, 20, "1.50", "integrative"},
		{"weaver", 6, "20m 1.5 5s", 2, "", "fail", 0, 40, "3.00", "weaver"},
		{"refine", 24, "10m 1.5 5s", 1, "continue", "continue", 60000, 0, "2.00", "refine"},
		{"rebuild", 6, "10m 1.5 5s", 3, "continue", "fail", 60000, 0, "2.00", "rebuild"},
	} {
		all := having(basePlan(t).Plan, "role", tt.role)
		if len(all) != tt.many {
			t.Errorf("there are %d nodes of %s, want %d", len(all), tt.role, tt.many)
		}
		for _, n := range all {
			s := with[struct {
				Provider, Model string
				System          struct{ Text string }
				Prompt          struct{ File string }
				Report          string
				Sim             struct{ Answers, Faults string }
				ByProvider      map[string]struct {
					MaxOutputTokens, MaxTurns int
					Tools                     []string
				}
				Give []struct {
					Artifact, As     string
					Unpack, Optional bool
					Send             []string
				}
			}](t, n)
			if got := fmt.Sprint(short(n.Timeout.Attempt), " ", n.Timeout.Growth, " ", short(n.Timeout.Grace)); got != tt.timeout {
				t.Errorf("%s may take %s, want %s", n.ID, got, tt.timeout)
			}
			if n.Retry.Attempts != tt.tries || string(n.OnFail) != tt.onFail || n.Reserve.USD.String() != tt.paid {
				t.Errorf("%s: %d attempts, then %s, for %s; want %d, %s, %s", n.ID, n.Retry.Attempts, n.OnFail, n.Reserve.USD, tt.tries, tt.onFail, tt.paid)
			}
			if n.Estimate.USD > n.Reserve.USD || n.Estimate.USD == 0 || n.Estimate.Seconds == 0 || n.Estimate.Seconds > n.Timeout.Attempt.D().Seconds() {
				t.Errorf("%s is estimated at %v, reserved are %s and %s", n.ID, n.Estimate, n.Reserve.USD, n.Timeout.Attempt.D())
			}
			var then []string
			for _, on := range n.Retry.On {
				if string(on.OnFail) == tt.illness {
					then = append(then, on.Category)
				}
				if tt.role == "refine" && on.Retry.Attempts != 1 {
					t.Errorf("%s is tried %d times after %s", n.ID, on.Retry.Attempts, on.Category)
				}
			}
			if slices.Sort(then); !slices.Equal(then, ill) {
				t.Errorf("%s: %s follows %v, want %v", n.ID, tt.illness, then, ill)
			}
			if n.Breaker != "agent" || n.Pool != "agents" || !n.Paid || s.Prompt.File != "templates/"+tt.prompt+".md" || s.Sim.Answers != "sim/answers.yaml" ||
				!strings.HasPrefix(s.System.Text, "You take part in making and judging one web page.") {
				t.Errorf("%s: breaker %s, pool %s, prompt %s, answers %s, system %q", n.ID, n.Breaker, n.Pool, s.Prompt.File, s.Sim.Answers, s.System.Text)
			}
			bounded, handed := []string{}, []string{}
			for p, by := range s.ByProvider {
				if by.MaxOutputTokens == tt.tokens && tt.tokens > 0 {
					bounded = append(bounded, p)
				}
				if slices.Equal(by.Tools, []string{"Read", "Write", "Glob"}) && (by.MaxTurns == tt.turns || p == "codex" && by.MaxTurns == 0) {
					handed = append(handed, p)
				}
			}
			slices.Sort(bounded)
			slices.Sort(handed)
			if want := map[bool]string{true: "[anthropic claude gemini openai sim]", false: "[]"}[tt.tokens > 0]; fmt.Sprint(bounded) != want {
				t.Errorf("%s: answers of %v are bounded, want %s", n.ID, bounded, want)
			}
			if want := map[bool]string{true: "[claude codex gemini sim]", false: "[]"}[tt.turns > 0]; fmt.Sprint(handed) != want {
				t.Errorf("%s: tools have %v, want %s", n.ID, handed, want)
			}
			if tt.turns == 0 {
				continue
			}
			if pictures := "hardening/cycle-" + n.Labels["cycle"] + "/pictures.zip"; s.Report != "report.md" || len(s.Give) != 2 || s.Give[0].Artifact != "artifact.html" || s.Give[0].As != "page.html" ||
				s.Give[1].Artifact != pictures || s.Give[1].As != "pictures" || !s.Give[1].Unpack || !s.Give[1].Optional || !slices.Equal(s.Give[1].Send, []string{"viewport-*", "full-*"}) {
				t.Errorf("%s is handed %+v and reports in %s", n.ID, s.Give, s.Report)
			}
		}
	}
}

// short writes whole minutes and seconds as a specification does.
func short(d dag.Duration) string {
	return strings.TrimSuffix(d.D().Round(time.Second).String(), "0s")
}

// R-7, L-2, C-9, D-2, K-5: budget, breaker, pool, memory, phases and parameters of the shipped specification.
func TestPolicies(t *testing.T) {
	p := basePlan(t).Plan
	if got := fmt.Sprint(p.Budget.WarnUSD, " ", p.Budget.CapUSD, " ", p.Budget.Failures); got != "160.00 200.00 12" || p.Budget.WarnUSD*5 != p.Budget.CapUSD*4 {
		t.Errorf("the budget is %s, want a warning at 80 %%", got)
	}
	if len(p.Breakers) != 1 {
		t.Fatalf("breakers: %+v", p.Breakers)
	}
	b := p.Breakers[0]
	if got := fmt.Sprint(b.Name, " ", b.Failures, " ", b.OpenFor.D(), " ", b.Probes, " ", b.WhenOpen, " ", b.Key); got != "agent 3 30m0s 1 wait sim" {
		t.Errorf("the breaker is %s", got)
	}
	if got := fmt.Sprint(p.Pools); got != "[{agents 8 0}]" || len(having(p, "role", "auditor")) != 6*p.Pools[0].Size {
		t.Errorf("pools are %s: all auditors of a cycle work side by side", got)
	}
	caps, paths := map[string]int{}, map[string]string{}
	for _, a := range p.Accumulators {
		caps[a.Name], paths[a.Name] = a.Cap, a.Path
		if want := map[string]string{"conviction-layer": "hasConviction", "discovery-log": "hasDiscovery"}[a.Name]; a.Field != want {
			t.Errorf("that a pass added to %s is told as %s", a.Name, a.Field)
		}
	}
	want := map[string]int{"conviction-layer": 10, "discovery-log": 30, "subset-summaries": 0}
	for i := 1; i <= 7; i++ {
		want[fmt.Sprintf("observations-S%d", i)] = 0
	}
	for i := 1; i <= 6; i++ {
		want[fmt.Sprintf("reports-%d", i)] = 0
		if got := paths[fmt.Sprintf("reports-%d", i)]; got != fmt.Sprintf("cycles/cycle-%d/reports.md", i) {
			t.Errorf("the reports of cycle %d are in %s", i, got)
		}
	}
	if !maps.Equal(caps, want) {
		t.Errorf("accumulators %v, want %v", caps, want)
	}
	phases := ""
	for _, x := range p.Phases {
		counts, _ := json.Marshal(x.Counts)
		phases += x.Name + ": " + x.Group + " " + string(counts) + "; "
	}
	if got := phases; got != `Corpus integration: corpus {"label":"pass","unit":"corpus passes","decisions":{"execute":"execute-pass","extract-notes":"extract-{name}","retry":"retry-pass","skip":"skip-pass"}}; PA hardening: hardening {"label":"cycle","unit":"PA cycles"}; ` || p.Name != "corpus-integration" {
		t.Errorf("%s has the phases %s", p.Name, got)
	}
	params := map[string]string{}
	for _, x := range p.Params {
		params[x.Name] = x.Type + " " + string(x.Value)
	}
	if want := map[string]string{"agent.faults": `string ""`, "agent.model": `string ""`, "agent.provider": `string "sim"`,
		"hardening.floor": "number 2.5", "hardening.maxStalledCycles": "int 2", "hardening.minCycles": "int 2", "hardening.patience": `string "12h"`, "hardening.release": "number 3.5", "hardening.tier5": "int 6"}; !maps.Equal(params, want) {
		t.Errorf("parameters are %v", params)
	}
}

// P-2, P-3, P-4, P-5, K-5: how pictures are taken, what stands in their place, which gates look where, and in what each ends up.
func TestPicturesAndGates(t *testing.T) {
	for cycle := 1; cycle <= 6; cycle++ {
		s := settingsOf(t, h(cycle, "capture"))
		place, waits := fmt.Sprintf("hardening/cycle-%d/", cycle), s["waits"].(map[string]any)
		got, _ := json.Marshal([]any{s["tile"], s["maxTiles"], s["maxSteps"], waits["command"], waits["viewport"], waits["node"], s["to"], s["manifest"], s["page"]})
		if want := `[2000,12,40,"30s","120s","300s","` + place + `pictures.zip","` + place + `pictures.json",{"artifact":"artifact.html"}]`; string(got) != want {
			t.Errorf("cycle %d takes pictures by %s\nwant %s", cycle, got, want)
		}
		n := node(t, basePlan(t).Plan, h(cycle, "capture"))
		install, _ := json.Marshal(s["browser"])
		if n.Retry.Jitter != 0 || !strings.HasPrefix(string(install), `{"install":["sh","-c","apt-get -o DPkg::Lock::Timeout=300 -qq update `) || !strings.Contains(string(install), `"missing":"degrade"`) {
			t.Errorf("cycle %d: jitter %v, browser %s", cycle, n.Retry.Jitter, install)
		}
		source, _ := json.Marshal(settingsOf(t, h(cycle, "source")))
		if want := `{"limit":0,"text":"{PAGE}","to":"` + place + `source.html","vars":{"PAGE":{"artifact":"artifact.html"}}}`; string(source) != want {
			t.Errorf("in place of pictures there is %s", source)
		}
		gates := with[struct {
			Repeat    int
			To        string
			Viewports []struct{ Width, Height int }
			Checks    []struct {
				Name, Class string
				Viewports   []struct{ Width, Height int }
			}
			Browser json.RawMessage
		}](t, node(t, basePlan(t).Plan, h(cycle, "gates")))
		if gates.Repeat != 2 || gates.To != place+"gates.json" || fmt.Sprint(gates.Viewports) != "[{1440 900} {768 1024}]" || !strings.Contains(string(gates.Browser), "degrade") {
			t.Errorf("cycle %d: gates look %d times at %v", cycle, gates.Repeat, gates.Viewports)
		}
		class, count := map[string]string{}, map[string]int{}
		for _, c := range gates.Checks {
			class[c.Name] = c.Class
			count[c.Class]++
			if want := map[string]string{"GR-60": "[{768 1024}]", "GR-63": "[{1440 900}]"}[c.Name]; want != "" && fmt.Sprint(c.Viewports) != want || want == "" && c.Viewports != nil {
				t.Errorf("cycle %d: %s looks at %v, want %s", cycle, c.Name, c.Viewports, want)
			}
		}
		if want := map[string]int{"identity": 9, "perception": 9, "recommended": 9, "structure": 7, "screenshots": 2, "pictures": 2, "meta": 2}; !maps.Equal(count, want) {
			t.Errorf("cycle %d has gates %v, want %v", cycle, count, want)
		}
		for _, name := range []string{"gates", "gates-after"} {
			if n := node(t, basePlan(t).Plan, h(cycle, name)); n.OnFail != "continue" || name == "gates-after" && n.Retry.Attempts != 1 {
				t.Errorf("%s: on failure %s, after %d attempts", n.ID, n.OnFail, n.Retry.Attempts)
			}
		}
	}
}

// S-3, K-2, K-5: what state.json and the records of passes and cycles hold in the pipeline's own words, and from where.
func TestWhatTheStateHolds(t *testing.T) {
	state := basePlan(t).Plan.State
	labels, _ := json.Marshal(state.Labels)
	got := state.Artifact + "\n" + string(labels)
	list := func(facts []dag.StateFact) {
		for _, f := range facts {
			fact, _ := json.Marshal(f)
			got += "\n" + string(fact)
		}
	}
	list(state.Facts)
	for _, r := range slices.Concat(state.Records, state.Costs) {
		got += "\n" + r.Name + " by " + r.By
		list(r.Fields)
	}
	if want := `artifact.html
{"auditor":"id","cycle":"cycleNumber","pass":"globalPassNumber","refinement":"refinementPass","role":"agentRole","rotation":"rotation","subset":"subsetId","subsetPass":"subsetPassNumber"}
{"name":"totalCorpusPasses","value":56}
{"name":"lastCompletedCorpusPass","last":"pass"}
{"name":"currentSubsetId","current":"subset"}
{"name":"completedPACycles","last":"cycle"}
{"name":"currentPACycle","current":"cycle"}
{"name":"maxPACycles","value":6}
{"name":"lastPAScore","output":"score","of":{"label":"role","in":["route"]}}
{"name":"paScoreThreshold","value":3.5}
{"name":"convictionLayerPath","path":"conviction-layer"}
{"name":"discoveryLogPath","path":"discovery-log"}
{"name":"convictionEntryCount","entries":"conviction-layer"}
{"name":"discoveryEntryCount","entries":"discovery-log"}
passRecords by pass
{"name":"corpusFilesLoaded","files":"corpus/**"}
{"name":"referenceFilesLoaded","files":"context/**"}
{"name":"hasConvictionAddition","has":"conviction-layer"}
{"name":"hasDiscoveryAddition","has":"discovery-log"}
paCycleRecords by cycle
{"name":"screenshotDir","field":"dir","of":{"label":"role","in":["capture"]}}
{"name":"gateResultPath","field":"artifactPath","of":{"label":"role","in":["gates"]}}
{"name":"auditors","all":true,"of":{"label":"role","in":["auditor","integrative"]}}
{"name":"weaver","one":true,"of":{"label":"role","in":["weaver"]}}
{"name":"refine","one":true,"of":{"label":"role","in":["refine","rebuild"]}}
{"name":"refinements","all":true,"of":{"label":"role","in":["refine"]}}
{"name":"decision","output":"decision","of":{"label":"role","in":["route"]}}
{"name":"totalCycleCostUsd","field":"costUsd"}
{"name":"screenshotCount","output":"shots","of":{"label":"role","in":["capture"]}}
{"name":"paScore","output":"score","of":{"label":"role","in":["route"]}}
{"name":"metThreshold","output":"metThreshold","of":{"label":"role","in":["route"]}}
{"name":"tier5Score","output":"tier5","of":{"label":"role","in":["route"]}}
{"name":"verdict","output":"verdict","of":{"label":"role","in":["route"]}}
{"name":"gateVerdict","output":"gates","of":{"label":"role","in":["route"]}}
byRole by role
bySubset by subset
byPACycle by cycle`; got != want {
		t.Errorf("the state holds\n%s\nwant\n%s", got, want)
	}
}

// K-2, P-9, K-5: the scores that people follow, by name: of the readers that score, and of each cycle.
func TestWhatIsShown(t *testing.T) {
	for cycle := 1; cycle <= 6; cycle++ {
		scores := `{"as":"auditor-score","values":["pa05"],"of":"auditor"}`
		for name, want := range map[string]string{
			"auditor-A": scores, "auditor-B": scores, "auditor-C": scores, "auditor-D": "null",
			"auditor-E": "null", "auditor-F": scores, "auditor-G": scores, "auditor-H": "null", "auditor-I": "null",
			"route": `{"as":"pa-score","values":["score","threshold","auditorCount","metThreshold","decision"]}`,
		} {
			if got, _ := json.Marshal(node(t, basePlan(t).Plan, h(cycle, name)).Show); string(got) != want {
				t.Errorf("of %s people follow %s, want %s", h(cycle, name), got, want)
			}
		}
	}
}
