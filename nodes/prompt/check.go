package prompt

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"strings"

	"dagrun.dev/internal/rules"
	"dagrun.dev/nodes"
)

// CheckFiles reads the template at plan time: placeholders without a variable are problems, variables
// that are never used are warnings. open reads an input file relative to the specification.
func (s *Settings) CheckFiles(open func(path string) (io.ReadCloser, error)) (
	problems []nodes.Problem, warnings []string) {
	t, err := s.template(open)
	if err != nil {
		return []nodes.Problem{{Path: "file", Text: err.Error()}}, nil
	}
	path := "text"
	if s.File != "" {
		path = "file"
	}
	for _, text := range t.mistakes(s) {
		problems = append(problems, nodes.Problem{Path: path, Text: text})
	}
	return problems, t.doubts(s)
}

// mostTexts bounds how many mistakes of one template are listed, because finding a line is a
// walk over the text.
const mostTexts = 50

// mistakes returns one text for each placeholder that has no variable, and for each ${NAME}
// that looks like one that has.
func (t *template) mistakes(s *Settings) []string {
	var out []string
	for _, p := range t.pieces {
		switch _, ok := s.Vars[p.name]; {
		case p.name == "" || len(out) == mostTexts:
		case p.name == border:
			out = append(out, fmt.Sprintf("%s: {%s}: want it alone on its line, where it divides the prompt into blocks",
				t.place(p.at), border))
		case !ok:
			out = append(out, fmt.Sprintf("%s: {%s}: no such variable%s", t.place(p.at), p.name, didYouMean(p.name, s.names())))
		}
	}
	for _, m := range dollar.FindAllStringSubmatchIndex(t.src, -1) {
		name := t.src[m[2]:m[3]]
		if _, ok := s.Vars[name]; ok && len(out) < mostTexts {
			out = append(out, fmt.Sprintf("%s: ${%s} is not a placeholder; write {%s}, or ${{%s}} for this text",
				t.place(m[0]), name, name, name))
		}
	}
	return out
}

var (
	dollar   = regexp.MustCompile(`\$\{([A-Z][A-Z0-9_]+)\}`)
	lookLike = regexp.MustCompile(`\{[ \t]*([A-Za-z][A-Za-z0-9_]+)[ \t]*\}`)
)

// doubts returns variables that are never used and braces that look like placeholders.
func (t *template) doubts(s *Settings) []string {
	var out []string
	uses := t.uses()
	for _, name := range s.names() {
		if uses[name] == 0 {
			out = append(out, fmt.Sprintf("%s: variable %s is never used", t.name, name))
		}
	}
	for _, m := range lookLike.FindAllStringSubmatchIndex(t.src, -1) {
		name := strings.ToUpper(t.src[m[2]:m[3]])
		if _, ok := s.Vars[name]; ok && t.src[m[0]:m[1]] != "{"+name+"}" && len(out) < mostTexts {
			out = append(out, fmt.Sprintf("%s: %s stays as text; a placeholder is {%s}",
				t.place(m[0]), t.src[m[0]:m[1]], name))
		}
	}
	return out
}

func didYouMean(name string, known []string) string {
	if len(known) == 0 {
		return "; none is declared"
	}
	return cmp.Or(rules.DidYouMean(name, known), "; declared: "+strings.Join(known, ", "))
}
