package runlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

// Levels of the log for people.
const (
	info  = "[INFO] "
	warn  = "[WARN] "
	alert = "[ERROR]"
)

// A liner turns one event into lines. What a line says depends on the event and the state as of it
// alone, so that logs made anew are equal byte for byte. Every line names its event: "seq" in the
// .jsonl files, #N in orchestrator.log.
//
//	orchestrator.log  for people: every start and end, file, warning, pause
//	decisions.jsonl   why something was done or not: "decision", and what it was decided on
//	errors.jsonl      every failed or lost attempt, "recovered": false; a second line with
//	                  "recovered": true when a later attempt completes
//	cost.jsonl        one line for each attempt that cost money or tokens
//	quality.jsonl     what kinds say of quality (validations, scores, counts), and gates
//	passes.jsonl      one line for each node that ended
//
// The labels of a node are fields of its lines.
type liner struct {
	*entry
	emit func(log int, line []byte)
}

func (en *entry) lines(emit func(log int, line []byte)) {
	l := liner{en, emit}
	switch b := en.e.Body.(type) {
	case *machine.StartedBody:
		l.started(b)
	case *machine.FinishedBody:
		l.finished(b)
	case *machine.ArtifactWrittenBody:
		l.written(b)
	case *machine.LLMCallFailedBody:
		l.say(warn, "%s: call failed after %s: %s", b.Node, report.Duration(float64(b.LatencyMS)/1000), cmp.Or(b.ErrorSummary, b.ErrorClass))
	case *machine.GateRunBody:
		l.gate(b)
	default:
		l.event()
	}
}

// say adds a line to the log for people.
func (l liner) say(level, format string, args ...any) {
	b := append(make([]byte, 0, 160), '[')
	b = append(l.e.Time.AppendFormat(b, stamp), "] "...)
	b = append(append(b, level...), " #"...)
	b = append(strconv.AppendInt(b, l.e.Seq, 10), ' ')
	b = append(b, report.Plain(fmt.Sprintf(format, args...))...)
	l.emit(humanLog, append(b, '\n'))
}

func (l liner) record() *record { return newRecord(l.e.Seq, l.e.Time) }

// decided adds a line to decisions.jsonl.
func (l liner) decided(what string, pairs ...any) {
	l.emit(decisionLog, l.record().add("decision", what).of(l.node).add(pairs...).line())
}

// tell is decided and say.
func (l liner) tell(level, text, what string, pairs ...any) {
	l.decided(what, pairs...)
	l.say(level, "%s", text)
}

// later is a generation that is worth a field: one after the first.
func later(generation int) int {
	if generation > 1 {
		return generation
	}
	return 0
}

func (l liner) started(b *machine.StartedBody) {
	if b.Attempt > 1 {
		after := reason(l.pending, l.why)
		if after != "" {
			after = " after " + after
		}
		l.tell(info, fmt.Sprintf("%s starts again (attempt %d)%s", b.Node, b.Attempt, after), "retry", "attempt", b.Attempt, "reason?", l.pending)
		return
	}
	l.tell(info, b.Node+" starts"+report.Titled(l.node.Title), "execute", "attempt", b.Attempt, "generation?", later(b.Generation),
		"reservedUsd?", max(0, b.Reserve.USD), "files?", l.node.Files)
}

// reason is a category and a message, or what there is of them.
func reason(category, message string) string {
	return strings.TrimSuffix(strings.TrimPrefix(category+": "+message, ": "), ": ")
}

func (l liner) written(b *machine.ArtifactWrittenBody) {
	switch {
	case b.Entry:
		l.say(info, "  entry appended to %s (%d bytes)", b.Name, b.Size)
	case b.Why == run.WhyRestored:
		l.tell(info, fmt.Sprintf("  %s is again what %s made of it (%d bytes)", b.Name, b.Node, b.Size), "restore-file", "artifact", b.Name, "sha256", b.Digest)
	case b.Why != "":
		l.tell(warn, fmt.Sprintf("  %s was taken as it is (%s, %d bytes)", b.Name, b.Why, b.Size), "take-file", "artifact", b.Name, "reason", b.Why, "sha256", b.Digest)
	case b.Backup != "":
		l.say(info, "  %s updated (%d bytes), backed up to %s", b.Name, b.Size, b.Backup)
	default:
		l.say(info, "  %s written (%d bytes)", b.Name, b.Size)
	}
}

func (l liner) gate(b *machine.GateRunBody) {
	if b.Start {
		return
	}
	l.emit(qualityLog, l.record().of(l.node).add("type", "gate", "gate", b.Gate, "result", b.Status).fields(b.Details).line())
	level := info
	if b.Status != "pass" {
		level = warn
	}
	l.say(level, "  gate %s: %s", b.Gate, b.Status)
}

// finished writes the lines of an attempt's end, or of a node that ends without one.
func (l liner) finished(b *machine.FinishedBody) {
	for i := range b.Notes {
		l.note(&b.Notes[i], b)
	}
	if b.CostUSD != 0 || b.Usage != (machine.Usage{}) || b.CostKind != "" {
		l.cost(b)
	}
	switch b.Status {
	case dag.StatusCompleted:
		l.completed(b)
	case dag.StatusSkipped:
		why := strings.TrimPrefix(b.Category+": "+b.Message, ": ")
		if b.Reused {
			why = "as before"
		}
		l.tell(info, b.Node+" skipped: "+why, "skip", "reason?", why)
	default:
		l.notCompleted(b)
	}
	for _, w := range b.Warnings {
		l.say(warn, "  %s: %s", b.Node, w)
	}
	if b.Status == dag.StatusCompleted || b.Status == dag.StatusSkipped || b.Final {
		l.ended(b)
	}
}

func (l liner) note(n *machine.Note, b *machine.FinishedBody) {
	if n.Log != "quality" {
		l.emit(decisionLog, l.record().add("decision", n.Type).of(l.node).fields(n.Fields).line())
		return
	}
	r := l.record().of(l.node).add("type", n.Type).fields(n.Fields)
	if n.Type == "validation" {
		r.add("warningDetails?", b.Warnings)
	}
	l.emit(qualityLog, r.line())
}

func (l liner) cost(b *machine.FinishedBody) {
	r := l.record().of(l.node).add("attempt", b.Attempt, "model?", model(l.node, b))
	l.emit(costLog, usage(r, b).add("costKind?", b.CostKind, "cumulativeCostUsd", l.spent).line())
}

func usage(r *record, b *machine.FinishedBody) *record {
	u := b.Usage
	return r.add("inputTokens", u.Input, "outputTokens", u.Output, "cacheRead", u.CacheRead, "cacheWrite", u.CacheWrite, "costUsd", b.CostUSD)
}

// model is the model that answered, or the one that was to be asked.
func model(n *dag.Node, b *machine.FinishedBody) string {
	var m string
	if raw, ok := b.Values["model"]; ok && json.Unmarshal(raw, &m) == nil {
		return m
	}
	if n != nil && n.Call != nil {
		return n.Call.Model
	}
	return ""
}

func (l liner) completed(b *machine.FinishedBody) {
	kind := ""
	if l.node != nil {
		kind = l.node.Kind
	}
	if l.tries > 0 {
		l.emit(errorLog, l.record().add("context", b.Node).of(l.node).add("category?", l.pending, "message?", l.why, "severity", "info",
			"recovered", true, "recoveredAtAttempt", b.Attempt, "failures", l.tries, "resolution", "a later attempt completed").line())
	}
	switch {
	case b.Reused:
		l.tell(info, b.Node+" unchanged, reused", "reuse", "reason", "all that it reads is as it was")
		return
	case report.IsControl(kind) && kind != "join":
		l.emit(decisionLog, l.values(l.record().add("decision", kind).of(l.node), b).line())
	case !silent(l.node):
		l.decided("accept-output", "attempt", b.Attempt, "validationResult?", validation(b))
	}
	l.say(info, "%s", l.summary(b, kind))
}

// summary is the line for people of a node that has completed.
func (l liner) summary(b *machine.FinishedBody, kind string) string {
	s := b.Node + " COMPLETE"
	if !silent(l.node) {
		s = fmt.Sprintf("%s (%s) COMPLETE", b.Node, kind)
	}
	if b.Attempt > 0 {
		s += " in " + report.Duration(l.seconds())
	}
	if b.Usage != (machine.Usage{}) {
		s += fmt.Sprintf(" | %d in / %d out", b.Usage.Total()-b.Usage.Output, b.Usage.Output)
	}
	if b.CostUSD != 0 {
		s += " | $" + b.CostUSD.String()
	}
	if v := validation(b); v != "" {
		s += " | validation: " + v
	}
	return s
}

// seconds is how long the attempt took that the event ends.
func (l liner) seconds() float64 {
	if l.began.IsZero() {
		return 0
	}
	return max(0, l.e.Time.Sub(l.began).Seconds())
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

// validation is what the checks of an answer said; empty when there were none.
func validation(b *machine.FinishedBody) string {
	return append(noted(b, "validation", "result"), "")[0]
}

// notCompleted writes the lines of an attempt that failed, was lost, refused or stopped.
func (l liner) notCompleted(b *machine.FinishedBody) {
	what, level := l.outcome(b)
	l.decided(what, "attempt", b.Attempt, "reason?", cmp.Or(b.Category, string(b.Status)), "retryAt?", b.RetryAt, "waitUntil?", b.WaitUntil)
	if b.Status == dag.StatusFailed || b.Status == dag.StatusLost {
		severity := "error"
		switch {
		case b.Class == dag.Fatal:
			severity = "critical"
		case level == warn:
			severity = "warning"
		}
		l.emit(errorLog, l.record().add("context", b.Node).of(l.node).add("attempt", b.Attempt, "status", b.Status,
			"category?", b.Category, "class?", b.Class, "severity", severity, "message", b.Message, "recovered", false, "resolution", what,
			"diagnostics?", b.Diagnostics, "generation?", later(b.Generation)).line())
	}
	l.say(level, "%s %s%s: %s%s", b.Node, strings.ToUpper(string(b.Status)), report.AttemptText(b.Attempt), strings.TrimPrefix(b.Category+": "+b.Message, ": "), then(what, b))
}

// outcome says what follows an attempt that did not complete, and how bad that is.
func (l liner) outcome(b *machine.FinishedBody) (what, level string) {
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
		return "stop-for-a-person", alert
	case b.Status == dag.StatusLost && !b.Final:
		return "start-again", warn
	}
	onFail := dag.FailRun
	if l.node != nil {
		onFail = l.node.OnFailFor(b.Category)
	}
	switch onFail {
	case dag.FailContinue, dag.FailSkip:
		return "go-on", alert
	case dag.FailEscalate:
		return "ask-a-person", alert
	case dag.FailCompensate:
		return "compensate", alert
	}
	return "pause-pipeline", alert
}

func then(what string, b *machine.FinishedBody) string {
	switch {
	case !b.RetryAt.IsZero():
		return "; again at " + b.RetryAt.UTC().Format(stamp)
	case !b.WaitUntil.IsZero():
		return "; waits until " + b.WaitUntil.UTC().Format(stamp)
	}
	return "; " + strings.ReplaceAll(what, "-", " ")
}

// ended writes the line of a node that needs nothing more.
func (l liner) ended(b *machine.FinishedBody) {
	r := l.record().of(l.node)
	if l.node != nil {
		r.add("kind", l.node.Kind)
	} else {
		r.add("node", b.Node)
	}
	r.add("status", b.Status, "generation?", later(b.Generation))
	if b.Attempt > 0 {
		r.add("durationMs", int64(l.seconds()*1000+0.5))
		if b.Attempt > 1 || !silent(l.node) {
			r.add("retries", b.Attempt-1)
		}
	}
	if b.Usage != (machine.Usage{}) || b.CostUSD != 0 {
		usage(r, b)
	}
	if v := validation(b); v != "" {
		r.add("validationPassed", v == "pass")
	}
	r.add("category?", b.Category, "reused?", b.Reused)
	if l.node != nil && b.Attempt > 0 { // for each accumulator that it may add to, whether it did
		did := noted(b, "append-entry", "accumulator")
		for _, name := range l.node.Appends {
			r.add(name, slices.Contains(did, name))
		}
	}
	l.emit(nodeLog, l.values(r, b).add("warnings?", len(b.Warnings)).line())
}

// longestValue bounds the values that logs repeat, in bytes of JSON; the events have all of them.
const longestValue = 120

// values adds the small values of a node, except for those that repeat a label.
func (l liner) values(r *record, b *machine.FinishedBody) *record {
	for _, k := range slices.Sorted(maps.Keys(b.Values)) {
		v := b.Values[k]
		if l.node != nil && l.node.Labels[k] != "" && l.node.Labels[k] == report.ValueText(v) || len(v) > longestValue {
			continue
		}
		if slices.Contains(r.keys, k) {
			k = "out." + k
		}
		r.add(k, v)
	}
	return r
}
