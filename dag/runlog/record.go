package runlog

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
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
	r.b = append(appendQuoted(append(r.b, ','), name), ':')
}

// add adds fields, each a name and a value. One whose name ends in "?" is left out when its value is zero or empty.
func (r *record) add(pairs ...any) *record {
	for i := 0; i < len(pairs); i += 2 {
		name, optional := strings.CutSuffix(pairs[i].(string), "?")
		if optional && empty(pairs[i+1]) {
			continue
		}
		r.key(name)
		switch v := pairs[i+1].(type) {
		case string:
			r.b = appendQuoted(r.b, v)
		case int:
			r.b = strconv.AppendInt(r.b, int64(v), 10)
		case int64:
			r.b = strconv.AppendInt(r.b, v, 10)
		case bool:
			r.b = strconv.AppendBool(r.b, v)
		case time.Time:
			r.b = appendQuoted(r.b, v.UTC().Format(stamp))
		case json.RawMessage:
			r.b = append(r.b, v...)
		default:
			raw, err := json.Marshal(v)
			if err != nil {
				raw = []byte("null")
			}
			r.b = append(r.b, raw...)
		}
	}
	return r
}

func empty(v any) bool {
	if list, ok := v.([]string); ok {
		return len(list) == 0
	}
	return reflect.ValueOf(v).IsZero()
}

// fixed are names that labels cannot take: the logs' own fields.
var fixed = map[string]bool{"node": true, "kind": true, "decision": true, "type": true, "status": true, "generation": true, "attempt": true}

// of adds a node and its labels, by name. A label that is a whole number becomes one.
func (r *record) of(n *dag.Node) *record {
	if n == nil {
		return r
	}
	r.add("node", n.ID)
	for _, k := range slices.Sorted(maps.Keys(n.Labels)) {
		v := n.Labels[k]
		if fixed[k] {
			k = "label." + k
		}
		if i, err := strconv.ParseInt(v, 10, 52); err == nil && strconv.FormatInt(i, 10) == v {
			r.add(k, i)
		} else {
			r.add(k, v)
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
		r.add(k, m[k])
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
