package dag

import (
	"encoding/json"
	"errors"
	"strings"
)

// OutputType splits the declared type of an output: string, int, number, bool, list or map, and a "?" behind
// it where a node that has completed may have no such value.
func OutputType(declared string) (typ string, optional bool) { return strings.CutSuffix(declared, "?") }

// KeptValue returns a value as events keep it. They know doubles only, so that one with an integer beyond 2^53 stands
// as a string that holds its JSON; a value of type string is never changed. See ReadValue.
func KeptValue(raw json.RawMessage) json.RawMessage {
	if _, err := AppendCanonical(nil, raw); !errors.Is(err, errTooBig) {
		return raw
	}
	kept, _ := json.Marshal(string(raw)) // a string can always be written
	return kept
}

// ReadValue returns a value that was kept, as it was: a string for anything that is not declared as one is its JSON.
func ReadValue(kept json.RawMessage, declared string) json.RawMessage {
	var raw string
	if typ, _ := OutputType(declared); typ == "string" || typ == "" {
		return kept
	}
	if json.Unmarshal(kept, &raw) != nil || !json.Valid([]byte(raw)) {
		return kept
	}
	return json.RawMessage(raw)
}
