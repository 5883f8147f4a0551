package evidence

import (
	"encoding/json"
	"strings"
)

// spoken are what the error objects inside a message say, and the message with their own messages in
// their places: many programs print the body of an answer behind their own words.
type spoken struct {
	text     string
	types    []string
	statuses []int
}

// mostText is how much of what a failure said is read.
const mostText = 16000

// readObjects reads the JSON in a text that tells an error.
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
	var body map[string]json.RawMessage
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

// object collects the types and statuses of an error object and returns its message, "" when it has none.
// Of the APIs in use each puts them elsewhere: {"error": {"type", "code", "message"}}, {"type": "error", …},
// {"status": 400, "detail"}, Google's list of details.
func (s *spoken) object(o map[string]json.RawMessage, depth int) (said string) {
	for _, name := range []string{"type", "code", "status", "statusCode", "reason", "quotaId", "quotaValue"} {
		value := strings.Trim(string(o[name]), `"`)
		switch {
		case name == "quotaValue" && value == "0":
			value = "no_quota" // not on offer without a paid plan
		case name == "quotaId" && strings.Contains(value, "PerDay"):
			value = "quota_per_day"
		}
		if status := httpStatus(value); status != 0 {
			s.statuses = append(s.statuses, status)
		} else if value != "" && len(value) <= 100 {
			s.types = append(s.types, value)
		}
	}
	for _, name := range []string{"error", "details", "violations"} {
		said = first(said, s.value(o[name], depth))
	}
	for _, name := range []string{"message", "detail"} {
		var text string
		if json.Unmarshal(o[name], &text) == nil {
			said = first(said, s.unwrap(strings.TrimSpace(text), depth-1))
		}
	}
	if said == "" && string(o["error"]) != "" || o["type"] != nil && string(o["type"]) != `"error"` {
		var kind string
		_ = json.Unmarshal(o["type"], &kind)
		said = first(said, kind)
	}
	return said
}

// value reads an error that is an object, a list of objects, or a text.
func (s *spoken) value(raw json.RawMessage, depth int) string {
	var object map[string]json.RawMessage
	var list []map[string]json.RawMessage
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

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
