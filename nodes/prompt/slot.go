package prompt

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

const (
	defaultHeading = "## [{INDEX}/{COUNT}] {LABEL}{MARK}"
	defaultJoin    = "\n\n"
	defaultArrow   = " → "
)

// A slot is the value of one variable, in parts that trimming may shorten.
type slot struct {
	parts               []part
	join, before, after string
	empty               string // shown when the parts hold nothing
}

// A part is a text, an entry or a file with its heading.
type part struct {
	label string // for records
	head  string // heading and the line ends behind it
	text  string
	runes int // of both: trimming measures often
}

func newPart(label, head, text string) part {
	return part{label, head, text, utf8.RuneCountInString(head) + utf8.RuneCountInString(text)}
}

func (s *slot) add(label, head, text string) { s.parts = append(s.parts, newPart(label, head, text)) }

// replace gives a part another text.
func (s *slot) replace(i int, text string) {
	s.parts[i] = newPart(s.parts[i].label, s.parts[i].head, text)
}

// dropFirst drops the oldest part.
func (s *slot) dropFirst() (label string) {
	label = s.parts[0].label
	s.parts = s.parts[1:]
	return label
}

// void leaves nothing of the slot, surroundings included.
func (s *slot) void() { *s = slot{} }

// held is the number of characters of the parts.
func (s *slot) held() (n int) {
	for _, p := range s.parts {
		n += p.runes
	}
	return n
}

// chars is the number of characters of String, without building it.
func (s *slot) chars() int {
	n := s.held()
	if n == 0 {
		return utf8.RuneCountInString(s.empty)
	}
	return n + utf8.RuneCountInString(s.join)*(len(s.parts)-1) + utf8.RuneCountInString(s.before+s.after)
}

func (s *slot) String() string {
	if s.held() == 0 {
		return s.empty
	}
	var b strings.Builder
	b.WriteString(s.before)
	for i, p := range s.parts {
		if i > 0 {
			b.WriteString(s.join)
		}
		b.WriteString(p.head + p.text)
	}
	b.WriteString(s.after)
	return b.String()
}

// fill reads the value of a variable.
func (a *assembly) fill(name string, v variable) (*slot, error) {
	s := &slot{before: normal(string(v.Before)), after: normal(string(v.After)), join: defaultJoin}
	if v.Order != "" {
		s.join = defaultArrow
	}
	if v.Join != nil {
		s.join = *v.Join
	}
	if v.Else != nil {
		s.empty = normal(string(*v.Else))
	}
	if err := a.read(s, name, v); err != nil {
		return nil, about("variable "+name, err)
	}
	return s, nil
}

// read adds the parts of a variable from its source.
func (a *assembly) read(s *slot, name string, v variable) error {
	switch {
	case v.Text != nil:
		s.add(name, "", normal(string(*v.Text)))
	case v.File != "":
		text, err := accept.ReadText(a.task.File, "file", v.File)
		if err != nil {
			return err
		}
		s.add(name, "", a.input(v.File, text))
	case v.Files != nil:
		return a.files(s, v)
	case v.Order != "":
		of := a.settings.Vars[v.Order]
		for _, label := range of.labels() {
			s.add(label, "", label)
		}
	case v.Artifact != "":
		text, err := accept.ReadText(a.task.Artifact, "artifact", v.Artifact)
		if errors.Is(err, fs.ErrNotExist) && v.Else != nil {
			return nil
		}
		if err != nil {
			return err
		}
		s.add(v.Artifact, "", a.input(v.Artifact, text))
	case v.Accumulator != "":
		entries, err := a.task.Entries(v.Accumulator)
		if err != nil {
			return &nodes.Error{Category: "config", Message: "accumulator " + v.Accumulator, Err: err}
		}
		for _, i := range v.chosen(len(entries)) {
			s.add(entries[i].Heading(), "", normal(entries[i].String()))
		}
	default:
		return nodes.Fail("config", "prompt: variable "+name+" has no source")
	}
	return nil
}

// about puts what a failure is about in front of its message and keeps its category.
func about(what string, err error) error {
	var e *nodes.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", what, err)
	}
	copied := *e
	copied.Message = what + ": " + e.Message
	return &copied
}

func (a *assembly) files(s *slot, v variable) error {
	heading := defaultHeading
	if v.Heading != nil {
		heading = *v.Heading
	}
	chosen := v.chosen(len(*v.Files))
	for i, at := range chosen {
		f := (*v.Files)[at]
		text, err := accept.ReadText(a.task.File, "file", f.Path)
		if err != nil {
			return err
		}
		mark := ""
		if i == 0 {
			mark += v.FirstMark
		}
		if i == len(chosen)-1 {
			mark += v.LastMark
		}
		head := strings.NewReplacer("{INDEX}", fmt.Sprint(i+1), "{COUNT}", fmt.Sprint(len(chosen)),
			"{LABEL}", f.Label, "{MARK}", mark).Replace(heading)
		if head != "" {
			head += "\n\n"
		}
		s.add(f.Label, head, strings.TrimRight(a.input(f.Path, text), "\n"))
	}
	return nil
}

// input makes text of the content of a file or an artifact.
func (a *assembly) input(name, text string) string {
	if !utf8.ValidString(text) {
		a.out.Warnings = append(a.out.Warnings, name+" is not UTF-8 text; what is not became U+FFFD")
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	return normal(text)
}
