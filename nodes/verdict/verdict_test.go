package verdict

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes/internal/accept"
)

const shipDecision = `{"decision":{"label":"Ship decision","values":["RELEASE","POLISH","IMPROVE","RETHINK"]}}`

// decisionOf reads a review and returns its decision, or the reason why there is none.
func decisionOf(t testing.TB, with, review string) string {
	t.Helper()
	s, err := apply(t, with, review)
	if err != nil {
		if _, decided := s.Values["decision"]; decided {
			t.Errorf("%q: a decision in spite of %v", review, err)
		}
		return "no verdict: " + s.Values["reason"].(string)
	}
	return s.Values["decision"].(string)
}

// Whoever is asked again is told that the decision stood where it does not count.
func TestDecisionWithinTags(t *testing.T) {
	const told = "; what stands within tags of HTML does not count: write it outside of them"
	for review, want := range map[string]bool{
		"Here it is.\n\n<verdict>\n\nShip decision: RELEASE\n\n</verdict>": true,
		"Here it is.\n\nShip decision, then: RELEASE":                      false,
		"<q>\n\nx\n\n</q>\n\nShip decision: ANY":                           false,
	} {
		if _, err := apply(t, shipDecision, review); err == nil || strings.HasSuffix(err.Error(), told) != want {
			t.Errorf("%q: %v", review, err)
		}
	}
}

// an honest release is released, whatever words its prose uses.
func TestHonestReleases(t *testing.T) {
	for _, review := range []string{
		"Conditions: all WCAG AA contrast conditions pass.\n\nShip decision: RELEASE",
		"I have no reservations about the page.\n\n**Ship decision:** RELEASE",
		"The assumptions that I made about the reader hold.\n\n## Ship decision: RELEASE\n\nNothing blocks it.",
		"# Review\n\n| Item | Value |\n|---|---|\n| PA-05 | 3.5/4 |\n| Ship decision | RELEASE |\n\nReservations: none. Conditions: none. Assumptions: none.",
		"- Ship decision: **RELEASE**\n- Open conditions: none\n- It must not be delayed any longer.",
		"<think>\nShip decision: IMPROVE? No, the header is fine.\n</think>\nShip decision: RELEASE.\n\nI was wrong to have had reservations in the last cycle.",
		"The last report said:\n\n> Ship decision: IMPROVE\n\nNothing of that is left.\n\nShip decision: `RELEASE`",
		"I will end with `Ship decision: RELEASE|POLISH|IMPROVE|RETHINK`.\n\nIf the conditions of the fourth tier did not hold, I would not release. They do.\n\nShip decision: RELEASE\n",
		"## Ship decision\n\nThe ship decision rests on three assumptions and no condition.\n\nShip decision: RELEASE\n\nPA-05: 3.5/4",
		"1. Ship decision - RELEASE\n2. Fixes that could wait: polish the footer, improve the captions, rethink nothing.\n\nUnder no condition would I hold this page back.",
	} {
		if got := decisionOf(t, shipDecision, review); got != "RELEASE" {
			t.Errorf("%q: %s", review, got)
		}
	}
}

// what contradicts the line in a way that a contract can see is never a release.
func TestContradictedReleases(t *testing.T) {
	for review, want := range map[string]string{
		"Ship decision: RELEASE\n\nShip decision: IMPROVE":                            "several",
		"Ship decision: RELEASE with conditions":                                      "value",
		"Ship decision: RELEASE (pending fixes)":                                      "value",
		"Ship decision: not RELEASE":                                                  "value",
		"Ship decision: RELEASE? No.":                                                 "value",
		"Ship decision: RELEASE|POLISH|IMPROVE|RETHINK":                               "template",
		"| Ship decision | RELEASE | once the header is fixed |":                      "value",
		"> Ship decision: RELEASE\n\nSays the page.":                                  "missing",
		"```\nShip decision: RELEASE\n```\n\nThat is what the footer says.":           "missing",
		"<!-- Ship decision: RELEASE -->\nThe page is fine.":                          "missing",
		"~~Ship decision: RELEASE~~":                                                  "missing",
		"<s>Ship decision: RELEASE</s>":                                               "missing",
		"Ship decision: <del>RELEASE</del>":                                           "value",
		"Ship decision: <span class=\"gone\">RELEASE</span>":                          "value",
		"Ship decision: RELEASE <!-- not yet -->":                                     "value",
		"Ship decision: RELEASE\nonce the header is fixed.":                           "value",
		"Ship decision: RELEASE\n\nFinal ship decision: IMPROVE":                      "several",
		"Ship decision: RELEASE\n\nMy ship decision: not before the header is fixed":  "several",
		"Ship decision: RELEASE\n\nVerdict: IMPROVE":                                  "several",
		"Ship decision: RELEASE\n\nOn reflection:\n\n**RETHINK**":                     "several",
		"Ship decision: ❌ RELEASE":                                                    "value",
		"Ship decision: RELEASE/POLISH":                                               "value",
		"Ship decision: RELEASED":                                                     "value",
		"- [ ] Ship decision: RELEASE":                                                "missing",
		"“Ship decision: RELEASE” is what I would like to say.":                       "missing",
		"My ship decision: RELEASE":                                                   "missing",
		"Ship decision: RELEASE\n</think>\nI am not sure.":                            "missing",
		"<think>\nShip decision: RELEASE":                                             "missing",
		"Ship decision is RELEASE only in name":                                       "value",
		"Ship decision:\nRELEASE":                                                     "missing",
		"Ship decision: <one of RELEASE, POLISH, IMPROVE, RETHINK>":                   "value",
		"<blockquote>\n\nShip decision: RELEASE\n\n</blockquote>\n\nSays the page.":   "missing",
		"<del>\n\nShip decision: RELEASE\n\n</del>\n\nNot yet.":                       "missing",
		"It says <s>\nShip decision: RELEASE\n</s> no more.":                          "missing",
		"<page>\n\n# Title\n\nShip decision: RELEASE\n\n</page>\n\nThat is the page.": "missing",
		"<html>\n<body>\n\nShip decision: RELEASE\n\n</body></html>":                  "missing",
		"<answer>\n\n<q>\n\nShip decision: RELEASE\n\n</q>\n\n</answer>":              "missing",
		"<answer>\n<blockquote>\nShip decision: RELEASE\n</blockquote>\n</answer>":    "missing",
		"<page>\nShip decision: RELEASE\n</page>\nThat is the page.":                  "missing",
		"<blockquote>Ship decision: RELEASE</blockquote>":                             "missing",
		"<page>Ship decision: RELEASE</page>\n<page>\n</page>":                        "missing",
		"Ship decision: [RELEASE] [POLISH]":                                           "value",
		"Ship decision: (not RELEASE)":                                                "value",
		"Ship decision: &lt;del&gt;RELEASE&lt;/del&gt;":                               "value",
		"Ship decision&#124;RELEASE":                                                  "value",
		"Ship decision: RELEASE\n\n| Reviewer | Verdict |\n|---|---|\n| B | POLISH |": "several",
	} {
		if got := decisionOf(t, shipDecision, review); got != "no verdict: "+want {
			t.Errorf("%q: %s, want %s", review, got, want)
		}
	}
}

// P-9, A-3: the dress of a decision.
func TestDecisions(t *testing.T) {
	for _, review := range []string{
		"Ship Decision: POLISH", "**Ship decision:** POLISH", "**Ship decision: POLISH**", "__Ship decision__: _POLISH_", "### Ship decision: POLISH",
		"### 7. Ship decision: POLISH", "- Ship decision: POLISH", "7. **Ship decision:** POLISH", "• Ship decision: POLISH", "Ship decision — POLISH.",
		"| Ship decision | POLISH |", "| **Ship decision** | **POLISH** |", "| 3 | Ship decision | POLISH |", "Ship decision: polish", "SHIP DECISION = `POLISH`",
		"Ship\u00a0decision：\u200bPOLISH", "Ship decision: ~~RELEASE~~ POLISH", "Text\r\nShip decision: POLISH\r\n", "Ship decision: POLISH\nPA-05: 3/4",
		"Ship decision: POLISH\n\nShip decision: POLISH", "Ship decision: RELEASE | POLISH | IMPROVE | RETHINK\n\nShip decision: POLISH",
		"`Ship decision`: POLISH", "| `Ship decision` | `POLISH` |", "Ship&nbsp;decision:&#32;POLISH", "Ship decision: (POLISH)", "Ship decision: <POLISH>",
		`Ship decision: "POLISH"`, "Ship decision: **{POLISH}**", "<answer>\n\nShip decision: POLISH\n\n</answer>",
		"<answer>Ship decision: POLISH</answer>", "<verdict>\nShip decision: POLISH\n</verdict>\n", "<my-review of=page>\n# Review\nShip decision: POLISH</my-review>",
		"<Verdict>\nFine.\nShip decision: POLISH\n</verdict>", "```\n<answer>\nShip decision: POLISH\n</answer>\n```", "<div align=center>\n\nShip decision: POLISH\n\n</div>",
		"<blockquote>\n\nShip decision: RELEASE\n\n</blockquote>\n\nShip decision: POLISH", "The heading is <name>.\n\nShip decision: POLISH",
		"<del>\n\nShip decision: RELEASE\n\n</del>\n\nShip decision: POLISH\n\n<del>\n\nShip decision: RELEASE\n\n</del>",
		"## Ship decision criteria\n\nShip decision: POLISH", "<details>\n\nShip decision: POLISH\n\n</details>",
	} {
		if got := decisionOf(t, shipDecision, review); got != "POLISH" {
			t.Errorf("%q: %s", review, got)
		}
	}
}

// P-9, K-1: without a decision the review is asked for again; then the declared one counts, and what was not read is absent.
func TestElse(t *testing.T) {
	const with = `{"decision":{"label":"D","values":["RELEASE","IMPROVE"],"else":"IMPROVE"},"scores":{"PA-05":{"max":4,"as":"pa05","least":3.5}}}`
	s, err := apply(t, with, "Nice page.")
	if _, read := s.Values["pa05"]; err != nil || read || s.Values["decision"] != "IMPROVE" || s.Values["reason"] != "missing" || s.Values["gate"] != "fail" {
		t.Errorf("%v %v", s.Values, err)
	}
	if len(s.Notes) != 1 || s.Notes[0].Type != "verdict-else" || len(s.Warnings) != 2 {
		t.Errorf("notes %v warnings %q", s.Notes, s.Warnings)
	}
	step, err := accept.ParseStep(Kind, []byte(with))
	if err != nil {
		t.Fatal(err)
	}
	s = accept.NewState(nil, "Nice page.")
	s.Again = func(category string) bool { return category == "no_verdict" }
	if _, class := outcomeOf(t, s, step.Apply(s)); class != "no_verdict" || s.Values["decision"] != nil {
		t.Errorf("not asked again: %v", s.Values)
	}
	for _, line := range []string{"PA-05: N/A", "PA-05: 3 or 4/4", "PA-05: 3/4\nPA-05: 2/4", ""} {
		if s, err := apply(t, `{"scores":{"PA-05":{"max":4,"required":true}}}`, line); err == nil || s.Values["reason"] != "missing" {
			t.Errorf("%q: a required score that was not read is a verdict: %v", line, s.Values)
		}
	}
}

// P-9: spellings of a score beside those of b-verdict/01; -1: not read.
func TestScores(t *testing.T) {
	for line, want := range map[string]float64{
		"Tier 5: 6/9": 6, "**Tier 5:** 6 / 9 (67%)": 6, "Tier 5 - 6 of 9": 6, "| Tier 5 | Motion | 6/9 | up from 4/9 |": 6, "TIER 5: 6/9": 6, "Tier  5 6/9": 6,
		"| Tier | Score |\n|---|---|\n| Tier 5 | 6/9 |": 6, "Tier 5: 6,5/9": 6.5, "> Tier 5: 1/9\n\nTier 5: 6/9": 6, "Tier 5: `6/9`": 6, "Tier 5: 6/9\n\nTier 5: 6/9": 6,
		"`Tier 5`: 6/9": 6, "| **`Tier 5`** | Motion | 6/9 |": 6, "Tier 5: 6&nbsp;/&nbsp;9": 6, "Tier 5: [6]/9": 6, "Tier 5 (6/9)": 6, "<q>\n\nTier 5: 1/9\n\n</q>\n\nTier 5: 6/9": 6,
		"Tier 5: 6/9 [1]": -1, "Tier 5: [1-9]/9": -1, "Tier 5: 6/9 (4/9)": -1, "`Tier 5: 6/9`": -1, "Tier 5&#124;6/9": -1,
		"Tier 15: 2/9": -1, "Tier 5.1: 3/9": -1, "Tier 5a: 6/9": -1, "Tier 5: 6/8": -1, "Tier 5: 10/9": -1, "Tier 5: 6": -1, "Tier 5: 67%": -1, "Tier 5: 5-6/9": -1,
		"Tier 5: 6/9 if the header is fixed": -1, "Tier 5: not 6/9": -1, "Tier 5: -1/9": -1, "Tier 5 target: 6/9": -1, "Tier 5: 6/9\n\nTier 5: 4/9": -1,
		"Tier 5: 6/9\n\nTier 5: unclear": -1, "```\nTier 5: 6/9\n```\nx": -1, "| Tier | Score |\n|---|---|\n| 5 | 6/9 |": -1, "Tier 5: 1,000/9": -1,
	} {
		s, err := apply(t, `{"scores":{"Tier 5":{"max":9,"as":"tier5"}}}`, line)
		got, read := s.Values["tier5"]
		if err != nil || read != (want >= 0) || read && got != want || read == (len(s.Warnings) > 0) {
			t.Errorf("%q: %v, want %g; %v %q", line, got, want, err, s.Warnings)
		}
	}
}

func TestDescribe(t *testing.T) {
	tr, err := Kind.Describe([]byte(`{"from":{"artifact":"r.md"},"scores":{"A":{"max":4,"as":"a"}}}`))
	if err != nil || len(tr.Problems) > 0 || tr.Outputs["a"] != "number?" || tr.Effect != "pure" || !reflect.DeepEqual(tr.Reads, []string{"r.md"}) {
		t.Errorf("%+v %v", tr, err)
	}
	for with, path := range map[string]string{
		`{}`:                                        "",
		`{"scores":{"A":0}}`:                        "scores.A",
		`{"scores":{"A":4,"a":5}}`:                  "scores.a",
		`{"scores":{"A":{"max":4,"as":"gate"}}}`:    "scores.A.as",
		`{"decision":{"label":"D","values":[]}}`:    "decision.values",
		`{"decision":{"label":" ","values":["A"]}}`: "decision.label",
		`{"decision":{"label":"D","values":["A","B"],"else":"C"}}`: "decision.else",
		`{"decision":{"label":"D","values":["A","B"],"else":"A"}}`: "decision.else",
		`{"scores":{"A":4},"from":{"text":"x"}}`:                   "from",
	} {
		step, err := accept.ParseStep(Kind, []byte(with))
		if err != nil {
			t.Fatal(err)
		}
		tr := accept.DescribeStep(step)
		if err != nil || len(tr.Problems) != 1 || tr.Problems[0].Path != path {
			t.Errorf("%s: %+v %v", with, tr.Problems, err)
		}
	}
}

func TestRunAlone(t *testing.T) {
	w := &nodetest.Host{Artifacts: map[string]string{"r.md": "PA-05: 3/4\nShip decision: POLISH\n"}}
	res, err := Kind.Run(context.Background(), w.Task(t, "verdict", `{"from":{"artifact":"r.md"},"scores":{"PA-05":4},"decision":{"label":"Ship Decision","values":["RELEASE","POLISH"]}}`))
	if err != nil || res.Values["decision"] != "POLISH" || !reflect.DeepEqual(numbers(res.Values["scores"]), map[string]float64{"PA-05": 3}) {
		t.Errorf("%+v %v", res, err)
	}
}

// No review releases without the word, or from a quote.
func FuzzVerdict(f *testing.F) {
	for _, s := range []string{"PA-05: 3/4", "| PA-05 | 3 |", "Ship decision: RELEASE", "<!--", "```", "PA-05: ~~1~~ → (2/4", "Final ship decision", "<think>\n"} {
		f.Add(s)
	}
	step, err := accept.ParseStep(Kind, []byte(`{"decision":{"label":"Ship decision","values":["RELEASE","POLISH","RETHINK"],"else":"POLISH"},"scores":{"PA-05":{"max":4,"as":"x"}}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, review string) {
		s := accept.NewState(nil, review)
		if err := step.Apply(s); err != nil {
			t.Fatal(err)
		}
		if v, read := s.Values["x"].(float64); read && (v < 0 || v > 4) {
			t.Fatalf("score %g", v)
		}
		if s.Values["decision"] == "RELEASE" && !strings.Contains(strings.ToUpper(review), "RELEASE") && !strings.ContainsAny(review, "\u200b\u200c\u200d\ufeff\u2060\u00ad\\&") {
			t.Fatal("released without the word")
		}
		quoted := accept.NewState(nil, "> "+strings.NewReplacer("\r\n", "\n> ", "\r", "\n> ", "\n", "\n> ").Replace(review))
		if err := step.Apply(quoted); err != nil || quoted.Values["reason"] != "missing" || quoted.Values["x"] != nil {
			t.Fatalf("a quoted review decides: %v %v", quoted.Values, err)
		}
	})
}

// BenchmarkHostile reads reviews of 1 MB, which must not cost more for each byte of a longer one.
func BenchmarkHostile(b *testing.B) {
	step, err := accept.ParseStep(Kind, []byte(shipDecision))
	if err != nil {
		b.Fatal(err)
	}
	for _, unit := range []string{"Ship decision: RELEASE\n", "*a ", "[", "`a", "> ", "| a ", "<", "- \n", "</think>\n", "<q>\n\na\n\n", "</q>\n\n<q>\n\na\n\n<s>\n\n", "a [b](c) *d* `e` text\n\n"} {
		for _, size := range []int{1 << 17, 1 << 19} {
			review := strings.Repeat(unit, size/len(unit))
			b.Run(unit, func(b *testing.B) {
				b.SetBytes(int64(len(review)))
				for b.Loop() {
					_ = step.Apply(accept.NewState(nil, review))
				}
			})
		}
	}
}
