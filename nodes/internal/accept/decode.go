package accept

import (
	"bytes"
	"encoding/json"

	"dagrun.dev/nodes"
)

// Decode reads settings that the schema has checked; a mistake is category config. Unknown fields
// are refused, because a name that is not read is a mistake somewhere.
func Decode(with json.RawMessage, into any) error {
	if len(bytes.TrimSpace(with)) == 0 {
		with = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(with))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return &nodes.Error{Category: "config", Message: "settings", Err: err}
	}
	return nil
}

// Plain returns a string, number or truth value of the settings as text.
func Plain(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(bytes.TrimSpace(raw))
}
