package gates

import (
	"fmt"
	"strings"
)

// A decision is the verdict with what led to it.
type decision struct{ name, rule, reason string }

// decide takes the first rule that holds. Without one the verdict is else only when every check was
// made: silence is no pass.
func decide(v verdict, results []*result) decision {
	for i, r := range v.Rules {
		var failed []string
		for _, x := range results {
			if r.counts(x.check) && x.Status == fail {
				failed = append(failed, x.Name)
			}
		}
		if len(failed) < r.AtLeast {
			continue
		}
		reason := "failed: " + strings.Join(failed, ", ")
		if r.Reason != "" {
			reason = r.Reason + " (" + reason + ")"
		}
		return decision{r.Then, fmt.Sprintf("%d %s", i+1, r.about()), reason}
	}
	var open []string
	failed := 0
	for _, x := range results {
		switch x.Status {
		case notRun:
			open = append(open, x.Name)
		case fail:
			failed++
		}
	}
	if len(open) > 0 {
		return decision{v.Incomplete, "incomplete", "not run: " + strings.Join(open, ", ")}
	}
	return decision{v.Else, "else", fmt.Sprintf("no rule holds; %d of %d checks failed", failed, len(results))}
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
