package extract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/jsonscan"
	"dagrun.dev/nodes/internal/markdown"
)

// A found value is one that stands in an answer, with what was odd about it.
type value struct {
	raw json.RawMessage
	odd string
}

// takeJSON chooses the JSON value and records parts of it.
func takeJSON(s *accept.State, a *answer, j *jsonRule) error {
	v, err := a.chooseJSON(s, j.Policy)
	if err != nil {
		return err
	}
	if v.odd != "" {
		s.Warn("%s", v.odd)
	}
	for _, name := range slices.Sorted(maps.Keys(j.Values)) {
		part, err := pick(v.raw, j.Values[name])
		if err != nil {
			return nodes.Failf("validation_failed", "value %s: %v", name, err)
		}
		s.Values[name] = part
	}
	if j.To != "" {
		s.Artifacts[j.To] = append(bytes.TrimSpace(v.raw), '\n')
	}
	return nil
}

// chooseJSON returns the one value that is meant: in a code block, else the answer as a whole, else objects and
// lists that begin a line, else objects behind words.
func (a *answer) chooseJSON(s *accept.State, policy string) (value, error) {
	found, broken := a.jsonValues()
	switch {
	case a.endless, len(found) == 0 && errors.Is(broken, io.ErrUnexpectedEOF):
		return value{}, nodes.Fail("truncated", "the JSON value breaks off: "+tail(a.src))
	case len(found) == 0 && errors.Is(broken, jsontext.ErrDuplicateName):
		return value{}, nodes.Fail("protocol", broken.Error())
	case len(found) == 0 && broken != nil:
		return value{}, nodes.Fail("no_artifact", "the answer holds no JSON object or list: "+broken.Error())
	case len(found) == 0:
		return value{}, nodes.Fail("no_artifact", "the answer holds no JSON object or list")
	}
	var distinct []value
	seen := map[string]bool{}
	for _, v := range found {
		var key bytes.Buffer
		if err := json.Compact(&key, v.raw); err == nil && !seen[key.String()] {
			seen[key.String()] = true
			distinct = append(distinct, v)
		}
	}
	v := distinct[0]
	if len(distinct) == 1 {
		return v, nil
	}
	switch policy {
	case "first":
	case "last":
		v = distinct[len(distinct)-1]
	case "largest":
		v = slices.MaxFunc(distinct, func(a, b value) int { return len(a.raw) - len(b.raw) })
	default:
		return v, nodes.Failf("ambiguous", "the answer holds %d different JSON values", len(distinct))
	}
	s.Warn("the answer holds %d different JSON values (policy %s)", len(distinct), policy)
	return v, nil
}

// jsonValues returns the values of code blocks, or else those that begin a line, or else objects behind words.
// broken is what is wrong with one that is none.
func (a *answer) jsonValues() (found []value, broken error) {
	note := func(err error) {
		if broken == nil || errors.Is(err, io.ErrUnexpectedEOF) {
			broken = err
		}
	}
	for _, b := range a.blocks {
		code := markdown.TrimBlank(a.src[b.start:b.end])
		if strings.HasPrefix(code, "{") || strings.HasPrefix(code, "[") { // others are programs, and hold what they like
			found = append(found, scanJSON(code, "{[", beginsLine, note)...)
		}
	}
	text := a.text()
	if found == nil {
		found = scanJSON(text, "{[", beginsLine, note)
	}
	if found == nil && broken == nil {
		found = scanJSON(text, "{", behindText, note)
	}
	return found, broken
}

// scanJSON returns the values of a text that begin with the first of the signs on a line, or right behind another
// value, and where begins allows it by what stands before. A list counts when nothing follows it on its line:
// "[1]: a note" is none.
func scanJSON(text, signs string, begins func(before string) bool, note func(error)) (found []value) {
	const most = 64 // starts that are tried: each may be read to the end of the text
	behind := -1    // where the last value ended
	for at, tries := 0, 0; at < len(text) && tries < most; {
		n := strings.IndexAny(text[at:], signs)
		if n < 0 {
			break
		}
		at += n
		if start := strings.LastIndexByte(text[:at], '\n') + 1; at != behind && !begins(text[start:at]) {
			at = nextLine(text, at)
			continue
		}
		tries++
		v, length, err := readJSON(text[at:], strings.TrimSpace(text[:at]) == "")
		if err != nil {
			note(err)
			at = nextLine(text, at)
			continue
		}
		at += length
		behind = at
		rest := strings.TrimSpace(text[at:nextLine(text, at)])
		if rest != "" && v.odd == "" {
			v.odd = "text stands behind the JSON value on its line"
		}
		if rest == "" || v.raw[0] == '{' {
			found = append(found, v)
		}
	}
	return found
}

// readJSON reads the value that a text begins with. Repaired is only what cannot change its meaning, and only where
// the value is alone: a comma before a closing bracket, one closing bracket too many.
func readJSON(text string, alone bool) (v value, length int, err error) {
	raw, n, err := accept.Value(text)
	switch rest := markdown.TrimBlank(text[n:]); {
	case err == nil && alone && (rest == "}" || rest == "]"):
		return value{raw, "a closing bracket too many stands behind the JSON value"}, len(text), nil
	case err == nil:
		return value{raw, ""}, n, nil
	case !alone:
		return value{}, 0, err
	}
	bare := withoutCommas(text)
	raw, n, again := accept.Value(bare)
	if again != nil || markdown.TrimBlank(bare[n:]) != "" {
		return value{}, 0, err
	}
	return value{raw, "commas before closing brackets were left out of the JSON value"}, len(text), nil
}

// withoutCommas leaves out the commas that stand before a closing bracket.
func withoutCommas(text string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			b.WriteByte(c)
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			if next := strings.TrimLeft(text[i+1:], " \t\r\n"); next != "" && (next[0] == '}' || next[0] == ']') {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func beginsLine(before string) bool { return strings.TrimSpace(before) == "" }

// behindText is for values behind words: not in quotation marks, not quoted.
func behindText(before string) bool {
	return !strings.HasPrefix(strings.TrimSpace(before), ">") && strings.Count(before, `"`)%2 == 0
}

func nextLine(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// pick returns a part of a JSON value, of the declared type.
func pick(raw json.RawMessage, rule jsonValue) (any, error) {
	part, err := jsonscan.Walk(exact(raw), rule.Path)
	if err != nil {
		if rule.Else == nil {
			return nil, err
		}
		part = exact(*rule.Else)
	}
	v, ok := jsonscan.Typed(part, rule.Type)
	if !ok {
		b, _ := json.Marshal(part) // it came from JSON
		return nil, fmt.Errorf("want %s, got %s", rule.Type, accept.Quote(string(b)))
	}
	if n, is := v.(json.Number); is {
		return n.Float64()
	}
	return v, nil
}

// exact decodes a value whose numbers stay as they are written.
func exact(raw json.RawMessage) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	_ = d.Decode(&v) // it was read before
	return v
}
