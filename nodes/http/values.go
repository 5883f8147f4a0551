package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/jsonscan"
)

// mostJSON is the longest body that values are read from, in bytes: it has to fit into memory.
const mostJSON = 64 << 20

// values reads the values from a JSON body.
func (s *settings) values(body io.Reader, res *nodes.Result) error {
	text := new(bytes.Buffer)
	d := json.NewDecoder(io.TeeReader(io.LimitReader(body, mostJSON), text))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return &nodes.Error{Category: "protocol", Message: "values: the answer is no JSON", Err: err}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nodes.Failf("protocol",
			"values: something stands behind the JSON value, which ends at byte %d", d.InputOffset())
	}
	var odd jsonscan.Oddities
	odd.Look(text.Bytes())
	res.Warnings = append(res.Warnings, odd.Warnings("")...)
	for _, name := range slices.Sorted(maps.Keys(s.Values)) {
		v := s.Values[name]
		x, err := jsonscan.Walk(doc, v.At)
		if err != nil || x == nil {
			return nodes.Failf("protocol", "values.%s: the answer has nothing at %q", name, v.At)
		}
		x, ok := typed(x, v.kind())
		if !ok {
			return nodes.Failf("protocol", "values.%s: what the answer has at %q is not of type %s", name, v.At, v.kind())
		}
		if lossy(x, text.Bytes()) {
			return nodes.Failf("protocol", "values.%s: the text that the answer has at %q is not valid Unicode", name, v.At)
		}
		res.Values[name] = x
	}
	return nil
}

// lossy reports whether a value of a document may not be what is written there: half of a surrogate pair, and what is
// no UTF-8, are decoded as U+FFFD.
func lossy(x any, doc []byte) bool {
	switch x.(type) {
	case string, []any, map[string]any:
	default:
		return false
	}
	b, err := json.Marshal(x)
	sound := jsontext.AllowDuplicateNames(true)
	return err != nil || bytes.ContainsRune(b, utf8.RuneError) && !jsontext.Value(doc).IsValid(sound)
}

// typed returns x as a value of a type, if it is one. A number or truth value is also a text.
func typed(x any, want string) (any, bool) {
	if want == "string" {
		switch v := x.(type) {
		case bool:
			return strconv.FormatBool(v), true
		case json.Number:
			return v.String(), true
		}
	}
	return jsonscan.Typed(x, want)
}
