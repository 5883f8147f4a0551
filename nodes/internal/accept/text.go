package accept

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Text is a text of the settings. A string that was one ${...} takes the type of its
// expression, so numbers, booleans and lists are read too: scalars as JSON writes them, null as "",
// lists of scalars one a line, everything else as indented JSON.
type Text string

// UnmarshalJSON reads any JSON value.
func (t *Text) UnmarshalJSON(b []byte) error {
	s, err := plain(b)
	*t = Text(s)
	return err
}

func plain(b []byte) (string, error) {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || string(b) == "null":
		return "", nil
	case b[0] == '"':
		var s string
		err := json.Unmarshal(b, &s)
		return s, err
	case b[0] == '[':
		var items []json.RawMessage
		if err := json.Unmarshal(b, &items); err != nil {
			return "", err
		}
		return list(b, items)
	case b[0] == '{':
		return indented(b)
	}
	return string(b), nil
}

func list(b []byte, items []json.RawMessage) (string, error) {
	lines := make([]string, len(items))
	for i, item := range items {
		if c := bytes.TrimSpace(item); len(c) > 0 && (c[0] == '[' || c[0] == '{') {
			return indented(b)
		}
		line, err := plain(item)
		if err != nil {
			return "", err
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n"), nil
}

func indented(b []byte) (string, error) {
	var out bytes.Buffer
	err := json.Indent(&out, b, "", "  ")
	return out.String(), err
}

// Clip is the beginning of a text for a message: at most so many characters, on one line.
func Clip(most int, text string) string {
	const widest = utf8.UTFMax
	cut := len(text) > widest*most
	if cut {
		text = strings.ToValidUTF8(text[:widest*most], "")
	}
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > most {
		cut = true
		r = r[:most]
	}
	if cut {
		r = append(r, '…')
	}
	return string(r)
}

// Quote is Clip in quotation marks, short.
func Quote(text string) string { return "“" + Clip(80, text) + "”" }
