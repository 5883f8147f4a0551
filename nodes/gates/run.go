package gates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/browser"
)

var _ nodes.Preflighter = Kind{}

// Preflight looks whether there is a browser that works, for nodes that need one.
func (Kind) Preflight(ctx context.Context, with []json.RawMessage, specDir, scratch string) ([]string, error) {
	browsing := slices.DeleteFunc(slices.Clone(with), func(w json.RawMessage) bool {
		s, err := read(w)
		return err == nil && !s.browsing()
	})
	return browser.Preflight(ctx, browsing, specDir, scratch)
}

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

const (
	pass   = "pass"
	fail   = "fail"
	notRun = "not-run"
)

// Run makes all checks once and draws the verdict.
func (Kind) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	s, err := read(t.With)
	if err != nil {
		return nil, err
	}
	r := &runner{task: t, set: s, res: &nodes.Result{}}
	for i := range s.Checks {
		c := &s.Checks[i]
		r.results = append(r.results, &result{Name: c.Name, Title: c.Title, Class: c.Class, check: c, due: 1})
	}
	for _, kind := range []struct {
		name string
		make func(ctx context.Context) error
	}{{value, r.values}, {inText, r.texts}, {inPage, r.inBrowser}, {meta, r.meta}} {
		of := r.of(kind.name)
		if len(of) == 0 {
			continue
		}
		if err := r.around(of, func() error { return kind.make(ctx) }); err != nil {
			return r.res, err
		}
	}
	return r.res, r.finish()
}

type runner struct {
	task    *nodes.Task
	set     *settings
	res     *nodes.Result
	results []*result // one for each check, in their order
	browser string
}

// of returns the results of the checks of a kind.
func (r *runner) of(kind string) []*result {
	var list []*result
	for _, x := range r.results {
		if x.check.kind() == kind {
			list = append(list, x)
		}
	}
	return list
}

// around records that checks begin, makes them and records how they ended.
func (r *runner) around(of []*result, make func() error) error {
	for _, x := range of {
		if err := r.task.Emit("GATE_RUN_STARTED", map[string]any{"gate": x.Name}); err != nil {
			return err
		}
	}
	if err := make(); err != nil {
		return err
	}
	for _, x := range of {
		x.sum()
		status := x.Status
		if status == notRun {
			status = "error"
		}
		details := map[string]any{"class": x.Class}
		if x.Reason != "" {
			details["reason"] = x.Reason
		}
		if err := r.task.Emit("GATE_RUN_FINISHED", map[string]any{"gate": x.Name, "status": status, "details": details}); err != nil {
			return err
		}
	}
	return nil
}

// sum draws the status from the measures: one that failed is enough, one that is missing leaves it open.
func (x *result) sum() {
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
	switch {
	case len(reasons) > 0:
		x.Status, x.Reason = fail, strings.Join(reasons, "; ")
	case x.complete():
		x.Status, x.Reason = pass, ""
	default:
		x.Status = notRun // the reason is known already
	}
}

func (x *result) complete() bool { return len(x.Results) >= x.due }

// judge says whether a value passes. Nothing but a truth value or a number within its bounds does.
func (c *check) judge(v any) (ok bool, reason string) {
	bounded := c.Min != nil || c.Max != nil
	switch v := v.(type) {
	case bool:
		if bounded {
			return false, fmt.Sprintf("%v where a number was asked for", v)
		}
		if !v {
			reason = "false"
		}
		return v, reason
	case float64:
		switch {
		case !bounded:
			return false, fmt.Sprintf("the number %v, but no min or max to hold it against", v)
		case c.Min != nil && v < *c.Min:
			return false, fmt.Sprintf("%v is below %v", v, *c.Min)
		case c.Max != nil && v > *c.Max:
			return false, fmt.Sprintf("%v is above %v", v, *c.Max)
		}
		return true, ""
	}
	return false, fmt.Sprintf("neither a truth value nor a number: %v", v)
}

// values compares recorded values.
func (r *runner) values(context.Context) error {
	for _, x := range r.of(value) {
		var v any
		if err := json.Unmarshal(x.check.Value, &v); err != nil {
			v = "no value"
		}
		switch v := v.(type) {
		case nil:
			x.Results = []measure{{Reason: "neither a truth value nor a number: null"}}
		case bool, float64:
			m := measure{Value: v}
			m.Pass, m.Reason = x.check.judge(v)
			x.Results = []measure{m}
		default:
			_, reason := x.check.judge(v)
			x.Results = []measure{{Reason: reason}}
		}
	}
	return nil
}

// meta checks the checks.
func (r *runner) meta(context.Context) error {
	for _, x := range r.of(meta) {
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
		if x.check.kind() != meta && !x.complete() {
			bad = append(bad, fmt.Sprintf("%s: %d of %d", x.Name, len(x.Results), x.due))
		}
	}
	return bad
}

// wavering names the checks that contradict themselves.
func (r *runner) wavering() []string {
	var bad []string
	for _, x := range r.of(inPage) {
		first := map[string]bool{}
		for _, m := range x.Results {
			if was, seen := first[m.Viewport]; seen && was != m.Pass {
				bad = append(bad, x.Name+" changes between two looks at "+m.Viewport)
				break
			}
			first[m.Viewport] = m.Pass
		}
		if _, truth := firstValue(x).(bool); !truth {
			continue
		}
		for _, m := range x.Results[1:] {
			if m.Pass != x.Results[0].Pass {
				bad = append(bad, fmt.Sprintf("%s differs between %s and %s", x.Name, x.Results[0].Viewport, m.Viewport))
				break
			}
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

func firstValue(x *result) any {
	if len(x.Results) == 0 {
		return nil
	}
	return x.Results[0].Value
}

// report is gates.json.
type report struct {
	Verdict string    `json:"verdict"`
	Rule    string    `json:"rule"`
	Reason  string    `json:"reason"`
	Browser string    `json:"browser,omitempty"`
	Checks  []*result `json:"checks"`
}

// finish draws the verdict and keeps everything.
func (r *runner) finish() error {
	v := decide(r.set.Verdict, r.results)
	failures, byClass := []string{}, map[string]any{}
	counts := map[string]int{}
	for _, x := range r.results {
		counts[x.Status]++
		n, _ := byClass[x.Class].(int)
		if x.Status == fail {
			failures = append(failures, x.Name)
			n++
		}
		byClass[x.Class] = n
	}
	r.res.Values = map[string]any{
		"verdict": v.name, "rule": v.rule, "reason": v.reason, "passed": counts[pass], "failed": counts[fail], "notRun": counts[notRun],
		"failures": failures, "byClass": byClass, "degraded": counts[notRun] > 0, "browser": r.browser,
	}
	r.res.Notes = append(r.res.Notes,
		nodes.Note{Log: "decision", Type: "gates", Fields: map[string]any{"verdict": v.name, "rule": v.rule, "reason": v.reason}},
		nodes.Note{Log: "quality", Type: "gates", Fields: map[string]any{"passed": counts[pass], "failed": counts[fail], "not_run": counts[notRun], "failures": failures}})
	r.res.Warnings = append(r.res.Warnings, r.notRun()...)
	text, err := json.MarshalIndent(report{v.name, v.rule, v.reason, r.browser, r.results}, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	w, err := r.task.Keep("gates.json")
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return r.stage(text)
}

// notRun names the checks that were not made, those with the same reason together.
func (r *runner) notRun() []string {
	var reasons, warnings []string
	names := map[string][]string{}
	for _, x := range r.results {
		if x.Status != notRun {
			continue
		}
		if names[x.Reason] == nil {
			reasons = append(reasons, x.Reason)
		}
		names[x.Reason] = append(names[x.Reason], x.Name)
	}
	for _, reason := range reasons {
		warnings = append(warnings, "not run: "+strings.Join(names[reason], ", ")+": "+reason)
	}
	return warnings
}

func (r *runner) stage(text []byte) error {
	if r.set.To == "" {
		return nil
	}
	root, err := os.OpenRoot(r.task.Out)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := filepath.Dir(r.set.To); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	r.res.Writes = map[string]string{r.set.To: r.set.To}
	return root.WriteFile(r.set.To, text, 0o600)
}
