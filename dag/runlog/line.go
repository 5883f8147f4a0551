package runlog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"dagrun.dev/dag"
	"dagrun.dev/dag/report"
)

// Levels of the log for people.
const (
	info  = "[INFO] "
	warn  = "[WARN] "
	alert = "[ERROR]"
)

// stamp is the form of instants in logs: UTC, milliseconds.
const stamp = "2006-01-02T15:04:05.000Z"

// A writer turns an entry into lines.
type writer struct {
	*entry
	emit func(log int, line []byte)
}

// lines calls emit with each line of the entry, in order.
func (en *entry) lines(emit func(log int, line []byte)) {
	if row := table[en.e.Type]; row != nil {
		row(&writer{en, emit})
	}
}

// say adds a line to the log for people.
func (w *writer) say(level, format string, args ...any) {
	b := append(make([]byte, 0, 160), '[')
	b = append(w.e.Time.AppendFormat(b, stamp), "] "...)
	b = append(append(b, level...), " #"...)
	b = append(strconv.AppendInt(b, w.e.Seq, 10), ' ')
	b = append(b, report.Plain(fmt.Sprintf(format, args...))...)
	w.emit(humanLog, append(b, '\n'))
}

// decide adds a line to decisions.jsonl.
func (w *writer) decide(what string, list ...any) {
	if word := w.plan.WordOf(what, w.node); word != "" {
		what = inWord.ReplaceAllStringFunc(word, func(s string) string {
			name := s[1 : len(s)-1]
			text := w.node.Labels[name]
			for _, v := range list {
				if note, ok := v.(json.RawMessage); ok {
					text = cmp.Or(report.Field(note, name), text)
				}
			}
			return cmp.Or(text, s)
		})
	}
	w.log(decisionLog, "decision", what, w.node, fields(list))
}

// inWord are names of fields in the plan's own word for a decision.
var inWord = regexp.MustCompile(`\{[^{}]+\}`)

// log adds a line of fields to a .jsonl file.
func (w *writer) log(log int, list ...any) {
	r := record{b: make([]byte, 0, 256), names: make([]string, 0, 16)}
	r.b = append(r.b, `{"seq":`...)
	r.b = strconv.AppendInt(r.b, w.e.Seq, 10)
	r.b = append(r.b, `,"ts":"`...)
	r.b = w.e.Time.AppendFormat(r.b, stamp)
	r.b = append(r.b, '"')
	r.add(list)
	w.emit(log, append(r.b, '}', '\n'))
}

// fields are what a line says, in order: a name and its value; a *dag.Node, for its id and labels; a json.RawMessage,
// for the members of that object; a value of a node; further fields. A name that ends in "?" is left out with its
// value when that is zero or empty.
type fields []any

// A record is a line of a .jsonl log under construction. Each name stands in it once.
type record struct {
	b     []byte
	names []string
}

func (r *record) add(list fields) {
	for i := 0; i < len(list); i++ {
		switch v := list[i].(type) {
		case fields:
			r.add(v)
		case *dag.Node:
			r.node(v)
		case json.RawMessage:
			r.object(v)
		case value:
			if slices.Contains(r.names, v.name) {
				v.name = "out." + v.name
			}
			r.field(v.name, v.raw)
		case string:
			i++
			if name, optional := strings.CutSuffix(v, "?"); !optional || !empty(list[i]) {
				r.field(name, list[i])
			}
		}
	}
}

// field adds a field; one whose name is taken gets another.
func (r *record) field(name string, v any) {
	for slices.Contains(r.names, name) || name == "seq" || name == "ts" {
		name = "other." + name
	}
	r.names = append(r.names, name)
	r.b = append(appendQuoted(append(r.b, ','), name), ':')
	switch v := v.(type) {
	case string:
		r.b = appendQuoted(r.b, v)
	case int:
		r.b = strconv.AppendInt(r.b, int64(v), 10)
	case int64:
		r.b = strconv.AppendInt(r.b, v, 10)
	case bool:
		r.b = strconv.AppendBool(r.b, v)
	case time.Time:
		r.b = appendQuoted(r.b, instant(v))
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

func empty(v any) bool {
	if list, ok := v.([]string); ok {
		return len(list) == 0
	}
	return reflect.ValueOf(v).IsZero()
}

// fixed are names that labels cannot take: the logs' own fields.
var fixed = []string{"node", "kind", "decision", "type", "status", "generation", "attempt"}

// node adds a node and its labels, by name. A label that is a whole number becomes one.
func (r *record) node(n *dag.Node) {
	if n == nil {
		return
	}
	r.field("node", n.ID)
	for _, name := range slices.Sorted(maps.Keys(n.Labels)) {
		v := any(n.Labels[name])
		if i, err := strconv.ParseInt(n.Labels[name], 10, 52); err == nil && strconv.FormatInt(i, 10) == v {
			v = i
		}
		if slices.Contains(fixed, name) {
			name = "label." + name
		}
		r.field(name, v)
	}
}

// object adds the members of a JSON object, by name.
func (r *record) object(raw json.RawMessage) {
	var m map[string]json.RawMessage
	if len(raw) == 0 || json.Unmarshal(raw, &m) != nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		r.field(name, m[name])
	}
}

// appendQuoted appends a JSON string in ASCII as far as terminals act on other characters.
func appendQuoted(b []byte, s string) []byte {
	if !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= 0x7f || c == '"' || c == '\\' }) {
		return append(append(append(b, '"'), s...), '"')
	}
	quoted, _ := jsontext.AppendQuote(nil, s) // what is no UTF-8 is replaced
	for _, c := range string(quoted) {
		if c >= 0x7f && c < 0xa0 || c == '\u2028' || c == '\u2029' {
			b = fmt.Appendf(b, `\u%04x`, c)
			continue
		}
		b = utf8.AppendRune(b, c)
	}
	return b
}
