package prompt

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
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

// normal drops a byte order mark and makes all line ends LF.
func normal(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
}
