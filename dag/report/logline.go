package report

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
		l.say(warn, "%s: call failed after %s: %s", b.Node, Duration(float64(b.LatencyMS)/1000), cmp.Or(b.ErrorSummary, b.ErrorClass))
	case *machine.GateRunBody:
		l.gate(b)
	default:
		l.ofRun()
	}
}

// say adds a line to the log for people.
func (l liner) say(level, format string, args ...any) {
	b := append(make([]byte, 0, 160), '[')
	b = append(l.e.Time.AppendFormat(b, stamp), "] "...)
	b = append(append(b, level...), " #"...)
	b = append(strconv.AppendInt(b, l.e.Seq, 10), ' ')
	b = append(b, Plain(fmt.Sprintf(format, args...))...)
	l.emit(humanLog, append(b, '\n'))
}

func (l liner) record() *record { return newRecord(l.e.Seq, l.e.Time) }

// decision begins a line of decisions.jsonl.
func (l liner) decision(what string) *record { return l.record().str("decision", what).of(l.node) }

func (l liner) decided(r *record) { l.emit(decisionLog, r.line()) }

func (l liner) started(b *machine.StartedBody) {
	if b.Attempt > 1 {
		r := l.decision("retry").num("attempt", int64(b.Attempt)).opt("reason", l.pending)
		l.decided(r)
		l.say(info, "%s starts again (attempt %d)%s", b.Node, b.Attempt, because(l.pending, l.why))
		return
	}
	r := l.decision("execute").num("attempt", int64(b.Attempt))
	if b.Generation > 1 {
		r.num("generation", int64(b.Generation))
	}
	if b.Reserve.USD > 0 {
		r.usd("reservedUsd", b.Reserve.USD)
	}
	if l.node != nil && len(l.node.Files) > 0 {
		r.strs("files", l.node.Files)
	}
	l.decided(r)
	l.say(info, "%s starts%s", b.Node, titled(l.node.Title))
}

func because(category, message string) string {
	switch {
	case category == "" && message == "":
		return ""
	case message == "":
		return " after " + category
	}
	return " after " + strings.TrimPrefix(category+": "+message, ": ")
}

func (l liner) written(b *machine.ArtifactWrittenBody) {
	switch {
	case b.Entry:
		l.say(info, "  entry appended to %s (%d bytes)", b.Name, b.Size)
	case b.Why == run.WhyRestored:
		l.decided(l.decision("restore-file").str("artifact", b.Name).str("sha256", b.Digest))
		l.say(info, "  %s is again what %s made of it (%d bytes)", b.Name, b.Node, b.Size)
	case b.Why != "":
		l.decided(l.decision("take-file").str("artifact", b.Name).str("reason", b.Why).str("sha256", b.Digest))
		l.say(warn, "  %s was taken as it is (%s, %d bytes)", b.Name, b.Why, b.Size)
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
	r := l.record().of(l.node).str("type", "gate").str("gate", b.Gate).str("result", b.Status)
	l.emit(qualityLog, r.fields(b.Details).line())
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
	case machine.StatusCompleted:
		l.completed(b)
	case machine.StatusSkipped:
		why := strings.TrimPrefix(b.Category+": "+b.Message, ": ")
		if b.Reused {
			why = "as before"
		}
		l.decided(l.decision("skip").opt("reason", why))
		l.say(info, "%s skipped: %s", b.Node, why)
	default:
		l.notCompleted(b)
	}
	for _, w := range b.Warnings {
		l.say(warn, "  %s: %s", b.Node, w)
	}
	if b.Status == machine.StatusCompleted || b.Status == machine.StatusSkipped || b.Final {
		l.ended(b)
	}
}

func (l liner) note(n *machine.Note, b *machine.FinishedBody) {
	if n.Log != "quality" {
		l.decided(l.decision(n.Type).fields(n.Fields))
		return
	}
	r := l.record().of(l.node).str("type", n.Type).fields(n.Fields)
	if n.Type == "validation" && len(b.Warnings) > 0 {
		r.strs("warningDetails", b.Warnings)
	}
	l.emit(qualityLog, r.line())
}

func (l liner) cost(b *machine.FinishedBody) {
	r := l.record().of(l.node).num("attempt", int64(b.Attempt)).opt("model", model(l.node, b))
	l.usage(r, b).opt("costKind", b.CostKind).usd("cumulativeCostUsd", l.spent)
	l.emit(costLog, r.line())
}

func (l liner) usage(r *record, b *machine.FinishedBody) *record {
	return r.num("inputTokens", b.Usage.Input).num("outputTokens", b.Usage.Output).
		num("cacheRead", b.Usage.CacheRead).num("cacheWrite", b.Usage.CacheWrite).usd("costUsd", b.CostUSD)
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
		r := l.record().str("context", b.Node).of(l.node).opt("category", l.pending).opt("message", l.why).str("severity", "info").
			yes("recovered", true).num("recoveredAtAttempt", int64(b.Attempt)).num("failures", int64(l.tries)).str("resolution", "a later attempt completed")
		l.emit(errorLog, r.line())
	}
	switch {
	case b.Reused:
		l.decided(l.decision("reuse").str("reason", "all that it reads is as it was"))
		l.say(info, "%s is as it was: not run again", b.Node)
		return
	case shapes[kind] != "" && kind != "join":
		l.decided(l.values(l.decision(kind), b))
	case !silent(l.node):
		l.decided(l.decision("accept-output").num("attempt", int64(b.Attempt)).opt("validationResult", validation(b)))
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
		s += " in " + Duration(l.seconds())
	}
	if b.Usage != (machine.Usage{}) {
		s += fmt.Sprintf(" | %d in / %d out", b.Usage.Input+b.Usage.CacheRead+b.Usage.CacheWrite, b.Usage.Output)
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

// validation is what the checks of an answer said; empty when there were none.
func validation(b *machine.FinishedBody) string {
	for i := range b.Notes {
		if b.Notes[i].Type != "validation" {
			continue
		}
		var f struct {
			Result string `json:"result"`
		}
		if json.Unmarshal(b.Notes[i].Fields, &f) == nil {
			return f.Result
		}
	}
	return ""
}

// notCompleted writes the lines of an attempt that failed, was lost, refused or stopped.
func (l liner) notCompleted(b *machine.FinishedBody) {
	what, level := l.outcome(b)
	r := l.decision(what).num("attempt", int64(b.Attempt)).opt("reason", cmp.Or(b.Category, b.Status))
	l.decided(r.time("retryAt", b.RetryAt).time("waitUntil", b.WaitUntil))
	if b.Status == machine.StatusFailed || b.Status == machine.StatusLost {
		severity := "error"
		switch {
		case b.Class == "fatal":
			severity = "critical"
		case level == warn:
			severity = "warning"
		}
		r := l.record().str("context", b.Node).of(l.node).num("attempt", int64(b.Attempt)).str("status", b.Status).
			opt("category", b.Category).opt("class", b.Class).str("severity", severity).str("message", b.Message).
			yes("recovered", false).str("resolution", what).opt("diagnostics", cut(b.Diagnostics, diagnosticsKept))
		if b.Generation > 1 {
			r.num("generation", int64(b.Generation))
		}
		l.emit(errorLog, r.line())
	}
	l.say(level, "%s %s%s: %s%s", b.Node, strings.ToUpper(b.Status), attempted(b.Attempt), strings.TrimPrefix(b.Category+": "+b.Message, ": "), then(what, b))
}

// diagnosticsKept bounds what an error says in full, in characters.
const diagnosticsKept = 2000

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:min(n, len(r))])
}

func attempted(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

// outcome says what follows an attempt that did not complete, and how bad that is.
func (l liner) outcome(b *machine.FinishedBody) (what, level string) {
	switch {
	case b.Status == machine.StatusCancelled:
		return "cancel", warn
	case b.Status == machine.StatusRejected:
		return "reject-start", warn
	case !b.RetryAt.IsZero():
		return "retry-later", warn
	case !b.WaitUntil.IsZero():
		return "wait", warn
	case b.Stop:
		return "stop-for-a-person", alert
	case b.Status == machine.StatusLost && !b.Final:
		return "start-again", warn
	}
	switch onFail := l.onFail(b.Category); onFail {
	case "continue", "skip":
		return "go-on", alert
	case "escalate":
		return "ask-a-person", alert
	case "compensate":
		return "compensate", alert
	}
	return "pause-pipeline", alert
}

func (l liner) onFail(category string) string {
	if l.node == nil {
		return ""
	}
	return l.node.OnFailFor(category)
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
		r.str("kind", l.node.Kind)
	} else {
		r.str("node", b.Node)
	}
	r.str("status", b.Status)
	if b.Generation > 1 {
		r.num("generation", int64(b.Generation))
	}
	if b.Attempt > 0 {
		r.num("durationMs", int64(l.seconds()*1000+0.5))
		if b.Attempt > 1 || !silent(l.node) {
			r.num("retries", int64(b.Attempt-1))
		}
	}
	if b.Usage != (machine.Usage{}) || b.CostUSD != 0 {
		l.usage(r, b)
	}
	if v := validation(b); v != "" {
		r.yes("validationPassed", v == "pass")
	}
	r.opt("category", b.Category)
	if b.Reused {
		r.yes("reused", true)
	}
	l.appended(r, b)
	l.values(r, b)
	if len(b.Warnings) > 0 {
		r.num("warnings", int64(len(b.Warnings)))
	}
	l.emit(nodeLog, r.line())
}

// appended says for each accumulator that a node may add to whether it did.
func (l liner) appended(r *record, b *machine.FinishedBody) {
	if l.node == nil || len(l.node.Appends) == 0 || b.Attempt == 0 {
		return
	}
	did := map[string]bool{}
	for i := range b.Notes {
		var f struct {
			Accumulator string `json:"accumulator"`
		}
		if b.Notes[i].Type == "append-entry" && json.Unmarshal(b.Notes[i].Fields, &f) == nil {
			did[f.Accumulator] = true
		}
	}
	for _, name := range l.node.Appends {
		r.yes(name, did[name])
	}
}

// longestValue bounds the values that logs repeat, in bytes of JSON; the events have all of them.
const longestValue = 120

// values adds the small values of a node, except for those that repeat a label.
func (l liner) values(r *record, b *machine.FinishedBody) *record {
	if len(b.Values) == 0 {
		return r
	}
	for _, k := range slices.Sorted(maps.Keys(b.Values)) {
		v := b.Values[k]
		if l.node != nil && l.node.Labels[k] != "" && l.node.Labels[k] == valueText(v) || len(v) > longestValue {
			continue
		}
		if slices.Contains(r.keys, k) {
			k = "out." + k
		}
		r.raw(k, v)
	}
	return r
}
