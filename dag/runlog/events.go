package runlog

import (
	"fmt"
	"strings"
	"time"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
)

// event writes the lines of an event that is not about an attempt: a decision with its fields, and a line for people.
func (l liner) event() {
	f := fmt.Sprintf
	switch b := l.e.Body.(type) {
	case *machine.RunCreatedBody:
		l.tell(info, f("Pipeline %s started. Run ID: %s", b.Name, b.RunID), "create-run", "run", b.RunID, "plan", b.PlanDigest, "seed", b.Seed, "nodes", l.nodes)
		l.say(info, "Plan: %s, %d nodes", b.PlanDigest, l.nodes)
	case *machine.InputsClonedBody:
		l.say(info, "%d input files copied (%d bytes)", b.Files, b.Bytes)
	case *machine.RunInterruptedBody:
		l.tell(warn, f("The previous process died with %s running", report.Count(b.Running, "attempt")), "take-over", "running", b.Running)
	case *machine.RunResumedBody:
		l.tell(info, f("Resumed by %s; %s lost", b.By, report.Count(b.Lost, "attempt")), "resume", "by", b.By, "lost", b.Lost)
	case *machine.PlanAdoptedBody:
		again, recheck, added, removed := len(b.Invalidated), len(b.Recheck), len(b.Added), len(b.Removed)
		l.tell(info, f("Plan changed to %s: %d nodes reused, %d run again, %d perhaps, %d added, %d removed", b.PlanDigest, b.Reused, again, recheck, added, removed),
			"adopt-plan", "plan", b.PlanDigest, "reused", b.Reused, "runAgain", again, "recheck", recheck, "added", added, "removed", removed)
	case *machine.PlanExtendedBody:
		l.tell(info, f("%s expands to %d nodes", b.Node, len(b.Nodes)), "expand", "nodes", len(b.Nodes))
	case *machine.LimitsChangedBody:
		l.tell(info, f("Budget changed by %s: cap $%s", b.By, b.Budget.CapUSD), "change-limits", "by", b.By, "capUsd", b.Budget.CapUSD, "warnUsd", b.Budget.WarnUSD)
	case *machine.BudgetWarnedBody:
		l.tell(warn, f("Budget warning (%s): $%s spent", b.Limit, b.SpentUSD), "warn-budget", "limit", b.Limit, "cost", b.SpentUSD)
	case *machine.RunPausedBody:
		level := alert
		if b.Reason == machine.PauseUser {
			level = info
		}
		l.tell(level, "Pipeline paused "+report.ReasonInBrackets(b.Reason, b.Node, b.Message), "pause-pipeline", "reason", b.Reason, "message?", b.Message, "cost", l.spent)
		if b.Reason == machine.PauseDisk {
			l.critical("pause-pipeline", b.Message, "category", b.Reason)
		}
	case *machine.RunEndedBody:
		what, level, word := "complete", info, "complete"
		if b.Failed {
			what, level, word = "fail", alert, "FAILED: "+b.Reason
			l.critical("end", b.Reason)
		}
		l.tell(level, f("Pipeline %s; %d completed, %d failed, %d skipped, $%s", word, b.Completed, b.Soft, b.Skipped, b.CostUSD),
			what, "reason?", b.Reason, "completed", b.Completed, "failed", b.Soft, "skipped", b.Skipped, "cost", b.CostUSD)
	case *machine.CheckpointBody:
		l.tell(info, f("Checkpoint %s created in %s", b.ID, b.Path), "create-checkpoint", "id", b.ID, "manifest", b.Manifest, "head", b.Head)
	case *machine.RevertedBody:
		l.tell(warn, f("Reverted to checkpoint %s: %d nodes run again", b.Checkpoint, len(b.Nodes)), "revert", "checkpoint", b.Checkpoint, "nodes", b.Nodes)
	case *machine.RewoundBody:
		level, text := warn, f("Rewound to %s: %d nodes run again: %s", b.To, len(b.Nodes), b.Reason)
		if b.Reason == machine.ReasonChanged {
			level, text = info, f("%s: run again, %s", strings.Join(b.Nodes, ", "), b.Reason)
		}
		l.tell(level, text, "rewind", "to", b.To, "reason", b.Reason, "for?", b.For, "nodes", b.Nodes)
	case *machine.CompensationBody:
		if !b.Done {
			l.tell(warn, f("%s: compensation starts: %s", b.Node, b.Reason), "compensate", "reason?", b.Reason)
			return
		}
		l.tell(warn, strings.TrimSuffix(f("%s: compensation %s: %s", b.Node, b.Status, b.Reason), ": "), "compensated", "status", b.Status, "reason?", b.Reason)
	case *machine.BreakerChangedBody:
		level := warn
		if b.State == "closed" {
			level = info
		}
		l.tell(level, "Breaker "+report.BreakerText(b, func(t time.Time) string { return t.UTC().Format(stamp) }),
			"breaker", "breaker", b.Breaker, "state", b.State, "reason?", b.Cause, "until?", b.Until)
	case *machine.EscalationOpenedBody:
		l.tell(warn, f("Question %s: %s %v", b.ID, b.Message, b.Options),
			"ask", "id", b.ID, "about", b.Kind, "message", b.Message, "options", b.Options, "deadline?", b.Deadline)
	case *machine.EscalationAnsweredBody:
		l.tell(info, f("Question %s answered by %s: %s", b.ID, b.By, b.Answer), "answer", "id", b.ID, "answer", b.Answer, "by", b.By)
	case *machine.RunStateChangedBody:
		l.tell(info, f("State %s becomes %s", b.Section, b.New), "change-state", "section?", b.Section, "from", b.Old, "to", b.New)
	case *machine.IssueBody:
		word := "opened"
		if b.Resolved {
			word = "resolved"
		}
		l.tell(info, f("Issue %s %s: %s", b.IssueID, word, b.Title), "issue", "issue", b.IssueID, "state", word, "severity?", b.Severity, "title?", b.Title)
	case *machine.PROpenedBody:
		l.tell(info, "Pull request opened: "+b.URL, "open-pull-request", "url", b.URL)
	}
}

// critical adds a line to errors.jsonl about the run.
func (l liner) critical(resolution, message string, more ...any) {
	r := l.record().add("context", "run").add(more...)
	l.emit(errorLog, r.add("severity", "critical", "message", message, "recovered", false, "resolution", resolution).line())
}
