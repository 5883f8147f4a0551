package extract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// takeJSON chooses the JSON value and records parts of it.
func takeJSON(s *accept.State, a *answer, j *jsonRule) error {
	raw, err := chooseJSON(s, a, j.Policy)
	if err != nil {
		return err
	}
	if key, twice := duplicateKey(raw); twice {
		return nodes.Fail("protocol", fmt.Sprintf("the JSON value has the key %q twice in one object", key))
	}
	for _, name := range slices.Sorted(maps.Keys(j.Values)) {
		v, err := pick(raw, j.Values[name])
		if err != nil {
			return nodes.Fail("validation_failed", fmt.Sprintf("value %s: %v", name, err))
		}
		s.Values[name] = v
	}
	if j.To != "" {
		s.Artifacts[j.To] = append(bytes.TrimSpace(raw), '\n')
	}
	return nil
}

// chooseJSON returns the one value that is meant: in a code block, else the answer as a whole, else objects and
// lists that begin a line.
func chooseJSON(s *accept.State, a *answer, policy string) (json.RawMessage, error) {
	found, cut := a.jsonValues()
	if len(found) == 0 {
		if cut {
			return nil, nodes.Fail("truncated", "the JSON value breaks off: ... "+tail(a.src))
		}
		return nil, nodes.Fail("no_artifact", "the answer holds no JSON object or list")
	}
	var distinct []json.RawMessage
	seen := map[string]bool{}
	for _, raw := range found {
		var key bytes.Buffer
		if err := json.Compact(&key, raw); err == nil && !seen[key.String()] {
			seen[key.String()] = true
			distinct = append(distinct, raw)
		}
	}
	v := distinct[0]
	if len(distinct) == 1 {
		return v, nil
	}
	switch policy {
	case "fail":
		return nil, nodes.Fail("ambiguous", fmt.Sprintf("the answer holds %d different JSON values", len(distinct)))
	case "last":
		v = distinct[len(distinct)-1]
	case "largest":
		for _, d := range distinct[1:] {
			if len(d) > len(v) {
				v = d
			}
		}
	}
	s.Warn("the answer holds %d different JSON values (policy %s)", len(distinct), policy)
	return v, nil
}

// jsonValues returns the values of code blocks, or else those of the text. cut says that one
// begins and does not end.
func (a *answer) jsonValues() (found []json.RawMessage, cut bool) {
	for _, b := range a.blocks {
		raw, n, broken := decodeJSON(a.src[b.start:b.end])
		if raw != nil && markdown.TrimBlank(a.src[b.start+n:b.end]) == "" {
			found = append(found, raw)
		}
		cut = cut || broken
	}
	if found != nil {
		return found, false
	}
	text := a.text()
	found, cut2 := scanJSON(text, "{[", beginsLine)
	if found == nil && !cut && !cut2 {
		found, _ = scanJSON(text, "{", behindText)
	}
	return found, cut || cut2
}

// scanJSON returns the values of a text that begin with the first of the signs on a line, or right behind another value, and
// where begins allows it by what stands before. A list counts when nothing follows it on its line: "[1]: a note" is none.
func scanJSON(text, signs string, begins func(before string) bool) (found []json.RawMessage, cut bool) {
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
		raw, length, broken := decodeJSON(text[at:])
		cut = cut || broken
		if raw == nil {
			at = nextLine(text, at)
			continue
		}
		at += length
		behind = at
		if raw[0] == '{' || strings.TrimSpace(text[at:nextLine(text, at)]) == "" {
			found = append(found, raw)
		}
	}
	return found, cut
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

// decodeJSON reads an object or a list at the start of a text. length is where it ends in the
// text; cut says that the text ended first.
func decodeJSON(text string) (raw json.RawMessage, length int, cut bool) {
	s := strings.TrimLeftFunc(text, markdown.Blank)
	if s == "" || s[0] != '{' && s[0] != '[' {
		return nil, 0, false
	}
	d := json.NewDecoder(strings.NewReader(s))
	if err := d.Decode(&raw); err != nil {
		return nil, 0, errors.Is(err, io.ErrUnexpectedEOF)
	}
	return raw, len(text) - len(s) + int(d.InputOffset()), false
}

// duplicateKey returns a key that stands twice in one object: which of the two counts depends on
// the reader, so none does.
func duplicateKey(raw json.RawMessage) (string, bool) {
	type level struct {
		keys   map[string]bool // nil in a list
		isKey  bool
		object bool
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	var stack []level
	for {
		tok, err := d.Token()
		if err != nil {
			return "", false
		}
		top := len(stack) - 1
		if key, ok := tok.(string); ok && top >= 0 && stack[top].object && stack[top].isKey {
			if stack[top].keys[key] {
				return key, true
			}
			stack[top].keys[key], stack[top].isKey = true, false
			continue
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, level{keys: map[string]bool{}, isKey: true, object: true})
			continue
		case json.Delim('['):
			stack = append(stack, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
		}
		if n := len(stack) - 1; n >= 0 {
			stack[n].isKey = true
		}
	}
}

// pick returns a part of a JSON value, of the declared type.
func pick(raw json.RawMessage, v jsonValue) (any, error) {
	part, err := walkPath(raw, v.Path)
	if err != nil {
		if v.Else == nil {
			return nil, err
		}
		part = *v.Else
	}
	return typed(part, v.Type)
}

func walkPath(raw json.RawMessage, path string) (json.RawMessage, error) {
	if path == "" {
		return raw, nil
	}
	for _, step := range strings.Split(path, ".") {
		var object map[string]json.RawMessage
		var list []json.RawMessage
		switch {
		case json.Unmarshal(raw, &object) == nil && object != nil:
			next, ok := object[step]
			if !ok {
				return nil, fmt.Errorf("%s: no %q", path, step)
			}
			raw = next
		case json.Unmarshal(raw, &list) == nil && list != nil:
			n, err := strconv.Atoi(step)
			if err != nil || n < 0 || n >= len(list) {
				return nil, fmt.Errorf("%s: no item %q of %d", path, step, len(list))
			}
			raw = list[n]
		default:
			return nil, fmt.Errorf("%s: %q of neither an object nor a list", path, step)
		}
	}
	return raw, nil
}

// typed decodes a value as a type of the settings. Whole numbers stay exact.
func typed(raw json.RawMessage, typ string) (any, error) {
	raw = bytes.TrimSpace(raw)
	var err error
	var v any
	switch typ {
	case "string":
		v, err = as[string](raw, '"')
	case "bool":
		v, err = as[bool](raw, 't', 'f')
	case "int":
		v, err = as[int64](raw, digits...)
	case "number":
		v, err = as[float64](raw, digits...)
	case "list":
		v, err = as[[]any](raw, '[')
	case "map":
		v, err = as[map[string]any](raw, '{')
	default:
		err = fmt.Errorf("unknown type %q", typ)
	}
	return v, err
}

var digits = []byte("-0123456789")

func as[T any](raw []byte, first ...byte) (any, error) {
	var v T
	if len(raw) == 0 || bytes.IndexByte(first, raw[0]) < 0 {
		return nil, fmt.Errorf("want %T, got %s", v, accept.Quote(string(raw)))
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("want %T, got %s", v, accept.Quote(string(raw)))
	}
	return v, nil
}
