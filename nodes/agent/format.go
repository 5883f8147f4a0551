package agent

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// An outReader reads the JSON that one kind of program prints.
type outReader interface {
	// event takes the next object.
	event(object)
	// done reports whether the program told how it ended.
	done() bool
	// fill completes the reply after that, and says how the program failed by its own terms.
	fill(r *reply, ev evidence.Case) *nodes.Error
	// words returns what was said of errors by a program that did not come to an end.
	words() string
}

// A format is how a program prints its answer. Without a reader the whole output is the answer.
type format struct {
	reader func() outReader
	// ended reports whether an object is the last word of the program; nil = nobody knows.
	ended func(object) bool
	// pieces says that the answer comes in pieces, and none of them says that it is the last.
	pieces bool
}

var (
	claudeFormat = format{reader: func() outReader { return &claudeOut{} }, ended: func(o object) bool { return o.str("type") == "result" }}
	codexFormat  = format{reader: func() outReader { return &codexOut{} }, ended: func(o object) bool {
		return o.str("type") == "turn.completed" || o.str("type") == "turn.failed"
	}}
	geminiFormat = format{reader: func() outReader { return &geminiOut{} }, ended: func(o object) bool {
		return o.str("type") == "result" || !o.has("type") && o.has("response")
	}}
)

func (c *claudeOut) done() bool { return c.results > 0 }
func (c *codexOut) done() bool  { return c.ended != "" }
func (g *geminiOut) done() bool { return g.ended }

func (c *claudeOut) words() string { return c.synth }
func (c *codexOut) words() string  { return strings.Join(c.told, "\n") }
func (g *geminiOut) words() string { return strings.Join(g.told, "\n") }

// mostWatched is the length of a line up to which the watch looks for the last word. Behind a
// longer one a program that stays is ended by its time limit only.
const mostWatched = 64 << 20

// An endWatch finds the last word of a program in its growing output, so that one that stays
// after it is not waited for.
type endWatch struct {
	ended func(object) bool
	line  []byte
	long  bool
	last  bool
}

// piece takes the next piece of output and reports whether the last word has been said.
func (w *endWatch) piece(b []byte) bool {
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			w.add(b)
			break
		}
		w.add(b[:i])
		w.look()
		w.line, w.long = w.line[:0], false
		b = b[i+1:]
	}
	if tail := bytes.TrimRight(w.line, " \t\r"); len(tail) > 0 && tail[len(tail)-1] == '}' {
		w.look() // the last line may have no end
	}
	return w.last
}

func (w *endWatch) add(b []byte) {
	if w.long = w.long || len(w.line)+len(b) > mostWatched; !w.long {
		w.line = append(w.line, b...)
	}
}

// look judges the present line: it is the last word, an event after it (a new turn), or noise.
func (w *endWatch) look() {
	line := bytes.TrimSpace(w.line)
	if w.long || len(line) == 0 || line[0] != '{' && line[0] != '[' {
		return
	}
	var o object
	var list []json.RawMessage
	if json.Unmarshal(line, &o) != nil {
		if json.Unmarshal(line, &list) != nil || len(list) == 0 || json.Unmarshal(list[len(list)-1], &o) != nil {
			return
		}
	}
	switch kind := o.str("type"); {
	case w.ended(o):
		w.last = true
	case kind == "assistant" || kind == "user" || kind == "turn.started":
		w.last = false
	}
}

// pattern returns the first declared pattern that text matches.
func (p *program) pattern(text string) *errorPattern {
	for i, e := range p.patterns {
		re, err := regexp.Compile("(?i)" + e.Match)
		if err == nil && re.MatchString(text) {
			return &p.patterns[i]
		}
	}
	return nil
}

// mostShort is the length up to which a good-looking answer is held against declared patterns.
const mostShort = 1500

func (p *program) matches(text string) bool { return len(text) <= 16000 && p.pattern(text) != nil }

// declared gives an error the category that the settings declare for its words.
func (p *program) declared(e *nodes.Error, now time.Time) *nodes.Error {
	if e == nil {
		return nil
	}
	d := p.pattern(e.Message + "\n" + e.Diagnostics)
	if d == nil {
		return e
	}
	out := *e
	out.Category, out.Permanent = d.Category, false
	wait := time.Duration(d.Wait)
	switch {
	case d.Category == "quota_wait" && out.WaitUntil.IsZero():
		if wait == 0 {
			wait = evidence.Backoff(1)
		}
		out.WaitUntil = now.Add(wait)
	case d.Category == "quota_wait":
	default:
		out.WaitUntil = time.Time{}
		if out.RetryAfter == 0 {
			out.RetryAfter = wait
		}
	}
	return &out
}
