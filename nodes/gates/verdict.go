package gates

import (
	"fmt"
	"slices"
	"strings"
)

// A verdict is #GatesVerdict: what follows from the results. The first rule that holds decides.
type verdict struct {
	Rules      []rule `json:"rules"`
	Else       string `json:"else"`
	Incomplete string `json:"incomplete"`
}

// A rule holds when so many of the checks that it counts failed.
type rule struct {
	Class   string   `json:"class"`
	Checks  []string `json:"checks"`
	AtLeast int      `json:"atLeast"`
	Then    string   `json:"then"`
	Reason  string   `json:"reason"`
}

// counts reports whether a check is one of those whose failures the rule counts.
func (r *rule) counts(c *check) bool {
	switch {
	case r.Class != "":
		return c.Class == r.Class
	case len(r.Checks) > 0:
		return slices.Contains(r.Checks, c.Name)
	}
	return true
}

// about says in a word what a rule counts.
func (r *rule) about() string {
	switch {
	case r.Class != "":
		return r.Class
	case len(r.Checks) > 0:
		return strings.Join(r.Checks, "+")
	}
	return "any"
}

// A decision is the verdict with what led to it.
type decision struct{ name, rule, reason string }

// decide takes the first rule that holds. Without one the verdict is else only when every check was
// made: silence is no pass.
func decide(v verdict, results []*result) decision {
	named := func(of func(x *result) bool) (names []string) {
		for _, x := range results {
			if of(x) {
				names = append(names, x.Name)
			}
		}
		return names
	}
	for i, r := range v.Rules {
		failed := named(func(x *result) bool { return x.Status == fail && r.counts(x.check) })
		if len(failed) < r.AtLeast {
			continue
		}
		reason := "failed: " + strings.Join(failed, ", ")
		if r.Reason != "" {
			reason = r.Reason + " (" + reason + ")"
		}
		return decision{r.Then, fmt.Sprintf("%d %s", i+1, r.about()), reason}
	}
	if open := named(func(x *result) bool { return x.Status == notRun }); len(open) > 0 {
		return decision{v.Incomplete, "incomplete", "not run: " + strings.Join(open, ", ")}
	}
	failed := named(func(x *result) bool { return x.Status == fail })
	return decision{v.Else, "else", fmt.Sprintf("no rule holds; %d of %d checks failed", len(failed), len(results))}
}
