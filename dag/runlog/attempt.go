package runlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
)

// finished writes the lines of an attempt's end, or of a node that ends without one.
func (w *writer) finished(b *machine.FinishedBody) {
	for i := range b.Notes {
		w.logLine(&b.Notes[i], b)
	}
	if b.CostUSD != 0 || b.Usage != (machine.Usage{}) || b.CostKind != "" {
		w.log(costLog, w.node, "attempt", b.Attempt, "model?", w.model(b), usage(b),
			"costKind?", b.CostKind, "cumulativeCostUsd", w.spent)
	}
	switch b.Status {
	case dag.StatusCompleted:
		w.completed(b)
	case dag.StatusSkipped:
		why := report.Reason(b.Category, b.Message)
		if b.Reused {
			why = "unchanged"
		}
		w.decide("skip", "reason?", why)
		w.say(info, "%s skipped: %s", b.Node, why)
	default:
		w.notCompleted(b)
	}
	for _, text := range b.Warnings {
		w.say(warn, "  %s: %s", b.Node, text)
	}
	if b.Status == dag.StatusCompleted || b.Status == dag.StatusSkipped || b.Final {
		w.nodeEnded(b)
	}
}

func (w *writer) logLine(n *machine.LogLine, b *machine.FinishedBody) {
	switch {
	case n.Log == "node": // see nodeEnded
	case n.Log != "quality":
		w.decide(n.Type, n.Fields)
	case n.Type == machine.NoteValidation:
		w.log(qualityLog, w.node, "type", n.Type, n.Fields, "warningDetails?", b.Warnings)
	default:
		w.log(qualityLog, w.node, "type", n.Type, n.Fields)
	}
}

func usage(b *machine.FinishedBody) fields {
	u := b.Usage
	return fields{"inputTokens", u.Input, "outputTokens", u.Output,
		"cacheRead", u.CacheRead, "cacheWrite", u.CacheWrite, "costUsd", b.CostUSD}
}

// model is the model that answered, or the one that was to be asked.
func (w *writer) model(b *machine.FinishedBody) string {
	var m string
	if raw, ok := b.Values["model"]; ok && json.Unmarshal(raw, &m) == nil {
		return m
	}
	if w.node != nil && w.node.Call != nil {
		return w.node.Call.Model
	}
	return ""
}

func (w *writer) completed(b *machine.FinishedBody) {
	kind := ""
	if w.node != nil {
		kind = w.node.Kind
	}
	if w.tries > 0 {
		w.log(errorLog, "context", b.Node, w.node, "category?", w.pending, "message?", w.why, "severity", "info",
			"recovered", true, "recoveredAtAttempt", b.Attempt, "failures", w.tries,
			"resolution", "a later attempt completed")
	}
	switch {
	case b.Reused:
		w.decide("reuse", "reason", "what it reads is unchanged")
		w.say(info, "%s unchanged, reused", b.Node)
		return
	case report.IsControl(kind) && kind != "join":
		w.decide(kind, w.values(b))
	case !silent(w.node):
		w.decide("accept-output", "attempt", b.Attempt, "validationResult?", report.Validation(b))
	}
	text := b.Node
	if !silent(w.node) {
		text += " (" + cmp.Or(w.node.Short, kind) + ")"
	}
	text += " COMPLETE"
	if took := report.Duration(w.seconds()); took != "" {
		text += " in " + took
	}
	if b.Usage != (machine.Usage{}) {
		text += fmt.Sprintf(" | %d in / %d out", b.Usage.Total()-b.Usage.Output, b.Usage.Output)
	}
	if b.CostUSD != 0 {
		text += " | $" + b.CostUSD.String()
	}
	if v := report.Validation(b); v != "" {
		text += " | validation: " + strings.ToUpper(v)
	}
	if shown := report.Shown(w.node, b.Values); len(shown) > 0 {
		var list fields
		for _, v := range shown {
			list = append(list, v.Name, v.Raw)
		}
		w.log(qualityLog, w.node, "type", w.node.Show.As, list)
		text += " | " + w.node.Show.As + ": " + report.ShownText(shown)
	}
	w.say(info, "%s", text)
}

// seconds is how long the attempt took that the event ends.
func (w *writer) seconds() float64 {
	if w.began.IsZero() {
		return 0
	}
	return max(0, w.e.Time.Sub(w.began).Seconds())
}

// noted returns a text field of each note of a type.
func noted(b *machine.FinishedBody, typ, field string) (list []string) {
	for i := range b.Notes {
		if b.Notes[i].Type == typ {
			list = append(list, report.Field(b.Notes[i].Fields, field))
		}
	}
	return list
}

// notCompleted writes the lines of an attempt that failed, was lost, refused or stopped.
func (w *writer) notCompleted(b *machine.FinishedBody) {
	what, level := w.outcome(b)
	w.decide(what, "attempt", b.Attempt, "reason?", cmp.Or(b.Category, string(b.Status)),
		"retryAt?", b.RetryAt, "waitUntil?", b.WaitUntil)
	if b.Status == dag.StatusFailed || b.Status == dag.StatusLost {
		severity := "error"
		switch {
		case b.Class == dag.Fatal:
			severity = "critical"
		case level == warn:
			severity = "warning"
		}
		w.log(errorLog, "context", b.Node, w.node, "attempt", b.Attempt, "status", b.Status, "category?", b.Category,
			"class?", b.Class, "severity", severity, "message", b.Message, ending(b), "resolution", what,
			"diagnostics?", b.Diagnostics, "generation?", later(b.Generation))
	}
	then := strings.ReplaceAll(what, "-", " ")
	switch {
	case !b.RetryAt.IsZero():
		then = "retry at " + instant(b.RetryAt)
	case !b.WaitUntil.IsZero():
		then = "waits until " + instant(b.WaitUntil)
	}
	w.say(level, "%s %s%s: %s; %s", b.Node, strings.ToUpper(string(b.Status)), report.AttemptText(b.Attempt),
		report.Reason(b.Category, b.Message), then)
}

// ending says of a failure that it was not recovered, once no attempt follows.
func ending(b *machine.FinishedBody) fields {
	if b.Final {
		return fields{"recovered", false}
	}
	return nil
}

// outcome says what follows an attempt that did not complete, and how bad that is.
func (w *writer) outcome(b *machine.FinishedBody) (what, level string) {
	switch {
	case b.Status == dag.StatusCancelled:
		return "cancel", warn
	case b.Status == dag.StatusRejected:
		return "reject-start", warn
	case !b.RetryAt.IsZero():
		return "retry-later", warn
	case !b.WaitUntil.IsZero():
		return "wait", warn
	case b.Stop:
		return "stop-for-the-user", alert
	case b.Status == dag.StatusLost && !b.Final:
		return "start-again", warn
	}
	onFail := dag.FailRun
	if w.node != nil {
		onFail = w.node.OnFailFor(b.Category)
	}
	switch onFail {
	case dag.FailContinue, dag.FailSkip:
		return "continue", alert
	case dag.FailEscalate:
		return "ask-the-user", alert
	case dag.FailCompensate:
		return "compensate", alert
	}
	return "pause-pipeline", alert
}

// nodeEnded writes the line of a node that needs nothing more.
func (w *writer) nodeEnded(b *machine.FinishedBody) {
	list := make(fields, 0, 32)
	if w.node != nil {
		list = append(list, w.node, "kind", w.node.Kind)
	} else {
		list = append(list, "node", b.Node)
	}
	list = append(list, "status", b.Status, "generation?", later(b.Generation))
	if b.Attempt > 0 {
		if !silent(w.node) {
			list = append(list, "startedAt?", w.began, "completedAt", w.e.Time)
		}
		list = append(list, "durationMs?", int64(w.seconds()*1000+0.5))
		if b.Attempt > 1 || !silent(w.node) {
			list = append(list, "retries", b.Attempt-1)
		}
	}
	if b.Usage != (machine.Usage{}) || b.CostUSD != 0 {
		u := b.Usage
		list = append(list, "inputTokens", u.Input, "outputTokens", u.Output, "cacheReadTokens", u.CacheRead,
			"cacheWriteTokens", u.CacheWrite, "costUsd", b.CostUSD, "cumulativeCostUsd", w.spent)
	}
	if v := report.Validation(b); v != "" {
		list = append(list, "validationPassed", v == "pass")
	}
	list = append(list, "category?", b.Category, "reused?", b.Reused)
	if w.node != nil && b.Attempt > 0 { // for each accumulator that it may add to, whether it did
		did := noted(b, "append-entry", "accumulator")
		for _, name := range w.node.Appends {
			field := name
			if a, ok := w.plan.AccumulatorByName(name); ok {
				field = cmp.Or(a.Field, name)
			}
			list = append(list, field, slices.Contains(did, name))
		}
	}
	for i := range b.Notes {
		if b.Notes[i].Log == "node" {
			list = append(list, b.Notes[i].Fields)
		}
	}
	list = append(append(list, w.values(b)...), "warnings?", len(b.Warnings))
	w.log(nodeLog, list...)
}

// longestValue bounds the values that logs repeat, in bytes of JSON; the events have all of them.
const longestValue = 120

// A value is a field that takes another name where its own is taken: "out." in front.
type value struct {
	name string
	raw  json.RawMessage
}

// values are the small values of a node, except for those that repeat a label.
func (w *writer) values(b *machine.FinishedBody) (list fields) {
	for _, name := range slices.Sorted(maps.Keys(b.Values)) {
		raw := b.Values[name]
		repeats := w.node != nil && w.node.Labels[name] != "" && w.node.Labels[name] == report.ValueText(raw)
		if !repeats && len(raw) <= longestValue {
			list = append(list, value{name, raw})
		}
	}
	return list
}
