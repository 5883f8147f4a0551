package specs_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var rhythmRest = regexp.MustCompile(`(?s)(\t\{role: "builder", rotation: "A"\},\n).*?(\n\]\n\n// A rotation)`)

// The gates of the page need a browser; in its place they pass by a value.
const (
	inBrowser = `file: "gates/\(name).js", if _gateAt[name] != _|_ {"viewports": _gateAt[name]}`
	passing   = `value: 0, max: 0`
)

// bare keeps of the specification what the hardening needs to run quickly: one subset of one pass, three cycles, a
// browser that is not there, and gates that pass without it.
func bare(s string) string {
	s = replaced("\ncycles: 6", "\ncycles: 3")(subsetsInOrder(1)(s))
	s = rhythmRest.ReplaceAllString(s, "$1$2")
	s = replaced(inBrowser, passing)(s)
	s = replaced(`delays: ["5s", "10s"]`, `delays: ["1ms", "1ms"]`)(s)
	a, b := strings.Index(s, "\tinstall: [\"sh\""), strings.Index(s, "\tmissing: \"degrade\"")
	return s[:a] + "\tpath: \"/nowhere/chromium\"\n\tinstall: [\"false\"]\n" + s[b:]
}

// edits makes edits one after the other; each must find its place.
func edits(t *testing.T, s string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(s, pairs[i]) {
			t.Fatalf("the specification holds no %q", pairs[i])
		}
		s = strings.Replace(s, pairs[i], pairs[i+1], 1)
	}
	return s
}

const (
	lowerRelease = `release: {type: "number", default: 3.5`
	moreCycles   = `minCycles: {type: "int", default: 2`
	question     = `"PA-09": "Is there a passage that you skipped?"`
	notYet       = `{name: "not-yet", when: "\(_decision) == 'RELEASE'", then: "refine"`
	loop         = `refineWhile:   "PASS`
)

// D-2, P-1, P-7, P-10, P-11: edits of thresholds, auditors, questions, bounds and rules change what a run does, with
// no change of the program.
func TestEditsChangeTheRun(t *testing.T) {
	for _, c := range []struct {
		name   string
		pairs  []string
		drop   bool   // auditors D to H
		faults string // of the simulated agent
		routes string // decision:rule of each cycle that was run
		check  func(t *testing.T, s *site, ends map[string]record)
	}{
		// Two readers are missing in the first cycle: it halts until they have been run again.
		{name: "none", faults: "cycle=1,auditor=A|B,generation=1:refused*inf", routes: "refine:else refine:not-yet ship:release",
			check: func(t *testing.T, s *site, ends map[string]record) {
				starts := map[string]int{}
				for _, e := range s.events() {
					if e.Type == "WORK_ITEM_STARTED" {
						starts[e.Payload.Node]++
					}
				}
				if a, b, c, w := starts[h(1, "auditor-A")], starts[h(1, "auditor-B")], starts[h(1, "auditor-C")], starts[h(1, "weaver")]; a != 2 || b != 2 || c != 1 || w != 1 {
					t.Errorf("auditors A, B, C and the weaver were asked %d, %d, %d and %d times, want 2, 2, 1, 1", a, b, c, w)
				}
				if got := strings.Count(s.read("_orchestrator/cycles/cycle-1/weaver/prompt.md"), "\n## Completion"); got != 9 {
					t.Errorf("the weaver was given %d reports, want 9", got)
				}
				if ends[h(1, "refine-2")].Payload.Status != "completed" {
					t.Error("there was no second refinement")
				}
			}},
		{name: "threshold 3.0, three auditors, another question", drop: true, routes: "refine:else ship:release",
			pairs: []string{lowerRelease, `release: {type: "number", default: 3.0`, question, `"PA-09": "Which sentence would you strike?"`},
			check: func(t *testing.T, s *site, ends map[string]record) {
				if got := s.read("_orchestrator/cycles/cycle-2/auditor-B/prompt.md"); !strings.Contains(got, "PA-09: Which sentence would you strike?") {
					t.Error("auditor B was not asked the new question")
				}
				if _, asked := ends[h(1, "auditor-D")]; asked {
					t.Error("auditor D was taken out and asked")
				}
				if got := strings.Count(s.read("_orchestrator/cycles/cycle-2/weaver/prompt.md"), "\n## Completion"); got != 4 {
					t.Errorf("the weaver was given %d reports, want 4", got)
				}
			}},
		{name: "two cycles of one refinement", routes: "refine:else ship:last",
			pairs: []string{"\ncycles: 3", "\ncycles: 2", loop, "refinements:   1\n\t" + loop},
			check: func(t *testing.T, s *site, ends map[string]record) {
				if ends[h(1, "refine-1")].Payload.Status != "completed" {
					t.Error("there was no refinement")
				}
				for id := range ends {
					if strings.HasPrefix(id, "hardening/3/") || strings.HasSuffix(id, "/refine-2") {
						t.Errorf("%s is out of bounds", id)
					}
				}
				for _, want := range []string{"rule unscored -> ask when true", "label=\"capture\\nCycle 1: pictures\\nscreenshot\\nat 1440x900, 768x1024, 375x812\"", "palegreen"} {
					if !strings.Contains(s.must("graph", "--run"), want) {
						t.Errorf("the graph of the run does not show %q", want)
					}
				}
			}},
		{name: "three cycles at least, another rule", routes: "refine:else polish:not-yet ship:release",
			pairs: []string{lowerRelease, `release: {type: "number", default: 3.0`, moreCycles, `minCycles: {type: "int", default: 3`,
				notYet, strings.Replace(notYet, `"refine"`, `"polish"`, 1)},
			check: func(t *testing.T, s *site, ends map[string]record) {
				if got := s.read("_orchestrator/cycles/cycle-2/refine-1/prompt.md"); !strings.Contains(got, "Polish: change details only") {
					t.Error("the refiner was not asked to polish")
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := edit(t, func(s string) string {
				s = edits(t, bare(s), c.pairs...)
				if c.drop {
					s = auditorBlock.ReplaceAllString(s, "")
				}
				return s
			})
			s := newSite(t)
			s.must("apply", spec, "--seed", "7", "--quiet", "--set", "agent.faults="+c.faults)
			ends := finished(s.events())
			var routes []string
			for cycle := 1; ends[h(cycle, "route")].Payload.Status == "completed"; cycle++ {
				var rule string
				if err := json.Unmarshal(ends[h(cycle, "route")].Payload.Values["rule"], &rule); err != nil {
					t.Fatal(err)
				}
				routes = append(routes, fmt.Sprintf("%s:%s", decision(ends, cycle), rule))
			}
			if got := strings.Join(routes, " "); got != c.routes {
				t.Errorf("the cycles went %s, want %s", got, c.routes)
			}
			c.check(t, s, ends)
			s.must("verify")
		})
	}
}
