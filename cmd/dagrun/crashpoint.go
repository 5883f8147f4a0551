package main

import (
	"strconv"
	"strings"

	"dagrun.dev/dag/machine"
)

// crashPoint reads DAGRUN_CRASH_AT: the number of an event, or a type and a node. It is nil when the
// process is not to crash.
func crashPoint(at string) func(*machine.Event) bool {
	if seq, err := strconv.ParseInt(at, 10, 64); err == nil && seq > 0 {
		return func(e *machine.Event) bool { return e.Seq == seq }
	}
	typ, node, ok := strings.Cut(at, " ")
	if !ok {
		return nil
	}
	return func(e *machine.Event) bool { return string(e.Type) == typ && nodeOf(e.Body) == node }
}

// nodeOf returns the node whose work an event tells of.
func nodeOf(b machine.Body) string {
	switch b := b.(type) {
	case *machine.StartedBody:
		return b.Node
	case *machine.FinishedBody:
		return b.Node
	case *machine.ArtifactWrittenBody:
		return b.Node
	case *machine.LLMCallStartedBody:
		return b.Node
	case *machine.LLMCallFinishedBody:
		return b.Node
	case *machine.GateRunBody:
		return b.Node
	}
	return ""
}
