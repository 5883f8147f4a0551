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
	case v.File != "", v.Artifact != "":
		text, err := v.From.Read(a.task)
		if errors.Is(err, fs.ErrNotExist) && v.Artifact != "" && v.Else != nil {
			return nil
		}
		if err != nil {
			return err
		}
		s.add(name, "", a.input(v.File+v.Artifact, text))
	case v.Files != nil:
		if v.Record != "" {
			files := map[string]any{v.Record: v.labels()}
			a.out.Notes = append(a.out.Notes, nodes.LogLine{Log: "node", Type: "files", Fields: files})
		}
		return a.files(s, v)
	case v.Order != "":
		of := a.settings.Vars[v.Order]
		for _, label := range of.labels() {
			s.add(label, "", label)
		}
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
