package extract

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/jsonscan"
	"dagrun.dev/nodes/internal/markdown"
)

// A value stands in an answer, with what was odd about it, or why it is none.
type value struct {
	raw    json.RawMessage
	odd    string
	broken error
	word   bool // it does not even begin like one: "{name}", "[1]"
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
	all := a.jsonValues()
	found := slices.DeleteFunc(slices.Clone(all), func(v value) bool { return v.broken != nil })
	if a.endless || len(found) == 0 {
		return value{}, a.noJSON(all)
	}
	for i, v := range all {
		switch {
		case v.broken == nil, v.word:
		case i == len(all)-1 && errors.Is(v.broken, io.ErrUnexpectedEOF) && cmp.Or(policy, "fail") == "fail":
			return value{}, nodes.Fail("truncated", "the last of several JSON values breaks off: "+tail(a.src))
		default:
			s.Warn("what is no JSON value was left out: %v", v.broken)
		}
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

// noJSON says why an answer holds no value that is whole.
func (a *answer) noJSON(all []value) error {
	var broken error
	for _, v := range all {
		if broken == nil || errors.Is(v.broken, io.ErrUnexpectedEOF) {
			broken = v.broken
		}
	}
	switch {
	case a.endless, errors.Is(broken, io.ErrUnexpectedEOF):
		return nodes.Fail("truncated", "the JSON value breaks off: "+tail(a.src))
	case errors.Is(broken, jsontext.ErrDuplicateName):
		return nodes.Fail("protocol", broken.Error())
	case broken != nil:
		return nodes.Fail("no_artifact", "the answer holds no JSON object or list: "+broken.Error())
	}
	return nodes.Fail("no_artifact", "the answer holds no JSON object or list")
}

// jsonValues returns the values of code blocks, or else those that begin a line, or else objects behind words; and what
// begins like one of them and is none.
func (a *answer) jsonValues() (found []value) {
	for _, b := range a.blocks {
		code := markdown.TrimBlank(a.src[b.start:b.end])
		if strings.HasPrefix(code, "{") || strings.HasPrefix(code, "[") { // others are programs, and hold what they like
			found = append(found, scanJSON(code, "{[", beginsLine)...)
		}
	}
	text := a.text()
	if !slices.ContainsFunc(found, func(v value) bool { return v.broken == nil }) {
		found = append(found, scanJSON(text, "{[", beginsLine)...)
	}
	if !slices.ContainsFunc(found, func(v value) bool { return !v.word }) {
		found = append(found, scanJSON(text, "{", behindText)...)
	}
	return found
}

// scanJSON returns the values of a text that begin with the first of the signs on a line, or right behind another
// value, and where begins allows it by what stands before. A list counts when nothing follows it on its line:
// "[1]: a note" is none.
func scanJSON(text, signs string, begins func(before string) bool) (found []value) {
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
			v = value{broken: err, word: !isObject.MatchString(text[at:])}
			found = append(found, v)
			at += cmp.Or(bracketLength(text[at:]), wrongAt(err))
			if !v.word && errors.Is(err, io.ErrUnexpectedEOF) {
				break // all that follows stands in it
			}
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

// wrongAt returns how far a text was read before it was found to be no value: a new one may begin there.
func wrongAt(err error) int {
	var e *jsontext.SyntacticError
	if !errors.As(err, &e) {
		return 1
	}
	return max(1, int(e.ByteOffset))
}

// bracketLength returns how far the brackets reach that a text begins with; 0: they are not closed.
func bracketLength(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// isObject is how an object begins that means to be JSON.
var isObject = regexp.MustCompile(`^\{\s*(?:["'}]|$)`)

// readJSON reads the value that a text begins with. Repaired is only what cannot change its meaning, and only where
// the value is alone: a comma before a closing bracket, one closing bracket too many.
func readJSON(text string, alone bool) (v value, length int, err error) {
	raw, n, err := accept.Value(text)
	switch rest := markdown.TrimBlank(text[n:]); {
	case err == nil && alone && (rest == "}" || rest == "]"):
		return value{raw: raw, odd: "a closing bracket too many stands behind the JSON value"}, len(text), nil
	case err == nil:
		return value{raw: raw}, n, nil
	case !alone:
		return value{}, 0, err
	}
	bare := withoutCommas(text)
	raw, n, again := accept.Value(bare)
	if again != nil || markdown.TrimBlank(bare[n:]) != "" {
		return value{}, 0, err
	}
	return value{raw: raw, odd: "commas before closing brackets were left out of the JSON value"}, len(text), nil
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
