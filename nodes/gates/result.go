package gates

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A result is what became of one check.
type result struct {
	Name    string    `json:"name"`
	Title   string    `json:"title,omitempty"`
	Class   string    `json:"class"`
	Status  string    `json:"status"` // pass | fail | not-run
	Reason  string    `json:"reason,omitempty"`
	Results []measure `json:"results,omitempty"`

	check *check
	due   int // measures that a complete check has
}

// A measure is what a check gave once: at one viewport for those in the browser.
type measure struct {
	Viewport string   `json:"viewport,omitempty"`
	Value    any      `json:"value,omitempty"` // a bool or float64, where it gave one
	Pass     bool     `json:"pass"`
	Reason   string   `json:"reason,omitempty"` // why it failed
	Notes    []string `json:"notes,omitempty"`
}

// The statuses of a result.
const (
	pass   = "pass"
	fail   = "fail"
	notRun = "not-run"
)

func (x *result) complete() bool { return len(x.Results) >= x.due }

// conclude draws the status from the measures and returns the event that records it. One that failed is enough, one
// that is missing leaves it open.
func (x *result) conclude() map[string]any {
	var reasons []string
	for _, m := range x.Results {
		if m.Pass {
			continue
		}
		why := m.Reason
		if m.Viewport != "" {
			why = m.Viewport + ": " + why
		}
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
	}
	status := "error"
	switch {
	case len(reasons) > 0:
		x.Status, x.Reason, status = fail, strings.Join(reasons, "; "), fail
	case x.complete():
		x.Status, x.Reason, status = pass, "", pass
	default:
		x.Status = notRun // the reason is known already
	}
	details := map[string]any{"class": x.Class}
	if x.Reason != "" {
		details["reason"] = x.Reason
	}
	return map[string]any{"gate": x.Name, "status": status, "details": details}
}

// judge holds a value against the check's bounds. Nothing passes but true, or a number within them.
func (c *check) judge(v any) measure {
	failed := func(format string, args ...any) measure {
		return measure{Value: v, Reason: fmt.Sprintf(format, args...)}
	}
	switch v := v.(type) {
	case bool:
		switch {
		case c.bounded():
			return failed("%v where a number was asked for", v)
		case !v:
			return failed("false")
		}
	case float64:
		switch {
		case !c.bounded():
			return failed("the number %v, but no min or max to hold it against", v)
		case c.Min != nil && v < *c.Min:
			return failed("%v is below %v", v, *c.Min)
		case c.Max != nil && v > *c.Max:
			return failed("%v is above %v", v, *c.Max)
		}
	case nil:
		return measure{Reason: "neither a truth value nor a number: null"}
	default:
		return measure{Reason: fmt.Sprintf("neither a truth value nor a number: %v", v)}
	}
	return measure{Value: v, Pass: true}
}

// values compares recorded values.
func (r *runner) values(_ context.Context, of []*result) error {
	for _, x := range of {
		var v any
		if err := json.Unmarshal(x.check.Value, &v); err != nil {
			return err
		}
		x.Results = []measure{x.check.judge(v)}
	}
	return nil
}

// meta checks the checks.
func (r *runner) meta(_ context.Context, of []*result) error {
	for _, x := range of {
		bad := r.uncovered()
		if x.check.Meta == "consistency" {
			bad = r.wavering()
		}
		x.Results = []measure{{Value: len(bad) == 0, Pass: len(bad) == 0, Reason: strings.Join(bad, "; ")}}
	}
	return nil
}

// uncovered names the checks that were not made, or not everywhere.
func (r *runner) uncovered() []string {
	var bad []string
	for _, x := range r.results {
		if x.check.method() != byMeta && !x.complete() {
			bad = append(bad, fmt.Sprintf("%s: %d of %d", x.Name, len(x.Results), x.due))
		}
	}
	return bad
}

// wavering names the checks that contradict themselves: between two looks at one viewport, or, of those that give a
// truth value, between viewports.
func (r *runner) wavering() []string {
	var bad []string
	for _, x := range r.of(byCode) {
		first := map[string]bool{}
		for _, m := range x.Results {
			if was, seen := first[m.Viewport]; seen && was != m.Pass {
				bad = append(bad, x.Name+" changes between two looks at "+m.Viewport)
				break
			}
			first[m.Viewport] = m.Pass
		}
		for _, m := range x.Results {
			if _, truth := x.Results[0].Value.(bool); truth && m.Pass != x.Results[0].Pass {
				bad = append(bad, fmt.Sprintf("%s differs between %s and %s", x.Name, x.Results[0].Viewport, m.Viewport))
				break
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

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
