// Package transcript holds what a provider reported on its way to an answer, in one shape for command line agents and
// HTTP services, and what that amounts to.
//
// A provider is a table of events (Format): each says what it does to the transcript. Whatever comes out of it, a
// text, a limit, a failure, is judged in one place (Fill). The package reads no file and starts nothing; how a
// program exited or a connection ended is for its callers.
package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
	"dagrun.dev/nodes/internal/jsonscan"
)

type object = jsonscan.Object

// A Format is how a provider reports.
type Format struct {
	// Table lists what the provider is known to say of its failures.
	Table *evidence.Table
	// Read takes the next object of the output, or the next event of the stream; nil: the whole output is the answer.
	Read func(*Transcript, object)
	// Whole takes the answer of a service that came in one piece, and reports whether it is one. Nil for programs.
	Whole func(*Transcript, object) bool
	// Done completes the transcript of a program that ended; nil: nothing is to do.
	Done func(*Transcript)
	// Last reports whether an object is the last word of the program; nil = it never says.
	Last func(object) bool
	// Stream says that the program reports its work as it goes. One that prints its answer at the end is
	// silent until then, so that no limit of silence applies to it.
	Stream bool
	// Partial says that the answer comes in parts, and none of them says that it is the last.
	Partial bool
	// ErrorsOnStderr says that the object of an error stands on stderr.
	ErrorsOnStderr bool
}

// events are what the events of a provider mean, by their type; unknown ones are skipped.
type events map[string]func(*Transcript, object)

func (e events) read(t *Transcript, o object) {
	if take := e[o.Str("type")]; take != nil {
		take(t, o)
	}
}

// A Transcript is what a provider reported so far.
type Transcript struct {
	format  *Format
	failure evidence.Case // empty but for the provider's table and the runner's clock
	most    int64         // tokens that the answer may have; 0 = not limited

	turns []string // texts since the last ending, oldest first; a tool call begins a new one
	open  bool     // the last turn may go on
	last  piece    // of text
	begun bool     // a turn was announced that has no ending yet
	parts strings.Builder

	endings  []ending
	reported []evidence.Case // errors on the way, which the program may have got over
	remarks  []string        // what it reported that may be a mere warning

	planLimit json.RawMessage // what claude told of the limit of a plan that is used up

	object json.RawMessage // what the model gave last as a shaped answer, whether it fits or not

	// Of a service, whose stream is one call: why the model stopped, whether that came, and whether the stream closed.
	stop            string
	stopped, closed bool
	refusal         string         // what the model said in refusing
	items           []object       // of the Responses API, each as it was done
	broken          *evidence.Case // an error object inside the answer

	models   []string // that answered
	billed   []string // the ones that its sums name: some go by the model that was asked for
	byModel  map[string]float64
	tools    int
	denials  []string
	usage    nodes.Usage // as a program reported at its end
	odd      bool        // a number of that is no count
	used     object      // counts as the chat API reports them, the last of each
	calls    []*call     // as the stream shows them
	cost     *float64
	costLast float64
	warnings []string
}

type piece struct{ id, text string }

// An ending is an event with which a provider says how it ended. There may be several.
type ending struct {
	text    string          // of the answer, as the event holds it
	object  json.RawMessage // a shaped answer beside it
	turns   []string
	err     *nodes.Error // how it failed
	refused bool         // the service refused the call
	status  int          // of HTTP
	cut     string       // the model's reason to stop where that cut the answer
	turned  bool         // the model had ended its turn: a limit that was reached after it cut nothing
}

// A call is one request to a model, as far as the stream reports it.
type call struct {
	id       string
	usage    nodes.Usage
	chars    int64 // of what the model wrote
	streamed bool  // chars were counted as they came
	counted  bool  // the service counted what was written
	closed   bool  // another one has begun under its id
}

// New returns an empty transcript. failure holds the runner's clock, most the limit of the answer in tokens (0 = none).
func New(f *Format, failure evidence.Case, most int64) *Transcript {
	failure.From = f.Table
	return &Transcript{format: f, failure: failure, most: most}
}

// Read takes the next object of the output, or the next event of the stream.
func (t *Transcript) Read(o object) { t.format.Read(t, o) }

// Whole takes a service's answer in one piece, and reports whether it is one.
func (t *Transcript) Whole(o object) bool {
	if !t.format.Whole(t, o) {
		return false
	}
	t.stopped, t.closed = true, true
	for _, c := range t.calls {
		c.counted = true
	}
	return true
}

// Ended reports whether the provider said how it ended, and closed whether it will say no more.
func (t *Transcript) Ended() (ended, closed bool) { return t.stopped || len(t.endings) > 0, t.closed }

// Close takes the mark that some streams end with.
func (t *Transcript) Close() { t.closed = true }

// Reported returns the errors that were reported on the way, the runner's clock and the table in front of them.
func (t *Transcript) Reported() evidence.Case {
	all := t.failure
	var texts []string
	for _, c := range t.reported {
		texts, all.Types = append(texts, c.Text), append(all.Types, c.Types...)
		all.Status = max(all.Status, c.Status)
	}
	all.Text = strings.Join(texts, "\n")
	return all
}

// say adds a piece of text to the open turn. The same piece of the same message again is a repeat, no
// continuation.
func (t *Transcript) say(id, text string) {
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
func (t *Transcript) end(e ending) {
	e.turns = t.turns
	if e.object == nil {
		e.object = t.object
	}
	t.object = nil
	t.endings = append(t.endings, e)
	t.turns, t.open, t.begun = nil, false, false
}

// fail is a case of the provider's failures.
func (t *Transcript) fail(status int, text string, types ...string) *evidence.Case {
	c := t.failure
	c.Status, c.Text, c.Types = status, strings.TrimSpace(text), types
	return &c
}

// fails judges a case as the end.
func (e *ending) fails(c *evidence.Case) {
	e.status = c.Status
	e.err, e.refused = c.Judge()
}

// failsAs is an end of a category that needs no evidence.
func (e *ending) failsAs(category, message string) {
	e.err, _ = evidence.Fail(category, message)
}

func (t *Transcript) warn(format string, args ...any) {
	t.warnings = append(t.warnings, fmt.Sprintf(format, args...))
}

// answered notes a model that answered.
func (t *Transcript) answered(model string) {
	if model != "" && !slices.Contains(t.models, model) {
		t.models = append(t.models, model)
	}
}

// call returns the call of an id, a new one where there is none.
func (t *Transcript) call(id string) *call {
	for _, c := range t.calls {
		if c.id == id && !c.closed {
			return c
		}
	}
	t.calls = append(t.calls, &call{id: id})
	return t.calls[len(t.calls)-1]
}

// take takes a report of the tokens of a call: the counts of a stream are running totals.
func (c *call) take(u nodes.Usage) { c.usage = larger(c.usage, u) }

// wrote counts what the model wrote, for an estimate of its tokens.
func (c *call) wrote(texts ...string) {
	for _, text := range texts {
		c.chars += int64(utf8.RuneCountInString(text))
	}
}

// count takes the tokens that the program reported; the last report counts.
func (t *Transcript) count(sum nodes.Usage, countable bool) {
	if sum != (nodes.Usage{}) || !countable {
		t.usage, t.odd = sum, !countable
	}
}

// disjoint sorts counts of tokens into classes that do not overlap, where those of the cache are part of the input.
func (t *Transcript) disjoint(in, read, write, out int64) nodes.Usage {
	if read+write > in {
		t.warn("more cached tokens (%d) than input tokens (%d) were reported", read+write, in)
	}
	return nodes.Usage{Input: max(0, in-read-write), CacheRead: read, CacheWrite: write, Output: out}
}

// book takes a cost that is the process's total so far. One lower than the one before belongs to a new
// session and counts whole.
func (t *Transcript) book(total float64) {
	if t.cost == nil {
		t.cost = new(float64)
	} else if total < t.costLast {
		t.warn("the cost reported fell from %g to %g; both are booked", t.costLast, total)
		t.costLast = 0
	}
	*t.cost += total - t.costLast
	t.costLast = total
}

// Blank reports whether a text shows nothing.
func Blank(text string) bool { return evidence.Clean(text) == "" }

// texts joins the texts of a message: one text, or a list of blocks of which some are text.
func texts(o object) string {
	if s := o.Str("content"); s != "" {
		return s
	}
	var b strings.Builder
	for _, block := range o.Objects("content") {
		if kind := block.Str("type"); kind == "text" || kind == "output_text" {
			b.WriteString(block.Str("text"))
		}
	}
	return b.String()
}

// larger is the larger count of each kind of tokens.
func larger(a, b nodes.Usage) nodes.Usage {
	return nodes.Usage{
		Input: max(a.Input, b.Input), Output: max(a.Output, b.Output), CacheRead: max(a.CacheRead, b.CacheRead),
		CacheWrite: max(a.CacheWrite, b.CacheWrite), CacheWriteHour: max(a.CacheWriteHour, b.CacheWriteHour),
	}
}
