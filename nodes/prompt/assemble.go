package prompt

import (
	"io"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
)

// Assemble fills in the template of a prompt block (#Prompt) for one attempt. It reads through
// t.File, t.Artifact and t.Entries, logs the estimate, and fails with category config (a
// placeholder without a value) or input_too_big (too long after all trimming).
func (s *Settings) Assemble(t *nodes.Task) (*Assembled, error) {
	a := &assembly{task: t, settings: s, out: &Assembled{}, slots: map[string]*slot{}}
	var err error
	if a.template, err = s.template(t.File); err != nil {
		return nil, err
	}
	if wrong := a.template.mistakes(s); len(wrong) > 0 {
		e := nodes.Fail("config", wrong[0])
		e.Diagnostics = strings.Join(wrong, "\n")
		return nil, nodes.Permanent(e)
	}
	if err := a.fillAll(); err != nil {
		return nil, err
	}
	if err := a.fit(); err != nil {
		return nil, err
	}
	a.render()
	a.out.Text = strings.Join(a.out.Blocks, "")
	return a.out, nil
}

func (a *assembly) fillAll() error {
	a.uses = a.template.uses()
	for _, p := range a.template.pieces {
		a.fixed += utf8.RuneCountInString(p.text)
	}
	for _, name := range a.settings.names() {
		if a.uses[name] == 0 {
			continue
		}
		s, err := a.fill(name, a.settings.Vars[name])
		if err != nil {
			return err
		}
		a.slots[name] = s
	}
	return nil
}

// render puts the values in. Values are not looked at again: a brace in a value is text. What is blank between two
// borders joins the block before it, or the first one.
func (a *assembly) render() {
	texts := make(map[string]string, len(a.slots))
	for name, s := range a.slots {
		texts[name] = s.String()
	}
	var b strings.Builder
	var reads []string
	end := func() {
		text, last := b.String(), len(a.out.Blocks)-1
		if last >= 0 && (blank(text) || blank(a.out.Blocks[last])) {
			a.out.Blocks[last] += text
			a.out.Reads[last] = append(a.out.Reads[last], reads...)
		} else {
			a.out.Blocks, a.out.Reads = append(a.out.Blocks, text), append(a.out.Reads, reads)
		}
		b.Reset()
		reads = nil
	}
	for _, p := range a.template.pieces {
		switch {
		case p.border:
			end()
		case p.name == "":
			b.WriteString(p.text)
		default:
			b.WriteString(texts[p.name])
			if written := a.settings.Vars[p.name].written(); written != "" {
				reads = append(reads, written)
			}
		}
	}
	end()
}

// Sketch is what Assemble would return as far as a plan can know it: a sign stands for what a run writes. Nil without a
// border, and where the template or a file cannot be read.
func (s *Settings) Sketch(open func(path string) (io.ReadCloser, error)) *Assembled {
	if t, err := s.template(open); err != nil || !t.bordered() {
		return nil
	}
	whole := *s
	whole.Limit = 0
	p, err := whole.Assemble(&nodes.Task{
		File:     open,
		Artifact: func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("?")), nil },
		Entries:  func(string) ([]nodes.Entry, error) { return []nodes.Entry{{Text: "?"}}, nil },
	})
	if err != nil {
		return nil
	}
	return p
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
