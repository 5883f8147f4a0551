package agent

import (
	"bytes"
	"encoding/json"

	"dagrun.dev/nodes/internal/jsonscan"
)

// mostWatched is the length of a line up to which the watch looks for the last word. Behind a
// longer one a program that stays is ended by its time limit only.
const mostWatched = 64 << 20

// An endWatch finds the last word of a program in its growing output, so that one that stays
// after it is not waited for.
type endWatch struct {
	ended func(jsonscan.Object) bool
	line  []byte
	long  bool
	last  bool
}

// piece takes the next piece of output and reports whether the last word has been said.
func (w *endWatch) piece(b []byte) bool {
	for {
		line, rest, ended := bytes.Cut(b, []byte("\n"))
		w.add(line)
		if !ended {
			break
		}
		w.look()
		w.line, w.long, b = w.line[:0], false, rest
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

// look judges the present line: it is the last word, an event after it (a new turn), or something else.
func (w *endWatch) look() {
	line := bytes.TrimSpace(w.line)
	if w.long || len(line) == 0 || line[0] != '{' && line[0] != '[' {
		return
	}
	var o jsonscan.Object
	var list []json.RawMessage
	if json.Unmarshal(line, &o) != nil {
		if json.Unmarshal(line, &list) != nil || len(list) == 0 || json.Unmarshal(list[len(list)-1], &o) != nil {
			return
		}
	}
	switch kind := o.Str("type"); {
	case w.ended(o):
		w.last = true
	case kind == "assistant" || kind == "user" || kind == "turn.started":
		w.last = false
	}
}
