// Package gates is the kind of node that checks a page by declared rules and draws one verdict.
// It knows no rule of its own.
package gates

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"dagrun.dev/nodes"
)

//go:embed schema.cue
var schema string

// Kind is the kind "gates".
var Kind = nodes.Kind{Name: "gates", Schema: schema, Parse: read}

// Needs is a browser that works, for nodes that need one.
func (s *settings) Needs() []nodes.Need {
	if !s.browsing() {
		return nil
	}
	return s.View.Needs()
}

// Run makes all checks once and draws the verdict. What needs no browser is made first, checks of checks last.
func (s *settings) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) {
	r := &runner{task: t, set: s, res: &nodes.Result{}}
	for i := range s.Checks {
		c := &s.Checks[i]
		r.results = append(r.results, &result{Name: c.Name, Title: c.Title, Class: c.Class, check: c, due: 1})
	}
	for _, step := range []struct {
		method string
		make   func(ctx context.Context, of []*result) error
	}{
		{byValue, r.values},
		{byText, r.texts},
		{byCode, r.inBrowser},
		{byMeta, r.meta},
	} {
		of := r.of(step.method)
		if len(of) == 0 {
			continue
		}
		for _, x := range of {
			if err := t.Emit("GATE_RUN_STARTED", map[string]any{"gate": x.Name}); err != nil {
				return r.res, err
			}
		}
		if err := step.make(ctx, of); err != nil {
			return r.res, err
		}
		for _, x := range of {
			if err := t.Emit("GATE_RUN_FINISHED", x.conclude()); err != nil {
				return r.res, err
			}
		}
	}
	return r.res, r.finish()
}

// A runner carries out one attempt.
type runner struct {
	task    *nodes.Task
	set     *settings
	res     *nodes.Result
	results []*result // one for each check, in their order
	browser string
}

// of returns the results of the checks that are made by a method.
func (r *runner) of(method string) []*result {
	var list []*result
	for _, x := range r.results {
		if x.check.method() == method {
			list = append(list, x)
		}
	}
	return list
}

// A report is gates.json.
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
	failures, unproven, byClass, counts := []string{}, []string{}, map[string]any{}, map[string]int{}
	for _, x := range r.results {
		counts[x.Status]++
		n, _ := byClass[x.Class].(int)
		if x.Status == fail {
			failures = append(failures, x.Name)
			n++
		}
		byClass[x.Class] = n // also a class without failures is named
		if x.Status == notRun {
			unproven = append(unproven, x.Name)
		}
	}
	r.res.Values = map[string]any{
		"verdict": v.name, "rule": v.rule, "reason": v.reason,
		"passed": counts[pass], "failed": counts[fail], "notRun": counts[notRun], "degraded": counts[notRun] > 0,
		"failures": failures, "unproven": unproven, "byClass": byClass, "browser": r.browser,
	}
	r.res.Notes = append(r.res.Notes,
		nodes.LogLine{Log: "decision", Type: "gates", Fields: map[string]any{
			"verdict": v.name, "rule": v.rule, "reason": v.reason,
		}},
		nodes.LogLine{Log: "quality", Type: "gates", Fields: map[string]any{
			"passed": counts[pass], "failed": counts[fail], "not_run": counts[notRun], "failures": failures,
		}})
	r.res.Warnings = append(r.res.Warnings, r.notRun()...)
	text, err := json.MarshalIndent(report{v.name, v.rule, v.reason, r.browser, r.results}, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if err := r.task.KeepFrom("gates.json", bytes.NewReader(text)); err != nil || r.set.To == "" {
		return err
	}
	r.res.Writes = map[string]string{r.set.To: r.set.To}
	return r.task.Stage(r.set.To, bytes.NewReader(text))
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
