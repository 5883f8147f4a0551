package prompt

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
)

// A template is a text cut at its placeholders.
type template struct {
	name   string
	src    string // normalised
	pieces []piece
}

// A piece is text, a placeholder with its byte offset in src, or a border.
type piece struct {
	text   string
	name   string // of the variable; "" = text
	at     int
	border bool
}

// border is the placeholder that no variable may be named like: alone on its line it divides the prompt
// into blocks.
const border = "BORDER"

// braced finds everything that may be a placeholder or an escaped one.
var braced = regexp.MustCompile(`\{+([A-Z][A-Z0-9_]+)\}+`)

// parse cuts a template. Of the braces around a name, the pairs count: one pair is a placeholder,
// n pairs stand for n-1 as text; unpaired braces outside of them are text. So {"a":{NAME}} works.
func parse(name, src string) *template {
	t := &template{name: name, src: normal(src)}
	end := 0
	for _, m := range braced.FindAllStringSubmatchIndex(t.src, -1) {
		left, right := m[2]-m[0], m[1]-m[3]
		pairs := min(left, right)
		from, to := m[2]-pairs, m[3]+pairs
		switch {
		case pairs > 1:
			t.literal(t.src[end:from])
			t.literal(t.src[from+1 : to-1])
		case from > 0 && t.src[from-1] == '$':
			// ${NAME} is text of the template; Check says so when NAME is declared.
			t.literal(t.src[end:to])
		case t.src[m[2]:m[3]] == border && alone(t.src, from, to):
			start := strings.LastIndexByte(t.src[:from], '\n') + 1
			to = len(t.src) - len(strings.TrimPrefix(strings.TrimLeft(t.src[to:], " \t"), "\n"))
			t.literal(t.src[end:start])
			t.pieces = append(t.pieces, piece{border: true})
		default:
			t.literal(t.src[end:from])
			t.pieces = append(t.pieces, piece{name: t.src[m[2]:m[3]], at: from})
		}
		end = to
	}
	t.literal(t.src[end:])
	return t
}

// alone reports whether nothing but blanks stands beside src[from:to] on its line.
func alone(src string, from, to int) bool {
	before := src[strings.LastIndexByte(src[:from], '\n')+1 : from]
	after, _, _ := strings.Cut(src[to:], "\n")
	return strings.Trim(before+after, " \t") == ""
}

func (t *template) literal(s string) {
	if s != "" {
		t.pieces = append(t.pieces, piece{text: s})
	}
}

// place prints file:line:col of a byte offset; columns count characters.
func (t *template) place(at int) string {
	before := t.src[:at]
	line := strings.Count(before, "\n") + 1
	col := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("%s:%d:%d", t.name, line, col)
}

func (t *template) bordered() bool {
	return slices.ContainsFunc(t.pieces, func(p piece) bool { return p.border })
}

// uses counts how often each variable is used.
func (t *template) uses() map[string]int {
	n := map[string]int{}
	for _, p := range t.pieces {
		if p.name != "" {
			n[p.name]++
		}
	}
	return n
}

// mostTexts bounds how many mistakes of one template are listed, because finding a line is a
// walk over the text.
const mostTexts = 50

// mistakes returns one text for each placeholder that has no variable, and for each ${NAME}
// that looks like one that has.
func (t *template) mistakes(s *settings) []string {
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
func (t *template) doubts(s *settings) []string {
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

// Check reads the template at plan time: placeholders without a variable are problems, variables
// that are never used are warnings. open reads an input file relative to the specification.
func Check(
	with json.RawMessage, open func(path string) (io.ReadCloser, error),
) (problems []nodes.Problem, warnings []string) {
	s, err := decode(with)
	if err != nil {
		return []nodes.Problem{{Text: err.Error()}}, nil
	}
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

// normal drops a byte order mark and makes all line ends LF.
func normal(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
}
