package evidence

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"dagrun.dev/nodes/internal/jsonscan"
)

// An ErrorObject is what a service says of a failure in JSON.
type ErrorObject struct {
	Kinds   []string // overloaded_error, insufficient_quota, ...
	Message string   // never empty in one that was read
	Request string   // the service's name for the exchange
	Status  int      // of HTTP, that it names or that its kinds stand for; 0 = none
}

// ReadError reads an error object: {"error": {"type", "code", "message"}} in any of the shapes in use,
// {"error": "text"}, {"type": "error", ...}. ok is false when raw is something else.
func ReadError(raw []byte) (e ErrorObject, ok bool) {
	raw = bytes.TrimSpace(raw)
	var list []json.RawMessage
	if len(raw) > 0 && raw[0] == '[' && json.Unmarshal(raw, &list) == nil && len(list) > 0 { // some send a list of one
		raw = list[0]
	}
	var o jsonscan.Object
	if json.Unmarshal(raw, &o) != nil || !isError(o) {
		return e, false
	}
	inner := o.Object("error")
	e.Request = cmp.Or(scalar(o["request_id"]), scalar(o["requestId"]), scalar(inner["request_id"]))
	var s spoken
	e.Message = cmp.Or(s.object(o, 3), scalar(o["message"]), string(o["detail"]), "no message")
	e.Status = s.status
	for _, kind := range s.types {
		if kind == "error" || kind == e.Message || number.MatchString(kind) || slices.Contains(e.Kinds, kind) {
			continue
		}
		e.Kinds = append(e.Kinds, kind)
		e.Status = cmp.Or(e.Status, types()[strings.ToLower(kind)].status)
	}
	return e, true
}

// isError reports whether an object reports an error, in one of the shapes in use.
func isError(o jsonscan.Object) bool {
	numbered := present(o["code"]) || present(o["status"]) || present(o["statusCode"])
	return present(o["error"]) || o.Str("type") == "error" || present(o["detail"]) && len(o) <= 2 ||
		present(o["message"]) && (numbered || o.Str("object") == "error")
}

func (e ErrorObject) text() string {
	if len(e.Kinds) == 0 {
		return e.Message
	}
	return strings.Join(e.Kinds, " ") + ": " + e.Message
}

// present reports whether a field says anything.
func present(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "false", `""`:
		return false
	}
	return true
}

// scalar returns a string or a number as text, "" for anything else.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if len(raw) < 40 && json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// spoken are what the error objects inside a message say, and the message with their own messages in
// their places: many programs print the body of an answer behind their own words.
type spoken struct {
	text   string
	types  []string
	status int // of HTTP, the first that is named; 0 = none
}

// readObjects reads the JSON in a text that reports an error.
func readObjects(text string) (s spoken) {
	s.text = s.unwrap(head(text, mostText), 3)
	return s
}

// unwrap replaces the first JSON value of a text by the message inside it, which may hold one itself.
func (s *spoken) unwrap(text string, depth int) string {
	at := strings.IndexByte(text, '{')
	if at < 0 || depth == 0 {
		return text
	}
	d := json.NewDecoder(strings.NewReader(text[at:]))
	var body jsonscan.Object
	if d.Decode(&body) != nil {
		return text
	}
	said := s.object(body, depth)
	if said == "" {
		return text
	}
	before := strings.TrimRight(text[:at], "[ ")
	behind := strings.TrimLeft(text[at+int(d.InputOffset()):], "]")
	return strings.TrimSpace(before + " " + said + behind)
}

// object collects the types and the status of an error object and returns its message, "" when it has none.
// Of the APIs in use each puts them elsewhere: {"error": {"type", "code", "message"}}, {"type": "error", …},
// {"status": 400, "detail"}, Google's list of details. A router puts what the service behind it said into a text
// beside its own words: that is the reason, and counts before them.
func (s *spoken) object(o jsonscan.Object, depth int) (said string) {
	upstream := ""
	if raw := o.Object("metadata").Str("raw"); depth > 0 {
		if upstream = s.unwrap(raw, depth-1); upstream == raw {
			upstream = "" // no error object
		}
	}
	for _, name := range []string{"type", "code", "status", "statusCode", "reason", "quotaId", "quotaValue"} {
		value := strings.Trim(string(o[name]), `"`)
		switch {
		case name == "quotaValue" && value == "0":
			value = "no_quota" // not on offer without a paid plan
		case name == "quotaId" && strings.Contains(value, "PerDay"):
			value = "quota_per_day"
		}
		if status := httpStatus(value); status != 0 {
			s.status = cmp.Or(s.status, status)
		} else if value != "" && len(value) <= 100 {
			s.types = append(s.types, value)
		}
	}
	for _, name := range []string{"error", "details", "violations"} {
		said = cmp.Or(said, s.value(o[name], depth))
	}
	for _, name := range []string{"message", "detail"} {
		if text := strings.TrimSpace(o.Str(name)); text != "" {
			said = cmp.Or(said, s.unwrap(text, depth-1))
		}
	}
	if said != "" && upstream != "" {
		said += ": " + upstream
	}
	if said == "" && string(o["error"]) != "" || o["type"] != nil && o.Str("type") != "error" {
		said = cmp.Or(said, o.Str("type"))
	}
	return said
}

// value reads an error that is an object, a list of objects, or a text.
func (s *spoken) value(raw json.RawMessage, depth int) string {
	var object jsonscan.Object
	var list []jsonscan.Object
	var text string
	switch {
	case len(raw) == 0 || depth == 0:
	case json.Unmarshal(raw, &object) == nil && object != nil:
		return s.object(object, depth)
	case json.Unmarshal(raw, &list) == nil:
		for _, o := range list {
			_ = s.object(o, depth-1) // details have no message of their own
		}
	case json.Unmarshal(raw, &text) == nil:
		s.types = append(s.types, text) // some put the code here
		return text
	}
	return ""
}

// MostBody is how much of the body of such an answer is worth reading.
const MostBody = 64 << 10
