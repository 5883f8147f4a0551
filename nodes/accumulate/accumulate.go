// Package accumulate is the kind of node that makes an entry of an accumulator.
//
// It does not append: the host does, with the cap and atomically. It is also a step of an
// agent's accept list.
package accumulate

import (
	_ "embed"
	"fmt"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

//go:embed schema.cue
var schema string

// Kind is the kind "accumulate", alone and as a step.
var Kind = accept.NewKind("accumulate", schema, func() accept.Settings {
	return &settings{MaxChars: 4000, Missing: "warn"}
})

// settings is #Accumulate.
type settings struct {
	accept.Alone
	Text     string                 `json:"text"`
	Into     string                 `json:"into"`
	Meta     map[string]accept.Text `json:"meta"`
	MaxChars int                    `json:"maxChars"`
	Missing  string                 `json:"missing"`
	Unique   bool                   `json:"unique"`
}

// Describe reads what the compiler must know.
func (x *settings) Describe(tr *nodes.Traits) {
	tr.Appends = []string{x.Into}
	if x.Unique {
		tr.Read(x.Into)
	}
}

// Apply adds one entry. A text that is not there, or nothing but blanks, makes none.
func (x *settings) Apply(s *accept.State) error {
	text, ok := s.Subject(x.Text)
	if !ok {
		return x.absent(s)
	}
	text = plain(text)
	if x.Unique {
		var err error
		if text, err = x.unseen(s, text); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	if n := utf8.RuneCountInString(text); n > x.MaxChars {
		text = shorten(text, x.MaxChars)
		s.Warn("%s: an entry of %d characters was cut to %d", x.Into, n, utf8.RuneCountInString(text))
	}
	e := nodes.Entry{Accumulator: x.Into, Text: text}
	for name, value := range x.Meta {
		if value == "" {
			continue
		}
		if e.Meta == nil {
			e.Meta = map[string]string{}
		}
		e.Meta[name] = string(value)
	}
	s.Entries = append(s.Entries, e)
	s.Note("decision", "append-entry", map[string]any{"accumulator": x.Into, "chars": utf8.RuneCountInString(text)})
	return nil
}

func (x *settings) absent(s *accept.State) error {
	text := fmt.Sprintf("%s: no entry: the answer has no %s", x.Into, x.Text)
	switch x.Missing {
	case "fail":
		return nodes.Fail("sections_missing", text)
	case "warn":
		s.Warn("%s", text)
	}
	s.Note("decision", "skip-entry", map[string]any{"accumulator": x.Into, "reason": text})
	return nil
}

// unseen leaves out the lines that earlier entries hold.
func (x *settings) unseen(s *accept.State, text string) (string, error) {
	if s.Earlier == nil {
		return text, nil
	}
	entries, err := s.Earlier(x.Into)
	if err != nil {
		return "", &nodes.Error{Category: "config", Message: "accumulator " + x.Into, Err: err}
	}
	seen := map[string]bool{}
	for _, e := range entries {
		for _, line := range strings.Split(e.Text, "\n") {
			seen[strings.TrimSpace(line)] = true
		}
	}
	var kept []string
	for _, line := range strings.Split(text, "\n") {
		if t := strings.TrimSpace(line); t == "" || !seen[t] {
			kept = append(kept, line)
		}
	}
	return plain(strings.Join(kept, "\n")), nil
}

// plain is a text with LF line ends, without what no document shows and without blanks at its ends.
func plain(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "").Replace(strings.ToValidUTF8(text, "\ufffd"))
	return strings.TrimFunc(text, markdown.Blank)
}

// shorten cuts a text to at most so many characters, at a line's end where one is near, and says so
// within them.
func shorten(text string, most int) string {
	const mark = "\n[…]"
	keep := most - utf8.RuneCountInString(mark)
	if keep <= 0 {
		return string([]rune(text)[:most])
	}
	kept := string([]rune(text)[:keep])
	if i := strings.LastIndexByte(kept, '\n'); i > len(kept)/2 {
		kept = kept[:i]
	}
	return strings.TrimRightFunc(kept, markdown.Blank) + mark
}
