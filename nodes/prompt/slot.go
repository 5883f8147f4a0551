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
	parts  []part
	join   string
	before string
	after  string
	empty  string // shown when there are no parts
	runes  int    // of the parts, without joins
}

// A part is a text, an entry or a file with its heading.
type part struct {
	label string // for records
	head  string // heading and the line ends behind it
	text  string
	runes int
}

func (s *slot) add(label, head, text string) {
	p := part{label: label, head: head, text: text, runes: utf8.RuneCountInString(head) + utf8.RuneCountInString(text)}
	s.parts = append(s.parts, p)
	s.runes += p.runes
}

// replace gives a part another text.
func (s *slot) replace(i int, text string) {
	p := &s.parts[i]
	s.runes -= p.runes
	p.text = text
	p.runes = utf8.RuneCountInString(p.head) + utf8.RuneCountInString(text)
	s.runes += p.runes
}

// dropFirst drops the oldest part.
func (s *slot) dropFirst() (label string) {
	label = s.parts[0].label
	s.runes -= s.parts[0].runes
	s.parts = s.parts[1:]
	return label
}

// void leaves nothing of the slot, surroundings included.
func (s *slot) void() { *s = slot{} }

// chars is the number of characters of String, without building it.
func (s *slot) chars() int {
	if s.runes == 0 {
		return utf8.RuneCountInString(s.empty)
	}
	return s.runes + utf8.RuneCountInString(s.join)*(len(s.parts)-1) +
		utf8.RuneCountInString(s.before) + utf8.RuneCountInString(s.after)
}

func (s *slot) String() string {
	if s.runes == 0 {
		return s.empty
	}
	var b strings.Builder
	b.WriteString(s.before)
	for i, p := range s.parts {
		if i > 0 {
			b.WriteString(s.join)
		}
		b.WriteString(p.head)
		b.WriteString(p.text)
	}
	b.WriteString(s.after)
	return b.String()
}

// fill reads the value of a variable.
func (a *assembly) fill(name string, v variable) (*slot, error) {
	s := &slot{before: normal(string(v.Before)), after: normal(string(v.After)), join: defaultJoin}
	if v.Join != nil {
		s.join = *v.Join
	}
	if v.Else != nil {
		s.empty = normal(string(*v.Else))
	}
	var err error
	switch {
	case v.Text != nil:
		s.add(name, "", normal(string(*v.Text)))
	case v.File != "":
		err = a.file(s, v.File)
	case v.Files != nil:
		err = a.files(s, v)
	case v.Order != "":
		of := a.settings.Vars[v.Order]
		a.order(s, v, of.labels())
	case v.Artifact != "":
		err = a.artifact(s, v)
	case v.Accumulator != "":
		err = a.entries(s, v)
	default:
		err = nodes.Fail("config", "prompt: variable "+name+" has no source")
	}
	if err != nil {
		return nil, about("variable "+name, err)
	}
	return s, nil
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

func (a *assembly) file(s *slot, name string) error {
	text, err := accept.ReadText(a.task.File, "file", name)
	if err != nil {
		return err
	}
	s.add(name, "", a.input(name, text))
	return nil
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

func (a *assembly) order(s *slot, v variable, labels []string) {
	if v.Join == nil {
		s.join = defaultArrow
	}
	for _, label := range labels {
		s.add(label, "", label)
	}
}

func (a *assembly) artifact(s *slot, v variable) error {
	text, err := accept.ReadText(a.task.Artifact, "artifact", v.Artifact)
	if errors.Is(err, fs.ErrNotExist) && v.Else != nil {
		return nil
	}
	if err != nil {
		return err
	}
	s.add(v.Artifact, "", a.input(v.Artifact, text))
	return nil
}

func (a *assembly) entries(s *slot, v variable) error {
	entries, err := a.task.Entries(v.Accumulator)
	if err != nil {
		return &nodes.Error{Category: "config", Message: "accumulator " + v.Accumulator, Err: err}
	}
	for _, i := range v.chosen(len(entries)) {
		s.add(entries[i].Heading(), "", normal(entries[i].String()))
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
