package machine

import (
	"maps"
	"slices"
)

// An Ask is the kind of an escalation. The machine acts on the answers to these; answers to other kinds are for
// whoever asked.
type Ask string

const (
	AskApproval     Ask = "approval"     // the answer completes the node: values answer, by
	AskFailed       Ask = "failed"       // retry, extend, continue, skip, fail
	AskLost         Ask = "lost"         // rerun, done, fail
	AskCompensation Ask = "compensation" // retry, rerun, done, continue
	AskBreaker      Ask = "breaker"      // wait, extend, skip, continue
)

// Answers that the machine understands. An approval has the options that its plan gives it, which is why an answer
// is no type of its own.
const (
	AnswerRetry    = "retry"
	AnswerExtend   = "extend" // again, and time limits are half as long again
	AnswerContinue = "continue"
	AnswerSkip     = "skip"
	AnswerFail     = "fail"
	AnswerRerun    = "rerun"
	AnswerDone     = "done"
	AnswerWait     = "wait"
	AnswerAbort    = "abort" // where it is an option, and of no approval: ends the run
)

// meanings are what these answers lead to, for people.
var meanings = map[Ask]map[string]string{
	AskFailed: {
		AnswerRetry: "try again", AnswerExtend: "try again, with time limits half as long again",
		AnswerContinue: "go on without it", AnswerSkip: "leave out all that depends on it",
		AnswerFail: "the run pauses, or ends where whenFailed says so", AnswerAbort: "end the run",
	},
	AskBreaker: {
		AnswerWait:     "wait until it lets a node try again",
		AnswerExtend:   "let a node try now; time limits of its nodes are half as long again",
		AnswerContinue: "go on without the nodes that wait for it", AnswerSkip: "skip the nodes that wait for it",
		AnswerAbort: "end the run",
	},
	AskLost: {
		AnswerRerun: "it did not: run it again", AnswerDone: "it did: count it as completed",
		AnswerFail: "count it as failed", AnswerAbort: "end the run",
	},
	AskCompensation: {
		AnswerRetry: "try the undo action again", AnswerRerun: "it did not: run the undo action again",
		AnswerDone: "it did: what it was to undo is undone", AnswerContinue: "go on without this undo",
		AnswerAbort: "end the run; nothing more is undone",
	},
}

// Answers returns the answers that the machine understands to a kind of question, sorted.
func Answers(kind Ask) []string { return slices.Sorted(maps.Keys(meanings[kind])) }

// A Pause is the reason of a pause.
type Pause string

const (
	PauseNodeFailed Pause = "node-failed"
	PauseRepeated   Pause = "repeated-failure" // a node failed again each time the run was resumed
	PauseBudget     Pause = "budget"           // money, tokens, or the time of activity
	PauseUser       Pause = "user"             // a user asked for it
	PausePerson     Pause = "person"           // only a user can help a node
	PauseEscalation Pause = "escalation"       // all that is left waits for an answer
	PauseBreaker    Pause = "breaker"          // open, without a time to try again
	PauseQuota      Pause = "quota"            // waits for an instant that a service has named
	PauseDisk       Pause = "disk"
	PausePart       Pause = "selection" // all that can be done of the selected part is done
	PauseStuck      Pause = "stuck"     // a mistake in this package: nothing can run, and nothing says why
	// These two end the run: what runs is stopped, what is to be undone is undone, clean-up, then RUN_FAILED.
	PauseCancel  Pause = "cancel"  // a user asked for it
	PauseFailure Pause = "failure" // a node failed whose failure ends the run
)
