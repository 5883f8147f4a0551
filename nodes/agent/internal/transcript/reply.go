package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
)

// A Reply is what came back from a provider.
type Reply struct {
	// Failure is how the provider failed in its own terms; nil when it answered.
	Failure *nodes.Error
	// Doubt is how a provider failed that does not say itself whether its answer is whole: it
	// stands unless the steps of accept prove that.
	Doubt *nodes.Error
	// Cutting says that what Doubt reports may have cut the answer.
	Cutting bool
	// Turned says that the model had ended its turn before a limit was reached: its text is whole.
	Turned bool
	// Refused says that the service refused the call.
	Refused bool

	Ended bool   // the provider said itself how it ended
	Text  string // the answer
	// Object is a shaped answer that came beside the text; nil where the text is it, or holds it.
	Object json.RawMessage
	// FromFile says that Text is the report file, and what the agent said stands in Said.
	FromFile bool
	Said     string
	Earlier  []string // texts of other turns, newest first, where the answer may stand instead
	// Cut says that the provider stopped at a limit of length: the text is no answer unless
	// everything that accept asks for is whole.
	Cut string
	// Reported is the error that was reported beside an empty answer.
	Reported *nodes.Error

	Finish    string // stop | length | error
	Models    []string
	ByModel   map[string]float64 // dollars
	Usage     nodes.Usage
	CostUSD   *float64
	LeastUSD  float64 // see nodes.Result
	ToolCalls int
	Denials   []string      // tools that were refused
	Status    int           // of HTTP, when known
	Latency   time.Duration // from the question to the end of the answer
	Warnings  []string
	Survivors []string
}

// Warn adds a warning.
func (r *Reply) Warn(format string, args ...any) {
	r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...))
}

// CutUnknown reports whether it is unknown if what stopped the model cut its answer.
func (r *Reply) CutUnknown() bool { return strings.HasPrefix(r.Cut, unknownStop) }

// Price says what a failed call cost where that is certain: one that the service refused, and that had
// produced nothing, was free. One that may have run is not, whatever the program's own sum says.
func (r *Reply) Price() {
	if r.Failure == nil || r.Usage != (nodes.Usage{}) {
		return
	}
	switch {
	case r.CostUSD != nil && *r.CostUSD > 0:
	case r.Refused && r.Text == "":
		r.CostUSD = new(float64)
	case r.Failure.Category == "transient":
		r.CostUSD = nil
	}
}

// Fill completes the reply of a provider that said how it ended (Ended).
func (t *Transcript) Fill(r *Reply) {
	if t.format.Done != nil {
		t.format.Done(t)
	}
	if len(t.endings) == 0 {
		t.end(t.stoppedBy())
	}
	e, number := t.best()
	if n := len(t.endings); n > 1 {
		msg := fmt.Sprintf("%d results in one run; number %d counts, the last one with an answer", n, number)
		if number < n {
			msg += "; behind it: " + t.endings[n-1].reason()
		}
		r.Warn("%s", msg)
	}
	if t.begun {
		r.Warn("a turn began behind the result and did not end")
	}
	r.Object, r.Cut, r.Finish = e.object, e.cut, "stop"
	if e.err != nil {
		r.Failure, r.Refused, r.Turned = e.err, e.refused, e.turned
		r.Finish, r.Text = "error", lastOf(e.turns)
		if r.Status == 0 {
			r.Status = e.status
		}
		t.sums(r)
		return
	}
	t.text(e, r)
	for _, before := range slices.Backward(t.endings[:number-1]) { // of which one may hold what this one does not
		if before.err == nil {
			r.Earlier = append(r.Earlier, newest(append(before.turns, before.text))...)
		}
	}
	for _, said := range t.reported {
		r.Warn("the agent reported: %s", printable.Clip(said.Text, 200))
	}
	for _, said := range t.remarks {
		r.Warn("the agent reported: %s", printable.Clip(said, 200))
	}
	if Blank(r.Text) && len(t.reported) > 0 {
		r.Reported, r.Refused = t.reported[len(t.reported)-1].Judge()
	}
	t.sums(r)
	if r.Cut != "" && !r.CutUnknown() {
		r.Finish = "length"
		t.limit(r)
	}
}

// limit adds the tokens of the one call of a service to the limit that it reached.
func (t *Transcript) limit(r *Reply) {
	if t.format.Whole == nil {
		return
	}
	r.Cut += fmt.Sprintf(": %d tokens", r.Usage.Output)
	if t.most > 0 {
		r.Cut += fmt.Sprintf(" of at most %d", t.most)
	}
}

// FillPartial completes the reply of a provider that did not come to its end. What a service had sent of its text is
// kept.
func (t *Transcript) FillPartial(r *Reply) {
	r.Finish = "error"
	if t.format.Whole != nil {
		r.Text = lastOf(t.turns)
	}
	t.sums(r)
}

// stoppedBy is the ending of a service's stream. Of several statements about it the worst counts.
func (t *Transcript) stoppedBy() (e ending) {
	said := lastOf(t.turns)
	switch {
	case t.broken != nil:
		e.fails(t.broken)
	case t.refusal != "" && stops[strings.ToLower(t.stop)] != stopFiltered:
		e.refuses(t.refusal)
	default:
		e.stops(t.stop, said)
	}
	return e
}

// best returns the ending that counts: the last one with an answer, else the last one.
func (t *Transcript) best() (e ending, number int) {
	for i, e := range slices.Backward(t.endings) {
		late := i == len(t.endings)-1 && !Blank(lastOf(t.turns))
		if e.err == nil && (e.object != nil || !Blank(e.text) || !Blank(lastOf(e.turns)) || late) {
			return e, i + 1
		}
	}
	return t.endings[len(t.endings)-1], len(t.endings)
}

func (e ending) reason() string {
	if e.err != nil {
		return e.err.Message
	}
	return "an empty answer"
}

// text finds the whole answer: the event may hold only its last, or its first, piece.
func (t *Transcript) text(e ending, r *Reply) {
	said, late := lastOf(e.turns), lastOf(t.turns)
	r.Text = e.text
	trimmed, joined := strings.TrimSpace(e.text), strings.TrimSpace(said)
	switch {
	case joined == "" && trimmed == "" && late != "":
		r.Text = late
		r.Warn("the answer came behind an empty result")
	case joined == "" || joined == trimmed:
	case trimmed == "":
		r.Text = said
	case strings.HasPrefix(joined, trimmed) || strings.HasSuffix(joined, trimmed):
		r.Text = said
		r.Warn("the result holds %d of the answer's %d bytes; the parts were joined", len(trimmed), len(joined))
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
		if !Blank(text) {
			list = append(list, text)
		}
	}
	return list
}

// Texts returns the texts of all turns, newest first.
func (t *Transcript) Texts() []string {
	list := newest(t.turns)
	for _, e := range slices.Backward(t.endings) {
		if !Blank(e.text) && e.err == nil {
			list = append(list, e.text)
		}
		list = append(list, newest(e.turns)...)
	}
	return list
}

// sums fills in what was used and paid. A service's stream is its report. Where a program failed or did not come to its
// end, what its stream shows counts if that is more than what it reported: M5, M6.
func (t *Transcript) sums(r *Reply) {
	r.Warnings = append(r.Warnings, t.warnings...)
	r.ToolCalls, r.Denials, r.ByModel, r.CostUSD = t.tools, t.denials, t.byModel, t.cost
	if r.Models = t.models; len(r.Models) == 0 {
		r.Models = t.billed
	}
	sum := t.usage
	streamed, estimated := t.streamed()
	switch {
	case t.odd:
	case t.format.Whole != nil:
		sum = streamed
	case r.Finish == "error" && more(streamed, sum):
		sum = larger(sum, streamed)
		estimated = true
		if r.CostUSD != nil { // it knew of less, or its sum holds what its stream does not show
			r.LeastUSD, r.CostUSD = *r.CostUSD, nil
		}
	default:
		estimated = false
	}
	in := sum.Input + sum.CacheRead + sum.CacheWrite
	switch {
	case t.odd:
		// Nothing of it is believed, and what the attempt cost has to be known otherwise.
		r.Warn("the usage reported is not whole, or holds what is no count of tokens; it counts as unknown")
		return
	case estimated && r.Finish != "error":
		r.Warn("the answer's tokens were not reported; taken as %d", sum.Output)
	case estimated:
		r.Warn("the answer broke off before its tokens were counted; taken as %d in, %d out from what had come",
			in, sum.Output)
	case max(sum.Input, sum.Output, sum.CacheRead, sum.CacheWrite) > mostLikely:
		r.Warn("the usage reported is more than any model reads or writes: %d tokens in, %d out", in, sum.Output)
	}
	r.Usage = sum
}

// mostLikely is the largest count of tokens that is believed without a word.
const mostLikely = 1e10

// streamed sums up what the stream shows of the calls whose head reported what they read, or that were counted to the
// end. What the model wrote is estimated from its length where that is more than what was counted so far.
func (t *Transcript) streamed() (sum nodes.Usage, estimated bool) {
	for _, c := range t.calls {
		u := c.usage
		if !c.counted && u.Input+u.CacheRead+u.CacheWrite == 0 {
			continue
		}
		if n := (c.chars + 3) / 4; !c.counted && n > u.Output {
			u.Output, estimated = n, true
		}
		sum = sum.Plus(u)
	}
	return sum, estimated
}

// more reports whether the stream shows more than was reported in any kind of tokens. What was written may be an
// estimate of the stream: it has to be far more.
func more(a, b nodes.Usage) bool {
	return a.Input > b.Input || a.Output > 2*b.Output || a.CacheRead > b.CacheRead || a.CacheWrite > b.CacheWrite
}

func lastOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}
