package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// oddities are what the decoder of JSON passes over in silence: a field that stands twice in an object,
// of which it takes the last, and text that is no Unicode, of which it makes U+FFFD.
type oddities struct {
	twice string // the first such field; "" = none
	lossy bool
}

// look takes one JSON value.
func (d *oddities) look(raw []byte) {
	d.lossy = d.lossy || !utf8.Valid(raw) || halved(raw)
	if d.twice == "" {
		d.twice = doubled(raw, 3)
	}
}

// warnings are about an answer that was read from such values.
func (d *oddities) warnings(answer string) (list []string) {
	if d.twice != "" {
		list = append(list, fmt.Sprintf("the field %q stood twice in one object; the last one counts", d.twice))
	}
	if d.lossy && strings.ContainsRune(answer, utf8.RuneError) {
		list = append(list, "the answer held what is no character; U+FFFD stands there now")
	}
	return list
}

// doubled returns a field that stands twice in an object, or in one inside it down to a depth; "" = none.
func doubled(raw []byte, depth int) string {
	if len(raw) == 0 || raw[0] != '{' || depth == 0 {
		return ""
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token()
	seen := map[string]bool{}
	for dec.More() {
		name, _ := dec.Token()
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return ""
		}
		key, _ := name.(string)
		if seen[key] {
			return key
		}
		seen[key] = true
		if inner := doubled(value, depth-1); inner != "" {
			return inner
		}
	}
	return ""
}

// halved reports whether an escape in JSON is one half of a character without the other.
func halved(raw []byte) bool {
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			return false
		}
		raw = raw[at:]
		unit := escaped(raw)
		switch {
		case unit < 0xd800 || unit > 0xdfff:
			raw = raw[min(2, len(raw)):]
		case unit > 0xdbff:
			return true
		default:
			raw = raw[6:]
			if second := escaped(raw); second < 0xdc00 || second > 0xdfff {
				return true
			}
			raw = raw[6:]
		}
	}
}

// escaped returns the 16 bits of an escape such as \u00e9 at the beginning of raw; 0 = there is none.
func escaped(raw []byte) uint64 {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0
	}
	unit, _ := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return unit
}
