package accept

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"dagrun.dev/nodes"
)

// Decode reads settings that the schema has checked; a mistake is category config. Unknown fields
// are refused, because a name that is not read is a mistake somewhere.
func Decode(with json.RawMessage, into any) error {
	if len(bytes.TrimSpace(with)) == 0 {
		with = json.RawMessage("{}")
	}
	d := decoders.Get().(*decoder)
	d.text.Reset(with)
	begin := d.json.InputOffset()
	if err := d.json.Decode(into); err != nil {
		return &nodes.Error{Category: "config", Message: "settings", Err: err}
	}
	if d.json.InputOffset()-begin == int64(len(with)) { // nothing is left over for the next
		decoders.Put(d)
	}
	return nil
}

// A decoder is kept for the next settings: its buffer is larger than most of them, and the nodes of a large
// specification are described one after the other. One that found a mistake would report it for ever.
type decoder struct {
	text bytes.Reader
	json *json.Decoder
}

var decoders = sync.Pool{New: func() any {
	d := &decoder{}
	d.json = json.NewDecoder(&d.text)
	d.json.DisallowUnknownFields()
	return d
}}

// Plain returns a string, number or truth value of the settings as text.
func Plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(raw))
}

// Value reads the JSON value that a text begins with, and returns how far it reaches. A key twice in one object is
// an error (jsontext.ErrDuplicateName), because which of the two counts depends on the reader; a value that the
// text ends in is io.ErrUnexpectedEOF.
func Value(text string) (raw json.RawMessage, length int, err error) {
	d := jsontext.NewDecoder(strings.NewReader(text))
	v, err := d.ReadValue()
	return json.RawMessage(bytes.Clone(v)), int(d.InputOffset()), err
}
