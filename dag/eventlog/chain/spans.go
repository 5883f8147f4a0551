package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"dagrun.dev/dag/machine"
)

// Trace and span ids are hashes of what they name, so that events need no random numbers, a replay
// gives the same ids, and whoever knows run and node can find the span:
//
//	trace   = first 16 bytes of sha256("trace" 0 run)
//	span    = first 8 bytes of sha256("span" 0 run {0 part}), parts:
//	  run       (none)                          no parent
//	  attempt   "attempt" node generation n     parent: run
//	  call      "call" call_id                  parent: the attempt that call_id names
//	  gate      "gate" node gate                parent: run
//	  undo      "undo" node                     parent: run
//
// An event carries the span of what it is about; everything else carries the run's.

// TraceID returns the trace of a run in lower-case hex.
func TraceID(runID string) string { return digest(32, "trace", runID) }

// RunSpan returns the span of a run.
func RunSpan(runID string) string { return digest(16, "span", runID) }

// AttemptSpan returns the span of one attempt of a node.
func AttemptSpan(runID, node string, generation, attempt int) string {
	return digest(16, "span", runID, "attempt", node, strconv.Itoa(generation), strconv.Itoa(attempt))
}

// CallSpan returns the span of a model call.
func CallSpan(runID, callID string) string { return digest(16, "span", runID, "call", callID) }

// GateSpan returns the span of a gate.
func GateSpan(runID, node, gate string) string { return digest(16, "span", runID, "gate", node, gate) }

func digest(n int, parts ...string) string {
	var b [192]byte
	in := b[:0]
	for i, p := range parts {
		if i > 0 {
			in = append(in, 0)
		}
		in = append(in, p...)
	}
	sum := sha256.Sum256(in)
	return hex.EncodeToString(sum[:n/2])
}

// spans derives the ids of one run's events.
type spans struct{ run, trace, root string }

func newSpans(runID string) spans { return spans{runID, TraceID(runID), RunSpan(runID)} }

// of returns the span of an event and its parent; parent is empty for the run's own span.
func (s *spans) of(b machine.Body) (span, parent string) {
	switch b := b.(type) {
	case *machine.StartedBody:
		return AttemptSpan(s.run, b.Node, b.Generation, b.Attempt), s.root
	case *machine.FinishedBody:
		return AttemptSpan(s.run, b.Node, b.Generation, b.Attempt), s.root
	case *machine.ArtifactWrittenBody:
		if b.Attempt > 0 {
			return AttemptSpan(s.run, b.Node, b.Generation, b.Attempt), s.root
		}
	case *machine.LLMCallStartedBody:
		return s.call(b.CallID)
	case *machine.LLMCallFinishedBody:
		return s.call(b.CallID)
	case *machine.LLMCallFailedBody:
		return s.call(b.CallID)
	case *machine.GateRunBody:
		return GateSpan(s.run, b.Node, b.Gate), s.root
	case *machine.CompensationBody:
		return digest(16, "span", s.run, "undo", b.Node), s.root
	}
	return s.root, ""
}

// call returns the spans of a call whose id is node.generation.attempt.
func (s *spans) call(id string) (span, parent string) {
	span = CallSpan(s.run, id)
	rest, attempt, ok1 := cutLast(id)
	node, generation, ok2 := cutLast(rest)
	if !ok1 || !ok2 {
		return span, s.root
	}
	return span, digest(16, "span", s.run, "attempt", node, generation, attempt)
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
