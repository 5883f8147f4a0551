package dag

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// OutputType splits the declared type of an output: string, int, number, bool, list or map, and a "?" behind
// it where a node that has completed may have no such value.
func OutputType(declared string) (typ string, optional bool) { return strings.CutSuffix(declared, "?") }

// KeptValue returns a value as events keep it, in canonical form, so that who reads the log reads what the run has
// read. Events know doubles only: a value with an integer beyond 2^53 stands as a string that holds its JSON; a value
// of type string is never changed. See ReadValue. What cannot be kept as it is (an integer beyond 64 bits, another
// number beyond a double, half a surrogate pair, bytes that are no UTF-8) is an error that names it.
func KeptValue(raw json.RawMessage) (json.RawMessage, error) {
	kept, err := AppendCanonical(nil, raw)
	if !errors.Is(err, errTooBig) {
		return kept, err
	}
	if err := eachNumber(raw, keepable); err != nil {
		return nil, err
	}
	return json.Marshal(string(raw))
}

func keepable(number string) (err error) {
	if !isInteger(number) {
		if _, err = strconv.ParseFloat(number, 64); err != nil {
			err = outOfRange(number)
		}
	} else if _, err = strconv.ParseInt(number, 10, 64); err != nil {
		err = fmt.Errorf("the integer %.40s does not fit 64 bits: write it as a string", number)
	}
	return err
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
