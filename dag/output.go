package dag

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// OutputType splits the declared type of an output: string, int, number, bool, list or map, and a "?" behind
// it where a node that has completed may have no such value.
func OutputType(declared string) (typ string, optional bool) { return strings.CutSuffix(declared, "?") }

// KeptValue returns a value as events keep it, in canonical form, so that who reads the log reads what the run has
// read. Events know doubles only: a value with an integer beyond 2^53 stands as a string that holds its JSON; a value
// of type string is never changed. See ReadValue. What cannot be kept as it is (an integer beyond 64 bits, another
// number beyond a double, half a surrogate pair, bytes that are no UTF-8) is an error that names it.
func KeptValue(raw json.RawMessage) (json.RawMessage, error) {
	if err := wholeText(raw); err != nil {
		return nil, err
	}
	kept, err := AppendCanonical(nil, raw)
	if !errors.Is(err, errTooBig) {
		return kept, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n, ok := token.(json.Number); ok {
			if err := keepable(string(n)); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(string(raw))
}

func keepable(number string) (err error) {
	if strings.ContainsAny(number, ".eE") {
		if _, err = strconv.ParseFloat(number, 64); err != nil {
			err = fmt.Errorf("number %.40s is out of range", number)
		}
	} else if _, err = strconv.ParseInt(number, 10, 64); err != nil {
		err = fmt.Errorf("the integer %.40s does not fit 64 bits: write it as a string", number)
	}
	return err
}

// wholeText refuses text that is no Unicode: decoding it would put a replacement in its place without a word.
func wholeText(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("it holds bytes that are no UTF-8")
	}
	escape := func(at int) rune {
		if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(raw[at+2:at+6]), 16, 32)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		switch r := escape(i); {
		case !utf16.IsSurrogate(r):
			i++ // an escaped backslash begins no escape
		case utf16.DecodeRune(r, escape(i+6)) == utf8.RuneError:
			return fmt.Errorf("%s is half of a surrogate pair", raw[i:i+6])
		default:
			i += 11
		}
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
