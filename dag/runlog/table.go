package runlog

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

// table says what each type of event writes: one call for each line, with the log, the level and the fields. The type
// of an event is in here or in unlogged.
//
//	orchestrator.log  for people: every start and end, file, warning, pause
//	decisions.jsonl   why something was done or not: "decision", and what it was decided on
//	errors.jsonl      every failed or lost attempt; "recovered" stands in the one line that tells the end of it: false
//	                  in that of a node that has failed for good, true in a further one when a later attempt completes
//	cost.jsonl        one line for each attempt that cost money or tokens
//	quality.jsonl     what kinds say of quality (validations, scores, counts), and gates
//	passes.jsonl      one line for each node that ended, with the fields that its kind recorded for it
//
// The labels of a node are fields of its lines. Every line names its event: "seq" in the .jsonl files, #N in
// orchestrator.log.
var table = map[machine.Type]func(*writer){
	machine.RunCreated: on(func(w *writer, b *machine.RunCreatedBody) {
		w.decide("create-run", "run", b.RunID, "plan", b.PlanDigest, "seed", b.Seed, "nodes", w.nodes)
		w.say(info, "Pipeline %s started. Run ID: %s", b.Name, b.RunID)
		w.say(info, "Plan: %s, %d nodes", b.PlanDigest, w.nodes)
	}),
	machine.InputsCloned: on(func(w *writer, b *machine.InputsClonedBody) {
		w.say(info, "%s copied (%d bytes)", report.Count(b.Files, "input file"), b.Bytes)
	}),
	machine.RunInterrupted: on(func(w *writer, b *machine.RunInterruptedBody) {
		w.decide("take-over", "running", b.Running)
		w.say(warn, "The previous process died with %s running", report.Count(b.Running, "attempt"))
	}),
	machine.RunSuspended: on(func(w *writer, b *machine.RunSuspendedBody) {
		w.say(warn, "Nothing was done for %s: the machine slept, the process was stopped, or the clock was put ahead",
			(time.Duration(b.IdleMS) * time.Millisecond).Round(time.Second))
	}),
	machine.RunResumed: on(func(w *writer, b *machine.RunResumedBody) {
		w.decide("resume", "by", b.By, "lost", b.Lost)
		w.say(info, "Resumed by %s: %s done, %s lost", b.By, w.standing, report.Count(b.Lost, "attempt"))
	}),
	machine.PlanSubmitted: on(func(w *writer, b *machine.PlanSubmittedBody) {
		w.decide("submit-plan", "plan", b.PlanDigest, "by", b.By, "touched", len(b.Touched), "removed", len(b.Removed))
		w.say(info, "New plan %s handed over by %s; it changes %d nodes and removes %d, "+
			"and is adopted when none of them is running", b.PlanDigest, b.By, len(b.Touched), len(b.Removed))
	}),
	machine.PlanAdopted: on(func(w *writer, b *machine.PlanAdoptedBody) {
		again, recheck, added, removed := len(b.Invalidated), len(b.Recheck), len(b.Added), len(b.Removed)
		w.decide("adopt-plan", "plan", b.PlanDigest, "reused", b.Reused, "runAgain", again, "recheck", recheck,
			"added", added, "removed", removed)
		w.say(info, "Plan changed to %s: %d nodes reused, %d run again, %d rechecked, %d added, %d removed",
			b.PlanDigest, b.Reused, again, recheck, added, removed)
	}),
	machine.PlanExtended: on(func(w *writer, b *machine.PlanExtendedBody) {
		w.decide("expand", "nodes", len(b.Nodes))
		w.say(info, "%s expands to %s", b.Node, report.Count(len(b.Nodes), "node"))
	}),
	machine.LimitsChanged: on(func(w *writer, b *machine.LimitsChangedBody) {
		w.decide("change-limits", "by", b.By, "capUsd", b.Budget.CapUSD, "warnUsd", b.Budget.WarnUSD)
		w.say(info, "Budget changed by %s: cap $%s", b.By, b.Budget.CapUSD)
	}),
	machine.PartSelected: on(func(w *writer, b *machine.PartSelectedBody) {
		part := b.Part.String()
		w.decide("select-part", "by", b.By, "part", part, "savedPlan?", b.SavedPlan)
		w.say(info, "To run, as %s says: %s", b.By, cmp.Or(part, "all nodes"))
	}),
	machine.BudgetWarned: on(func(w *writer, b *machine.BudgetWarnedBody) {
		w.decide("warn-budget", "limit", b.Limit, "cost", b.SpentUSD)
		w.say(warn, "Budget warning (%s): $%s spent%s", b.Limit, b.SpentUSD, w.standing)
	}),
	machine.RunPaused:    on((*writer).paused),
	machine.RunCompleted: on((*writer).ended),
	machine.RunFailed:    on((*writer).ended),
	machine.Checkpointed: on(func(w *writer, b *machine.CheckpointBody) {
		w.decide("create-checkpoint", "id", b.ID, "manifest", b.Manifest, "head", b.Head)
		w.say(info, "Checkpoint %s created in %s", b.ID, b.Path)
	}),
	machine.Reverted: on(func(w *writer, b *machine.RevertedBody) {
		w.decide("revert", "checkpoint", b.Checkpoint, "nodes", b.Nodes)
		w.say(warn, "Reverted to checkpoint %s: %s to run again", b.Checkpoint, report.Count(len(b.Nodes), "node"))
	}),
	machine.Rewound: on(func(w *writer, b *machine.RewoundBody) {
		w.decide("rewind", "to", b.To, "reason", b.Reason, "for?", b.For, "nodes", b.Nodes)
		if b.Reason == machine.ReasonChanged {
			w.say(info, "%s: run again, %s", strings.Join(b.Nodes, ", "), b.Reason)
			return
		}
		w.say(warn, "Rewound to %s: %s to run again: %s", b.To, report.Count(len(b.Nodes), "node"), b.Reason)
	}),
	machine.CompStarted: on(func(w *writer, b *machine.CompensationBody) {
		w.decide("compensate", "reason?", b.Reason, "action?", b.Action)
		w.say(warn, "%s: compensation starts (%s): %s", b.Node, b.Action, b.Reason)
	}),
	machine.CompFinished: on(func(w *writer, b *machine.CompensationBody) {
		if b.Then != "" {
			w.decide("undo-over", "then", b.Then, "undone?", b.Undone, "left?", b.Left)
			w.say(warn, "%s: its failure is undone, %s; undone: %v", b.Node, map[dag.Then]string{
				dag.ThenStop: "the run has failed", dag.ThenContinue: "the run goes on without it"}[b.Then], b.Undone)
			return
		}
		w.decide("compensated", "status", b.Status, "reason?", b.Reason)
		w.say(warn, "%s: compensation %s", b.Node, report.Reason(string(b.Status), b.Reason))
	}),
	machine.BreakerChanged: on(func(w *writer, b *machine.BreakerChangedBody) {
		w.decide("breaker", "breaker", b.Breaker, "state", b.State, "reason?", b.Cause, "until?", b.Until)
		level := warn
		if b.State == "closed" {
			level = info
		}
		w.say(level, "Breaker %s", report.BreakerText(b, instant))
	}),
	machine.EscalationOpened: on(func(w *writer, b *machine.EscalationOpenedBody) {
		w.decide("ask", "id", b.ID, "about", b.Kind, "type?", b.Type, "stage?", b.Stage, "message", b.Message,
			"options", b.Options, "refuses?", b.Refuses, "recommended?", b.Recommended, "default?", b.Default,
			"deadline?", b.Deadline)
		w.say(warn, "Question %s: %s [%s]", b.ID, b.Message, report.Options(b))
	}),
	machine.EscalationAnswer: on(func(w *writer, b *machine.EscalationAnsweredBody) {
		w.decide("answer", "id", b.ID, "answer", b.Answer, "by", b.By, "text?", b.Text)
		if b.By == machine.ByDeadline {
			w.say(warn, "Question %s: user response timeout, goes on with the default: %s", b.ID, b.Answer)
			return
		}
		w.say(info, "Question %s answered by %s: %s", b.ID, b.By, report.Reason(b.Answer, b.Text))
	}),
	machine.Notified: on(func(w *writer, b *machine.NotifiedBody) {
		w.decide("notify", "of", b.Of, "to", b.To, "tries", b.Tries, "error?", b.Error, "missed?", b.Missed)
		if b.Missed > 0 {
			w.say(warn, "%s before event %d were not told (notify %d): more than its most were waiting",
				report.Count(b.Missed, "event"), b.Of, b.To)
		}
		if b.Error != "" {
			w.say(warn, "Nobody could be told of event %d (notify %d): %s", b.Of, b.To, b.Error)
		}
	}),
	machine.RunStateChanged: on(func(w *writer, b *machine.RunStateChangedBody) {
		w.decide("change-state", "section?", b.Section, "from", b.Old, "to", b.New)
		w.say(info, "State %s becomes %s", b.Section, b.New)
	}),
	machine.IssueOpened:   on((*writer).issue),
	machine.IssueResolved: on((*writer).issue),
	machine.PROpened: on(func(w *writer, b *machine.PROpenedBody) {
		w.decide("open-pull-request", "url", b.URL)
		w.say(info, "Pull request opened: %s", b.URL)
	}),
	machine.Started:         on((*writer).started),
	machine.Finished:        on((*writer).finished),
	machine.ArtifactWritten: on((*writer).written),
	machine.Published: on(func(w *writer, b *machine.PublishedBody) {
		for _, f := range b.Files {
			switch {
			case b.Settled != "":
				w.decide("settle-published", "path", f.Path, "done", b.Settled)
				w.say(warn, "  %s beside the specification: %s", f.Path, map[string]string{
					machine.SettledBack: "back as it was, for its attempt does not count",
					machine.SettledPut:  "put there, for its attempt counts after all"}[b.Settled])
			case f.Left:
				w.decide("leave-file", "path", f.Path, "sha256", f.Previous)
				w.say(warn, "  %s beside the specification is not the expected file: left as it is", f.Path)
			default:
				w.decide("publish", "path", f.Path, "sha256", f.Digest, "replaces?", f.Previous)
				w.say(info, "  %s published beside the specification (%d bytes)", f.Path, f.Size)
			}
		}
	}),
	machine.LLMCallStarted: on(func(w *writer, b *machine.LLMCallStartedBody) {
		if b.PromptTokens > 0 {
			w.say(info, "  Prompt written (estimate ~%d tokens)", b.PromptTokens)
		}
		w.say(info, "  Invoking %s of %s%s...", b.Model, b.ProviderBaseURL, w.standing)
	}),
	machine.LLMCallFinished: on(func(w *writer, b *machine.LLMCallFinishedBody) {
		w.say(info, "  Output received (%d tokens, %s)", b.TokenUsage.Output, b.FinishReason)
	}),
	machine.LLMCallFailed: on(func(w *writer, b *machine.LLMCallFailedBody) {
		why := b.ErrorSummary
		if why == "" {
			why = b.ErrorClass
		}
		w.say(warn, "%s: call failed after %s: %s", b.Node, report.Duration(float64(b.LatencyMS)/1000), why)
	}),
	machine.GateRunFinished: on(func(w *writer, b *machine.GateRunBody) {
		w.log(qualityLog, w.node, "type", "gate", "gate", b.Gate, "result", b.Status, b.Details)
		level := info
		if b.Status != "pass" {
			level = warn
		}
		w.say(level, "  gate %s: %s", b.Gate, b.Status)
	}),
}

// unlogged are the types of events that write nothing: the log of events has them, and what comes of them is logged.
var unlogged = []machine.Type{
	machine.Queued, machine.TookEffect, machine.GateRunStarted,
}

// on is a row of the table for bodies of type B.
func on[B machine.Body](row func(*writer, B)) func(*writer) {
	return func(w *writer) {
		if b, ok := w.e.Body.(B); ok {
			row(w, b)
		}
	}
}

func (w *writer) paused(b *machine.RunPausedBody) {
	level := alert
	if b.Reason == machine.PauseUser {
		level = info
	}
	if b.Reason == machine.PauseFailure {
		w.decide("end-pipeline", "reason", b.Reason, "message?", b.Message, "cost", w.spent)
		w.say(level, "Pipeline ends: %s", b.Message)
		return
	}
	w.decide("pause-pipeline", "reason", b.Reason, "message?", b.Message, "cost", w.spent)
	w.say(level, "Pipeline paused %s", report.ReasonInBrackets(b.Reason, b.Node, b.Message))
	if b.Reason == machine.PauseDisk {
		w.log(errorLog, "context", "run", "category", b.Reason, "severity", "critical", "message", b.Message,
			"recovered", false, "resolution", "pause-pipeline")
	}
}

func (w *writer) ended(b *machine.RunEndedBody) {
	what, level, text := "complete", info, "complete"
	if b.Failed {
		what, level, text = "fail", alert, "FAILED: "+b.Reason
		w.log(errorLog, "context", "run", "severity", "critical", "message", b.Reason,
			"recovered", false, "resolution", "end")
	}
	w.decide(what, "reason?", b.Reason, "completed", b.Completed, "failed", b.Soft, "skipped", b.Skipped,
		"cost", b.CostUSD)
	w.say(level, "Pipeline %s; %d completed, %d failed, %d skipped, $%s", text, b.Completed, b.Soft, b.Skipped, b.CostUSD)
}

func (w *writer) issue(b *machine.IssueBody) {
	state := "opened"
	if b.Resolved {
		state = "resolved"
	}
	w.decide("issue", "issue", b.IssueID, "state", state, "severity?", b.Severity, "title?", b.Title)
	w.say(info, "Issue %s %s: %s", b.IssueID, state, b.Title)
}

func (w *writer) written(b *machine.ArtifactWrittenBody) {
	switch {
	case b.Entry:
		w.say(info, "  entry appended to %s (%d bytes)", b.Name, b.Size)
	case b.Why == run.WhyRestored:
		w.decide("restore-file", "artifact", b.Name, "sha256", b.Digest)
		w.say(info, "  %s restored to the version of %s (%d bytes)", b.Name, b.Node, b.Size)
	case b.Why != "":
		w.decide("take-file", "artifact", b.Name, "reason", b.Why, "sha256", b.Digest)
		w.say(warn, "  %s accepted as it is (%s, %d bytes)", b.Name, b.Why, b.Size)
	case b.Backup != "":
		w.say(info, "  %s updated (%d bytes), backed up to %s", b.Name, b.Size, b.Backup)
	default:
		w.say(info, "  %s written (%d bytes)", b.Name, b.Size)
	}
}

func (w *writer) started(b *machine.StartedBody) {
	if b.Queued {
		w.decide("hand-over", "attempt", b.Attempt, "generation?", later(b.Generation))
		return
	}
	if b.Attempt <= 1 {
		w.decide("execute", "attempt", b.Attempt, "generation?", later(b.Generation),
			"reservedUsd?", max(0, b.Reserve.USD), "files?", w.node.FilesRead())
		w.say(info, "%s starts%s", b.Node, report.Titled(w.node.Title))
		return
	}
	after := report.Reason(w.pending, w.why)
	if after != "" {
		after = " after " + after
	}
	w.decide("retry", "attempt", b.Attempt, "reason?", w.pending)
	w.say(info, "%s starts again (attempt %d)%s", b.Node, b.Attempt, after)
}

// later is a generation that is worth a field: one after the first.
func later(generation int) int {
	if generation > 1 {
		return generation
	}
	return 0
}

// An entry is an event and what its lines need of the state as of it. It is taken on the goroutine that owns the
// state and turned into lines on another. What a line says depends on its entry alone, so that logs made anew are
// equal byte for byte.
type entry struct {
	e       machine.Event // a copy: the run still sets the number in its own
	node    *dag.Node     // of the event; nil = none
	plan    *dag.Plan     // as of the event
	nodes   int           // of the plan
	began   time.Time     // of the attempt that ended
	tries   int           // failures recorded of the node
	pending string        // category of the last failure of a node that starts or completes
	why     string        // its message
	spent   dag.USD
	// standing is what a line says of the run beside its event: how far it is, what its parts cost, which attempt it is.
	standing string
}

// newEntry takes in an event; false when no log has a line for it. Nodes without labels, cost, notes or values leave
// no lines when they start, and nodes of kind join none at all.
func newEntry(e *machine.Event, st *machine.State) (entry, bool) {
	en := entry{e: *e, plan: st.Graph().Plan, nodes: st.Graph().Len(), spent: st.Spent().USD}
	if table[e.Type] == nil {
		return en, false
	}
	id := machine.NodeOf(e.Body)
	if i, ok := st.Graph().Index(id); ok {
		en.node = st.Graph().Node(i)
	}
	switch b := e.Body.(type) {
	case *machine.RunResumedBody:
		en.standing = report.Progress(st)
	case *machine.BudgetWarnedBody:
		for _, line := range report.ShareLines(st) {
			en.standing += "; " + line
		}
	case *machine.LLMCallStartedBody:
		if v, ok := st.NodeByID(id); ok && v.Attempt > 0 {
			en.standing = fmt.Sprintf(" (attempt %d/%d)", v.Attempt, en.plan.PolicyFor(v.Node, "").Retry.Attempts)
		}
	case *machine.StartedBody:
		if b.Attempt <= 1 && silent(en.node) {
			return en, false
		}
		if b.Attempt > 1 {
			en.remember(st, id)
		}
	case *machine.FinishedBody:
		if en.node != nil && en.node.Role().Joins && b.Status != dag.StatusFailed {
			return en, false
		}
		if v, ok := st.NodeByID(id); ok {
			en.began, en.tries = v.Started, v.Failures
		}
		if b.Status == dag.StatusCompleted && en.tries > 0 {
			en.remember(st, id)
		}
	}
	return en, true
}

// remember finds the last failure of a node among those that the state keeps.
func (en *entry) remember(st *machine.State, node string) {
	list := st.Errors()
	for i := len(list) - 1; i >= 0; i-- {
		if f := &list[i]; f.Node == node {
			en.pending, en.why = f.Category, f.Message
			return
		}
	}
}

// silent reports whether nothing but its end is worth telling of a node.
func silent(n *dag.Node) bool { return n == nil || len(n.Labels) == 0 && !n.Paid }

func instant(t time.Time) string { return t.UTC().Format(stamp) }
