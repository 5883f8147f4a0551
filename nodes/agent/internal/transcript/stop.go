package transcript

import (
	"cmp"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// A stopKind is what it means that a model stopped.
type stopKind int

const (
	stopUnknown    stopKind = iota // whether the text is whole is unknown
	stopWhole                      // it had said all
	stopLimit                      // a limit of length cut the text
	stopUnfinished                 // in the middle of a turn: it wanted a tool, or more time
	stopFiltered                   // a filter cut it
	stopRefused
	stopFailed
	stopCancelled
)

// stops are the reasons to stop in the words of all APIs: gateways and programs hand on each other's.
var stops = map[string]stopKind{
	"end_turn": stopWhole, "stop_sequence": stopWhole, "stop": stopWhole, "eos": stopWhole, "completed": stopWhole,
	"max_tokens": stopLimit, "model_context_window_exceeded": stopLimit, "length": stopLimit,
	"max_output_tokens": stopLimit, "incomplete": stopLimit,
	"tool_use": stopUnfinished, "pause_turn": stopUnfinished, "tool_calls": stopUnfinished,
	"function_call":  stopUnfinished,
	"content_filter": stopFiltered, "safety": stopFiltered, "recitation": stopFiltered, "spii": stopFiltered,
	"prohibited_content": stopFiltered, "blocklist": stopFiltered,
	"refusal": stopRefused,
	"error":   stopFailed, "failed": stopFailed,
	"cancelled": stopCancelled,
}

// stops judges why the model stopped; said is its text.
func (e *ending) stops(reason, said string) {
	switch stops[strings.ToLower(reason)] {
	case stopWhole:
	case stopLimit:
		e.cut = reason
	case stopUnfinished:
		e.err = nodes.Fail("protocol", "the model stopped in the middle of a turn: stop reason "+reason)
	case stopFiltered:
		e.err = nodes.Permanent(nodes.Fail("refused", "a content filter stopped the answer"))
	case stopRefused:
		e.refuses(said)
	case stopFailed:
		e.err = nodes.Failf("transient", "the provider broke off after %d bytes of text: stop reason %s", len(said), reason)
	case stopCancelled:
		e.err = nodes.Fail("transient", "the provider cancelled the answer")
	default:
		e.cut = unknownStop + cmp.Or(reason, "null")
	}
}

// unknownStop begins a reason to stop that may or may not have cut the answer.
const unknownStop = "unknown stop reason "

// refuses is the end of a call in which the model, or a filter on it, said no.
func (e *ending) refuses(said string) {
	said = cmp.Or(printable.Clip(strings.TrimSpace(said), 200), "without a word")
	e.err = nodes.Permanent(nodes.Fail("refused", "the model refused: "+said))
}
