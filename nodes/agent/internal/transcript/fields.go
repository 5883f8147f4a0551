package transcript

import (
	"encoding/json"
	"strings"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/evidence"
)

// Fields is the format of a program that prints its answer at a declared place of any JSON: names of fields with
// dots between. failed is where an error stands; "" = nowhere. With lines every object may hold a part of the
// answer. The one ending is there as soon as the answer, or an error, has begun.
func Fields(answer, failed string, lines bool) Format {
	field, errorField := strings.Split(answer, "."), strings.Split(failed, ".")
	read := func(t *Transcript, o object) {
		e := ending{turned: true}
		if len(t.endings) > 0 {
			e = t.endings[0]
		}
		raw, there := o.At(errorField)
		if there = there && failed != "" && !empty(raw); there {
			e.fails(t.fail(0, accept.Plain(raw)))
		}
		var text string
		if raw, ok := o.At(field); ok && json.Unmarshal(raw, &text) == nil {
			if there = true; !lines {
				t.parts.Reset()
			}
			t.parts.WriteString(text)
		}
		if there {
			t.endings = []ending{e}
		}
	}
	return Format{
		Table: evidence.Wrapped, Partial: lines, Stream: lines, Read: read,
		Done: func(t *Transcript) { t.endings[0].text = t.parts.String() },
	}
}

// empty reports whether a value means "no error".
func empty(raw json.RawMessage) bool {
	switch strings.TrimSpace(string(raw)) {
	case "", "null", "false", `""`, "0", "[]", "{}":
		return true
	}
	return false
}
