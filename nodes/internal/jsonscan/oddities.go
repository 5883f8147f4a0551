package jsonscan

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Oddities are what encoding/json passes over in silence: a name twice in one object, of which it takes the
// last, and text that is no Unicode, of which it makes U+FFFD.
type Oddities struct {
	twice string // the first such name; "" = none
	lossy bool
}

// Look takes one JSON value.
func (d *Oddities) Look(raw []byte) {
	value := jsontext.Value(raw)
	if value.IsValid() {
		return
	}
	if !value.IsValid(jsontext.AllowDuplicateNames(true)) && value.IsValid(unicodeAside...) {
		d.lossy = true
	}
	if d.twice != "" {
		return
	}
	dec := jsontext.NewDecoder(strings.NewReader(string(raw)), jsontext.AllowInvalidUTF8(true))
	_, err := dec.ReadValue()
	var at *jsontext.SyntacticError
	if errors.As(err, &at) && errors.Is(err, jsontext.ErrDuplicateName) {
		d.twice = at.JSONPointer.LastToken()
	}
}

// unicodeAside accepts everything that encoding/json accepts.
var unicodeAside = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// Warnings are about an answer that was read from such values.
func (d *Oddities) Warnings(answer string) (list []string) {
	if d.twice != "" {
		list = append(list, fmt.Sprintf("the field %q appears twice in one object; the last one counts", d.twice))
	}
	if d.lossy && strings.ContainsRune(answer, utf8.RuneError) {
		list = append(list, "the answer held bytes that are not valid Unicode; U+FFFD stands in their place")
	}
	return list
}
