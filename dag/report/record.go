package report

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/dag"
)

// stamp is the form of instants in logs: UTC, milliseconds.
const stamp = "2006-01-02T15:04:05.000Z"

// A record is one line of a .jsonl log under construction: fields in the order they are added, each
// name once.
type record struct {
	b    []byte
	keys []string
}

// newRecord begins a line with the event's number and instant.
func newRecord(seq int64, at time.Time) *record {
	r := &record{b: make([]byte, 0, 256), keys: make([]string, 0, 16)}
	r.b = append(r.b, `{"seq":`...)
	r.b = strconv.AppendInt(r.b, seq, 10)
	r.b = append(r.b, `,"ts":"`...)
	r.b = at.AppendFormat(r.b, stamp)
	r.b = append(r.b, '"')
	return r
}

// key begins a field; one whose name is taken gets another.
func (r *record) key(name string) {
	for slices.Contains(r.keys, name) || name == "seq" || name == "ts" {
		name = "other." + name
	}
	r.keys = append(r.keys, name)
	r.b = append(r.b, ',')
	r.b = appendQuoted(r.b, name)
	r.b = append(r.b, ':')
}

func (r *record) str(name, v string) *record {
	r.key(name)
	r.b = appendQuoted(r.b, v)
	return r
}

// opt is str for fields that are left out when empty.
func (r *record) opt(name, v string) *record {
	if v != "" {
		r.str(name, v)
	}
	return r
}

func (r *record) num(name string, v int64) *record {
	r.key(name)
	r.b = strconv.AppendInt(r.b, v, 10)
	return r
}

func (r *record) yes(name string, v bool) *record {
	r.key(name)
	r.b = strconv.AppendBool(r.b, v)
	return r
}

func (r *record) usd(name string, v dag.USD) *record {
	raw, err := v.MarshalJSON()
	if err != nil {
		return r
	}
	return r.raw(name, raw)
}

func (r *record) time(name string, t time.Time) *record {
	if t.IsZero() {
		return r
	}
	return r.str(name, t.UTC().Format(stamp))
}

// raw adds a value that is JSON already.
func (r *record) raw(name string, v json.RawMessage) *record {
	r.key(name)
	r.b = append(r.b, v...)
	return r
}

func (r *record) strs(name string, list []string) *record {
	r.key(name)
	r.b = append(r.b, '[')
	for i, s := range list {
		if i > 0 {
			r.b = append(r.b, ',')
		}
		r.b = appendQuoted(r.b, s)
	}
	r.b = append(r.b, ']')
	return r
}

// fixed are names that labels cannot take: the logs' own fields.
var fixed = map[string]bool{"node": true, "kind": true, "decision": true, "type": true, "status": true, "generation": true, "attempt": true}

// of adds a node and its labels, by name. A label that is a whole number becomes one.
func (r *record) of(n *dag.Node) *record {
	if n == nil {
		return r
	}
	r.str("node", n.ID)
	if len(n.Labels) == 0 {
		return r
	}
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		v := n.Labels[k]
		if fixed[k] {
			k = "label." + k
		}
		if i, err := strconv.ParseInt(v, 10, 52); err == nil && strconv.FormatInt(i, 10) == v {
			r.num(k, i)
		} else {
			r.str(k, v)
		}
	}
	return r
}

// fields adds the members of a JSON object, by name.
func (r *record) fields(raw json.RawMessage) *record {
	var m map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return r
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		r.raw(k, m[k])
	}
	return r
}

// line ends the record.
func (r *record) line() []byte { return append(r.b, '}', '\n') }

// appendQuoted appends a JSON string.
func appendQuoted(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return appendEscaped(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

func appendEscaped(b []byte, s string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil { // a string always has a form
		return append(b, `""`...)
	}
	for _, c := range string(bytes.TrimSuffix(out.Bytes(), []byte("\n"))) {
		if c >= 0x7f && c < 0xa0 { // allowed in JSON, but terminals act on them
			b = append(b, `\u00`...)
			b = strconv.AppendInt(b, int64(c), 16)
			continue
		}
		b = utf8.AppendRune(b, c)
	}
	return b
}

// Plain makes text of others safe to show: one line, in which control characters, those that turn the
// direction of writing and what is no text appear as escapes. B-10
func Plain(s string) string {
	clean := true
	for _, c := range s {
		clean = clean && shown(c)
	}
	if clean {
		return s
	}
	var b strings.Builder
	for i, c := range s {
		switch {
		case c == '\n' || c == '\t' || c == '\r':
			b.WriteByte(' ')
		case c == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			b.WriteString(`\x` + strconv.FormatUint(uint64(s[i])|0x100, 16)[1:])
		case shown(c):
			b.WriteRune(c)
		case c < 0x100:
			b.WriteString(`\x` + strconv.FormatUint(uint64(c)|0x100, 16)[1:])
		default:
			b.WriteString(`\u` + strconv.FormatUint(uint64(c)|0x100000, 16)[2:])
		}
	}
	return b.String()
}

func shown(c rune) bool {
	return c != utf8.RuneError && c != '\u2028' && c != '\u2029' && !unicode.Is(unicode.Cc, c) && !unicode.Is(unicode.Bidi_Control, c)
}
