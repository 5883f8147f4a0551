package verdict

import (
	"reflect"
	"testing"
)

// P-9: tier lines and their look-alikes.
func TestTierLines(t *testing.T) {
	for line, want := range map[string]float64{
		"Tier 5: 6/9":                                   6,
		"**Tier 5:** 6 / 9 (67%)":                       6,
		"## Tier 5 — Motion: 6/9":                       6,
		"Tier 5 (Motion, 9 checks): 6/9":                6,
		"Tier 5 total: 6 of 9 checks pass":              6,
		"Tier 5: 67% (6/9)":                             6,
		"Tier  5 6/9":                                   6,
		"TIER 5: 6/9":                                   6,
		"tier_5: 6/9":                                   6,
		"Tier-5: 6/9":                                   6,
		"| Tier 5 | Motion | 6/9 |":                     6,
		"| Tier 5 | 6/9 | Tier 6 | 1/9 |":               6,
		"| Tier 4 | Tier 5 |\n|---|---|\n| 1/9 | 6/9 |": 6,
		"Tier 5: 4/9 → 6/9":                             6,
		"Tier 5: 6,5/9":                                 6.5,
		"Tier 5: 6/9 (Tier 15: 2/9)":                    6,
		"Tier 5: 6/9; Tier 5: 6/9":                      6,
		"Tier 5: 6/9\nTier 5: 4/9":                      4,
		"Tier 5 (previous): 2/9\nTier 5: 6/9":           6,
		"Tier 5: 6/9 passed, 3 failed":                  6,
		"- Tier 5 ........ 6/9":                         6,
		"Tier 5\u00a0:\u00a06\u202f/\u202f9":            6,
		"Tier 5: **6**/9, up from 4/9":                  6,
		"Tier 4: 1/9 | Tier 5: 6/9":                     6,
		"<tr><td>Tier 5</td><td>6/9</td></tr>":          6,

		"Tier 15: 2/9":                 -1,
		"Tier 5.1: 3/9\nTier 5.2: 3/9": -1,
		"Tier 5a: 6/9":                 -1,
		"Tier V: 6/9":                  -1,
		"Tier Five: 6/9":               -1,
		"| Tier | Score |\n|---|---|\n| 5 | 6/9 |": -1,
		"Tier 5: 6/8":                  -1,
		"Tier 5: 10/9":                 -1,
		"Tier 5: 6":                    -1,
		"Tier 5: 67%":                  -1,
		"Tier 5: 5-6/9":                -1,
		"Tier 5: 4/9 + 2/9":            -1,
		"Tier 5: 6 passed, 3 failed":   -1,
		"Tier 5 target: 6/9":           -1,
		"Tiers 4-5: 6/9":               -1,
		"Tier 4, Tier 6 and Tier 5":    -1,
		"> Tier 5: 6/9":                -1,
		"```\nTier 5: 6/9\n```\nx":     -1,
		"Tier 5: all of the nine hold": -1,
		"Without Tier 5: 6/9":          -1,
	} {
		s, err := apply(t, `{"decision":{"label":"Ship Decision","values":["RELEASE","POLISH"]},"tiers":{"Tier 5":{"max":9,"as":"tier5"}}}`, line+"\nShip Decision: POLISH\n")
		tiers := map[string]float64{}
		if want >= 0 {
			tiers["Tier 5"] = want
		}
		if err != nil || s.Values["tier5"] != want || !reflect.DeepEqual(numbers(s.Values["tiers"]), tiers) {
			t.Errorf("%q: %v, want %g; %v %q", line, s.Values["tier5"], want, err, s.Warnings)
		}
	}
}
