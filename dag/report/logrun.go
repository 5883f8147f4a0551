package report

import (
	"strings"
	"time"

	"dagrun.dev/dag/machine"
)

// ofRun writes the lines of events that are about the run rather than about an attempt.
func (l liner) ofRun() {
	switch b := l.e.Body.(type) {
	case *machine.RunCreatedBody:
		l.decided(l.decision("create-run").str("run", b.RunID).str("plan", b.PlanDigest).num("seed", b.Seed).num("nodes", int64(l.nodes)))
		l.say(info, "Pipeline %s started. Run ID: %s", b.Name, b.RunID)
		l.say(info, "Plan: %s, %d nodes", b.PlanDigest, l.nodes)
	case *machine.InputsClonedBody:
		l.say(info, "%d input files copied (%d bytes)", b.Files, b.Bytes)
	case *machine.RunInterruptedBody:
		l.decided(l.decision("take-over").num("running", int64(b.Running)))
		l.say(warn, "The process before ended at work; %d attempts were under way", b.Running)
	case *machine.RunResumedBody:
		l.decided(l.decision("resume").str("by", b.By).num("lost", int64(b.Lost)))
		l.say(info, "Resumed by %s; %d attempts were under way", b.By, b.Lost)
	case *machine.PlanAdoptedBody:
		l.decided(l.decision("adopt-plan").str("plan", b.PlanDigest).num("reused", int64(b.Reused)).
			num("runAgain", int64(len(b.Invalidated))).num("recheck", int64(len(b.Recheck))).num("added", int64(len(b.Added))).num("removed", int64(len(b.Removed))))
		l.say(info, "Plan changed to %s: %d nodes reused, %d run again, %d perhaps, %d added, %d removed", b.PlanDigest, b.Reused, len(b.Invalidated), len(b.Recheck), len(b.Added), len(b.Removed))
	case *machine.PlanExtendedBody:
		l.decided(l.decision("expand").num("nodes", int64(len(b.Nodes))))
		l.say(info, "%s expands to %d nodes", b.Node, len(b.Nodes))
	case *machine.LimitsChangedBody:
		l.decided(l.decision("change-limits").str("by", b.By).usd("capUsd", b.Budget.CapUSD).usd("warnUsd", b.Budget.WarnUSD))
		l.say(info, "Budget changed by %s: cap $%s", b.By, b.Budget.CapUSD)
	case *machine.BudgetWarnedBody:
		l.decided(l.decision("warn-budget").str("limit", b.Limit).usd("cost", b.SpentUSD))
		l.say(warn, "Budget warning (%s): $%s spent", b.Limit, b.SpentUSD)
	case *machine.RunPausedBody:
		l.decided(l.decision("pause-pipeline").str("reason", b.Reason).opt("message", b.Message).usd("cost", l.spent))
		level := alert
		if b.Reason == "user" {
			level = info
		}
		l.say(level, "Pipeline paused %s", bracketed(ReasonText(b.Reason, b.Node, b.Message)))
		if b.Reason == "disk" {
			l.emit(errorLog, l.record().str("context", "run").str("category", b.Reason).str("severity", "critical").str("message", b.Message).
				yes("recovered", false).str("resolution", "pause-pipeline").line())
		}
	case *machine.RunEndedBody:
		l.runEnded(b)
	default:
		l.ofWorld()
	}
}

func (l liner) runEnded(b *machine.RunEndedBody) {
	what, level, word := "complete", info, "complete"
	if b.Failed {
		what, level, word = "fail", alert, "FAILED: "+b.Reason
		l.emit(errorLog, l.record().str("context", "run").str("severity", "critical").str("message", b.Reason).
			yes("recovered", false).str("resolution", "end").line())
	}
	l.decided(l.decision(what).opt("reason", b.Reason).num("completed", int64(b.Completed)).num("failed", int64(b.Soft)).
		num("skipped", int64(b.Skipped)).usd("cost", b.CostUSD))
	l.say(level, "Pipeline %s; %d completed, %d failed, %d skipped, $%s", word, b.Completed, b.Soft, b.Skipped, b.CostUSD)
}

// ofWorld writes the lines of breakers, questions, checkpoints and what else a run knows.
func (l liner) ofWorld() {
	switch b := l.e.Body.(type) {
	case *machine.CheckpointBody:
		l.decided(l.decision("create-checkpoint").str("id", b.ID).str("manifest", b.Manifest).num("head", b.Head))
		l.say(info, "Checkpoint %s created in %s", b.ID, b.Path)
	case *machine.RevertedBody:
		l.decided(l.decision("revert").str("checkpoint", b.Checkpoint).strs("nodes", b.Nodes))
		l.say(warn, "Reverted to checkpoint %s: %d nodes run again", b.Checkpoint, len(b.Nodes))
	case *machine.RewoundBody:
		l.decided(l.decision("rewind").str("to", b.To).str("reason", b.Reason).opt("for", b.For).strs("nodes", b.Nodes))
		if b.Reason == machine.ReasonChanged {
			l.say(info, "%s: run again, %s", strings.Join(b.Nodes, ", "), b.Reason)
			break
		}
		l.say(warn, "Rewound to %s: %d nodes run again: %s", b.To, len(b.Nodes), b.Reason)
	case *machine.CompensationBody:
		if !b.Done {
			l.decided(l.decision("compensate").opt("reason", b.Reason))
			l.say(warn, "%s: compensation starts: %s", b.Node, b.Reason)
			return
		}
		l.decided(l.decision("compensated").str("status", b.Status).opt("reason", b.Reason))
		l.say(warn, "%s", strings.TrimSuffix(b.Node+": compensation "+b.Status+": "+b.Reason, ": "))
	case *machine.BreakerChangedBody:
		l.decided(l.decision("breaker").str("breaker", b.Breaker).str("state", b.State).opt("reason", b.Cause).time("until", b.Until))
		level := warn
		if b.State == "closed" {
			level = info
		}
		l.say(level, "Breaker %s", BreakerText(b, func(t time.Time) string { return t.UTC().Format(stamp) }))
	case *machine.EscalationOpenedBody:
		l.decided(l.decision("ask").str("id", b.ID).str("about", b.Kind).str("message", b.Message).strs("options", b.Options).time("deadline", b.Deadline))
		l.say(warn, "Question %s: %s %v", b.ID, b.Message, b.Options)
	case *machine.EscalationAnsweredBody:
		l.decided(l.decision("answer").str("id", b.ID).str("answer", b.Answer).str("by", b.By))
		l.say(info, "Question %s answered by %s: %s", b.ID, b.By, b.Answer)
	case *machine.RunStateChangedBody:
		l.decided(l.decision("change-state").opt("section", b.Section).str("from", b.Old).str("to", b.New))
		l.say(info, "State %s becomes %s", b.Section, b.New)
	case *machine.IssueBody:
		word := "opened"
		if b.Resolved {
			word = "resolved"
		}
		l.decided(l.decision("issue").str("issue", b.IssueID).str("state", word).opt("severity", b.Severity).opt("title", b.Title))
		l.say(info, "Issue %s %s: %s", b.IssueID, word, b.Title)
	case *machine.PROpenedBody:
		l.decided(l.decision("open-pull-request").str("url", b.URL))
		l.say(info, "Pull request opened: %s", b.URL)
	}
}
