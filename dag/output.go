package dag

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"dagrun.dev/internal/number"
)

// OutputType splits the declared type of an output: string, int, number, bool, list or map, and a "?" behind
// it where a node that has completed may have no such value.
func OutputType(declared string) (typ string, optional bool) { return strings.CutSuffix(declared, "?") }

// KeptValue returns a value as events keep it, in canonical form, so that who reads the log reads what the run has
// read. Events know doubles only: a value with an integer beyond 2^53 stands as a string that holds its JSON; a value
// of type string is never changed. See ReadValue. What cannot be kept as it is (an integer beyond 64 bits, another
// number beyond a double, half a surrogate pair, bytes that are no UTF-8, more than 1,000 levels) is an error that
// names it.
func KeptValue(raw json.RawMessage) (json.RawMessage, error) {
	kept, err := AppendCanonical(nil, raw)
	tooBig := errors.Is(err, errTooBig)
	switch {
	case err != nil && !tooBig:
		return nil, err
	case deeper(raw, maxDepth):
		return nil, fmt.Errorf("lists and maps in it are nested deeper than %d levels", maxDepth)
	case !tooBig:
		return kept, nil
	}
	if err := eachNumber(raw, keepable); err != nil {
		return nil, err
	}
	return json.Marshal(string(raw))
}

// maxDepth bounds the nesting of a value far below what jsontext reads: events and snapshots hold it deeper.
const maxDepth = 1000

// deeper reports whether a JSON text is nested deeper than a number of levels.
func deeper(src []byte, levels int) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(src))
	for d.StackDepth() <= levels {
		if _, err := d.ReadToken(); err != nil {
			return false
		}
	}
	return true
}

func keepable(text string) error {
	if !number.Whole(text) {
		return exact(text)
	}
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return fmt.Errorf("the integer %.40s does not fit 64 bits: write it as a string", text)
	}
	return nil
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
