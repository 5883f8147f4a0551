package agent

import (
	"bytes"
	"encoding/json"
	"regexp"
	"time"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/evidence"
)

// A format is how a program prints its answer.
type format struct {
	// table lists what the program is known to say of its failures.
	table *evidence.Table
	// read takes the next object of the output; nil: the whole output is the answer.
	read func(*transcript, object)
	// done completes the transcript of a program that ended; nil: nothing is to do.
	done func(*transcript)
	// last reports whether an object is the last word of the program; nil = it never says.
	last func(object) bool
	// stream says that the program tells of its work as it goes. One that prints its answer at the end is
	// silent until then, so that no limit of silence applies to it. X6
	stream bool
	// pieces says that the answer comes in pieces, and none of them says that it is the last.
	pieces bool
	// errorsOnStderr says that the object of an error stands on stderr.
	errorsOnStderr bool
}

// events are what the events of a program mean, by their type; unknown ones are skipped.
type events map[string]func(*transcript, object)

func (e events) read(t *transcript, o object) {
	if take := e[o.str("type")]; take != nil {
		take(t, o)
	}
}

// silence notes that a limit of silence does not count for a program that prints its answer at its end. X6
func (d *describer) silence(s *settings) {
	f := format{stream: true}
	switch s.Provider {
	case "command":
		f = s.command().format()
	case "gemini":
		f = geminiFormat
	}
	if !f.stream {
		d.tr.Notes = append(d.tr.Notes, "timeout.silence does not count: the program prints its answer at its end")
	}
}

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

// declared returns a failure of which text was said as the settings declare it, nil where they do not.
// refused: they call it a refusal of the service.
func (p *program) declared(text string, ev evidence.Case) (e *nodes.Error, refused bool) {
	d := p.pattern(text)
	if d == nil {
		return nil, false
	}
	ev.Text = text
	return ev.As(d.Category, time.Duration(d.Wait)), evidence.Refused(d.Category)
}
