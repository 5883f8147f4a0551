package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// A transcript is what a program reported on its way to an answer, in one shape for all programs. How a
// program prints is a table of events that fill it (format); what it amounts to is judged here.
type transcript struct {
	ev     evidence.Case // empty but for the program's table and the runner's clock
	turns  []string      // texts since the last ending, oldest first; a tool call begins a new one
	open   bool          // the last turn may go on
	last   piece         // of text
	begun  bool          // a turn was announced that has no ending yet
	pieces strings.Builder

	endings []ending
	told    []evidence.Case // errors that it reported on the way, which it may have got over
	remarks []string        // what it reported that may be a mere warning

	object json.RawMessage // what the model gave last as a shaped answer, whether it fits or not

	models    []string // that answered
	modelKeys []string // the ones that its sums name: some go by the model that was asked for
	byModel   map[string]float64
	tools     int
	denials   []string
	usage     nodes.Usage  // as it reported at the end
	uncounted bool         // a number of that is no count
	calls     []*modelCall // as its stream shows them
	cost      *float64
	costLast  float64
	warnings  []string
}

type piece struct{ id, text string }

// An ending is an event with which a program says how it ended. There may be several.
type ending struct {
	text    string          // of the answer, as the event holds it
	object  json.RawMessage // a shaped answer beside it
	turns   []string
	failure *evidence.Case
	// error is a failure that needs no evidence.
	error *nodes.Error
	// stop is the model's reason to stop where that cut the answer.
	stop string
	// turned says that the model had ended its turn: a limit that was reached after it cut nothing.
	turned bool
}

// A modelCall is one request to a model, as far as the stream tells of it.
type modelCall struct {
	id       string
	usage    nodes.Usage
	chars    int64 // of what the model wrote
	streamed bool  // chars were counted as they came
}

// say adds a piece of text to the open turn. The same piece of the same message again is a repeat, no
// continuation.
func (t *transcript) say(id, text string) {
	if text == "" || id != "" && t.last == (piece{id, text}) {
		return
	}
	t.last = piece{id, text}
	if !t.open || len(t.turns) == 0 {
		t.turns = append(t.turns, "")
		t.open = true
	}
	t.turns[len(t.turns)-1] += text
}

// end adds an ending, to which the turns before it belong.
func (t *transcript) end(e ending) {
	e.turns = t.turns
	if e.object == nil {
		e.object = t.object
	}
	t.object = nil
	t.endings = append(t.endings, e)
	t.turns, t.open, t.begun = nil, false, false
}

// fail is a case of the program's failures.
func (t *transcript) fail(status int, text string, types ...string) *evidence.Case {
	c := t.ev
	c.Status, c.Text, c.Types = status, strings.TrimSpace(text), types
	return &c
}

func (t *transcript) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// answered notes a model that answered.
func (t *transcript) answered(model string) {
	if model != "" && !slices.Contains(t.models, model) {
		t.models = append(t.models, model)
	}
}

// call returns the call of an id, a new one where there is none.
func (t *transcript) call(id string) *modelCall {
	for _, c := range t.calls {
		if c.id == id {
			return c
		}
	}
	t.calls = append(t.calls, &modelCall{id: id})
	return t.calls[len(t.calls)-1]
}

// count takes the tokens that the program reported; the last report counts.
func (t *transcript) count(sum nodes.Usage, countable bool) {
	if sum != (nodes.Usage{}) || !countable {
		t.usage, t.uncounted = sum, !countable
	}
}

// book takes a cost that is the process's total so far. One lower than the one before belongs to a new
// session and counts whole.
func (t *transcript) book(total float64) {
	if t.cost == nil {
		t.cost = new(float64)
	} else if total < t.costLast {
		t.warn("the cost reported fell from %g to %g; both are booked", t.costLast, total)
		t.costLast = 0
	}
	*t.cost += total - t.costLast
	t.costLast = total
}

// best returns the ending that counts: the last one with an answer, else the last one.
func (t *transcript) best() (e ending, number int) {
	for i := len(t.endings) - 1; i >= 0; i-- {
		e := t.endings[i]
		late := i == len(t.endings)-1 && !blank(lastOf(t.turns))
		if e.failure == nil && e.error == nil && (e.object != nil || !blank(e.text) || !blank(lastOf(e.turns)) || late) {
			return e, i + 1
		}
	}
	return t.endings[len(t.endings)-1], len(t.endings)
}

func blank(text string) bool { return evidence.Clean(text) == "" }

// fill completes the reply of a program that told how it ended.
func (t *transcript) fill(r *reply) {
	e, number := t.best()
	if n := len(t.endings); n > 1 {
		msg := fmt.Sprintf("%d results in one run; number %d counts, the last one with an answer", n, number)
		if number < n {
			msg += "; behind it: " + t.reason(t.endings[n-1])
		}
		r.Warnings = append(r.Warnings, msg)
	}
	if t.begun {
		r.Warnings = append(r.Warnings, "a turn began behind the result and did not end")
	}
	r.Object = e.object
	if e.failure != nil || e.error != nil {
		r.Finish, r.Text, r.Cut = "error", lastOf(e.turns), e.stop
		r.Failure = e.error
		if e.failure != nil {
			r.Status = e.failure.Status
			r.Failure, r.refused = e.failure.Judge()
		}
		r.turned = e.turned
		t.sums(r)
		return
	}
	t.text(e, r)
	r.Finish = "stop"
	if e.stop != "" {
		r.Finish, r.Cut = "length", e.stop
	}
	for _, said := range t.told {
		r.Warnings = append(r.Warnings, "the agent reported: "+printable.Clip(said.Text, 200))
	}
	for _, said := range t.remarks {
		r.Warnings = append(r.Warnings, "the agent reported: "+printable.Clip(said, 200))
	}
	if blank(r.Text) && len(t.told) > 0 {
		r.Told, r.refused = t.told[len(t.told)-1].Judge()
	}
	t.sums(r)
}

func (t *transcript) reason(e ending) string {
	switch {
	case e.error != nil:
		return e.error.Message
	case e.failure != nil:
		return e.failure.Error().Message
	}
	return "an empty answer"
}

// text finds the whole answer: the event may hold only its last, or its first, piece.
func (t *transcript) text(e ending, r *reply) {
	said, late := lastOf(e.turns), lastOf(t.turns)
	r.Text = e.text
	trimmed, joined := strings.TrimSpace(e.text), strings.TrimSpace(said)
	switch {
	case joined == "" && trimmed == "" && late != "":
		r.Text = late
		r.Warnings = append(r.Warnings, "the answer came behind an empty result")
	case joined == "" || joined == trimmed:
	case trimmed == "":
		r.Text = said
	case strings.HasPrefix(joined, trimmed) || strings.HasSuffix(joined, trimmed):
		r.Text = said
		r.Warnings = append(r.Warnings, fmt.Sprintf("the result holds %d of the answer's %d bytes; the pieces were joined", len(trimmed), len(joined)))
	case strings.Contains(trimmed, joined):
	default:
		r.Earlier = append(r.Earlier, said)
	}
	r.Earlier = append(r.Earlier, newest(e.turns[:max(0, len(e.turns)-1)])...)
	if late != "" {
		r.Earlier = append(r.Earlier, late)
	}
}

// newest returns the texts that are not blank, newest first.
func newest(turns []string) (list []string) {
	for _, text := range slices.Backward(turns) {
		if !blank(text) {
			list = append(list, text)
		}
	}
	return list
}

// all returns the texts of all turns, newest first.
func (t *transcript) all() []string {
	list := newest(t.turns)
	for _, e := range slices.Backward(t.endings) {
		if !blank(e.text) && e.failure == nil && e.error == nil {
			list = append(list, e.text)
		}
		list = append(list, newest(e.turns)...)
	}
	return list
}

// sums fills in what was used and paid. Where the program failed or did not come to its end, what its
// stream shows counts if that is more than what it reported: M5, M6.
func (t *transcript) sums(r *reply) {
	r.Warnings = append(r.Warnings, t.warnings...)
	r.ToolCalls, r.Denials, r.ByModel, r.CostUSD = t.tools, t.denials, t.byModel, t.cost
	if r.Models = t.models; len(r.Models) == 0 {
		r.Models = t.modelKeys
	}
	sum := t.usage
	if streamed := t.streamed(); r.Finish == "error" && !t.uncounted && more(streamed, sum) {
		sum = nodes.Usage{
			Input: max(sum.Input, streamed.Input), Output: max(sum.Output, streamed.Output), CacheRead: max(sum.CacheRead, streamed.CacheRead),
			CacheWrite: max(sum.CacheWrite, streamed.CacheWrite), CacheWriteHour: max(sum.CacheWriteHour, streamed.CacheWriteHour),
		}
		if r.CostUSD != nil { // it knew of less, or its sum holds what its stream does not show
			r.LeastUSD, r.CostUSD = *r.CostUSD, nil
		}
		r.Warnings = append(r.Warnings, fmt.Sprintf("the answer broke off before its tokens were counted; taken as %d in, %d out from what had come", sum.Input+sum.CacheRead+sum.CacheWrite, sum.Output))
	}
	r.usage(sum, !t.uncounted)
}

// more reports whether the stream shows more than was reported in any kind of tokens. What was written may be an estimate
// of the stream: it has to be far more.
func more(a, b nodes.Usage) bool {
	return a.Input > b.Input || a.Output > 2*b.Output || a.CacheRead > b.CacheRead || a.CacheWrite > b.CacheWrite
}

// streamed sums up what the stream shows of the calls whose head told what they read. What the model
// wrote is estimated from its length where it was not counted any more.
func (t *transcript) streamed() (sum nodes.Usage) {
	for _, c := range t.calls {
		if c.usage.Input+c.usage.CacheRead+c.usage.CacheWrite == 0 {
			continue
		}
		sum.Input += c.usage.Input
		sum.CacheRead += c.usage.CacheRead
		sum.CacheWrite += c.usage.CacheWrite
		sum.CacheWriteHour += c.usage.CacheWriteHour
		sum.Output += max(c.usage.Output, (c.chars+3)/4)
	}
	return sum
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// sorted returns the names of an object, in one order.
func sorted(o object) []string { return slices.Sorted(maps.Keys(o)) }
