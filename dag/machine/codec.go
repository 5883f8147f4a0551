package machine

import (
	"errors"
	"fmt"

	"dagrun.dev/dag"
)

// Schema is the version of the events and of the snapshot that this package writes.
const Schema = 1

// AppendPayload appends the canonical JSON (RFC 8785) of a payload to dst. It fails only when
// the payload holds what JSON cannot say exactly: malformed raw values, integers beyond 2^53.
func AppendPayload(dst []byte, b Body) ([]byte, error) {
	dst, err := dag.AppendJSON(dst, b)
	if err != nil {
		err = fmt.Errorf("payload of %s: %w", b.eventType(), err)
	}
	return dst, err
}

// DecodePayload reads the payload of an event of a type. Names are exact; an unknown type or
// field means that a newer version wrote the event, and is refused.
func DecodePayload(t Type, raw []byte) (Body, error) {
	b := emptyBody(t)
	if b == nil {
		return nil, fmt.Errorf("unknown event type %q: a newer version wrote it", t)
	}
	if err := dag.DecodeJSON(raw, b); err != nil {
		if errors.Is(err, dag.ErrUnknownField) {
			err = fmt.Errorf("%w: a newer version wrote it", err)
		}
		return nil, fmt.Errorf("payload of %s: %w", t, err)
	}
	return b, nil
}

// emptyBody returns the payload that belongs to a type, nil for an unknown one.
func emptyBody(t Type) Body {
	switch t {
	case Started:
		return new(StartedBody)
	case Finished:
		return new(FinishedBody)
	case RunCreated:
		return new(RunCreatedBody)
	case InputsCloned:
		return new(InputsClonedBody)
	case PlanAdopted:
		return new(PlanAdoptedBody)
	case PlanExtended:
		return new(PlanExtendedBody)
	case LimitsChanged:
		return new(LimitsChangedBody)
	case Queued:
		return new(QueuedBody)
	case LLMCallStarted:
		return new(LLMCallStartedBody)
	case LLMCallFinished:
		return new(LLMCallFinishedBody)
	case LLMCallFailed:
		return new(LLMCallFailedBody)
	case ArtifactWritten:
		return new(ArtifactWrittenBody)
	case GateRunStarted, GateRunFinished:
		return &GateRunBody{Start: t == GateRunStarted}
	case IssueOpened, IssueResolved:
		return &IssueBody{Resolved: t == IssueResolved}
	case RunStateChanged:
		return new(RunStateChangedBody)
	case PROpened:
		return new(PROpenedBody)
	case BreakerChanged:
		return new(BreakerChangedBody)
	case CompStarted, CompFinished:
		return &CompensationBody{Done: t == CompFinished}
	case Rewound:
		return new(RewoundBody)
	case EscalationOpened:
		return new(EscalationOpenedBody)
	case EscalationAnswer:
		return new(EscalationAnsweredBody)
	case Checkpointed:
		return new(CheckpointBody)
	case Reverted:
		return new(RevertedBody)
	case BudgetWarned:
		return new(BudgetWarnedBody)
	case RunPaused:
		return new(RunPausedBody)
	case RunResumed:
		return new(RunResumedBody)
	case RunInterrupted:
		return new(RunInterruptedBody)
	case RunCompleted, RunFailed:
		return &RunEndedBody{Failed: t == RunFailed}
	}
	return nil
}
