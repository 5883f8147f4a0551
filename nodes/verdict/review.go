package verdict

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"dagrun.dev/nodes/internal/markdown"
)

// A review is a text as its counted lines: not code, not quoted, no comments, no thinking.
type review struct {
	raw    []string // as they stand there, in order; what does not count is the empty line
	plain  []string // in plain letters
	lines  []string // the same with the columns of tables
	notes  []note   // comments on lines with other text
	fenced bool     // the whole text was one code block, so it counts
	of     map[float64]bool
}

// maxima returns the maxima of all scores of a review, whatever they are of.
func (r *review) maxima() map[float64]bool {
	if r.of == nil {
		r.of = map[float64]bool{}
		for _, line := range r.lines {
			for _, m := range scoreRe.FindAllStringSubmatch(line, -1) {
				r.of[parse(m[2])] = true
			}
		}
	}
	return r.of
}

// read drops what does not count. A text that is one code block and nothing else counts.
func read(text string) *review {
	text = strings.TrimPrefix(text, "\ufeff")
	inner, fenced := oneBlock(text)
	if fenced {
		text = inner
	}
	r := reader{text: text, comments: strings.LastIndex(text, "-->")}
	var code []bool
	if !fenced {
		code = markdown.Code(text)
	}
	for i, l := range markdown.Lines(text) {
		line := ""
		if r.until != "" || code == nil || !code[i] {
			line = r.line(l)
		}
		r.lines = append(r.lines, line)
	}
	clear(r.lines[:r.thought])
	lines := make([]string, len(r.lines))
	for i, line := range r.lines {
		lines[i] = normal(line)
	}
	return &review{raw: r.lines, plain: lines, lines: withColumns(lines), notes: r.notes, fenced: fenced}
}

// oneBlock returns what stands in a text's only code block when nothing stands outside of it.
func oneBlock(text string) (inner string, ok bool) {
	lines, code := markdown.Lines(text), markdown.Code(text)
	first, last := -1, -1
	for i, l := range lines {
		if code[i] {
			if first < 0 {
				first = i
			}
			last = i
		} else if markdown.TrimBlank(l.Of(text)) != "" {
			return "", false
		}
	}
	if first < 0 {
		return "", false
	}
	fence, _ := markdown.OpenFence(lines[first].Of(text))
	for i := first + 1; i < last; i++ {
		if !code[i] || fence.Closes(lines[i].Of(text)) {
			return "", false // a second block
		}
	}
	end := len(text)
	if fence.Closes(lines[last].Of(text)) && last > first {
		end = lines[last].Start
	}
	return text[lines[first].Next:end], true
}

// A note is a comment and the line it stands on.
type note struct {
	line int
	text string
}

// A reader walks over the lines of a text.
type reader struct {
	text     string
	lines    []string
	notes    []note
	until    string // what ends the region the reader is in: a comment, thinking, a quote
	thought  int    // so many lines at the start were thinking
	comments int    // where the last comment ends; -1 = none does
}

// line returns what counts of a line.
func (r *reader) line(l markdown.Line) string {
	var kept strings.Builder
	begins := true // nothing but blanks was kept
	for at := l.Start; at < l.End; {
		s := r.text[at:l.End]
		if r.until != "" {
			n := markdown.IndexFold(s, r.until)
			if n < 0 {
				return kept.String()
			}
			at += n + len(r.until)
			r.until = ""
			continue
		}
		if begins {
			if n, ok := markdown.ThoughtEnd(s); ok {
				r.thought = len(r.lines)
				at += n
				continue
			}
			if r.until = region(s); r.until != "" {
				continue
			}
			if quoted(s) {
				return ""
			}
		}
		n := r.comment(s, at, begins)
		kept.WriteString(s[:n])
		begins = begins && markdown.TrimBlank(s[:n]) == ""
		if at += n; at < l.End {
			r.until = "-->"
			text, _, _ := strings.Cut(r.text[at+len("<!--"):l.End], "-->")
			r.notes = append(r.notes, note{len(r.lines), text})
		}
	}
	return kept.String()
}

// comment returns where a comment begins on a line, outside of `code`; len(s) when none does. One that is
// never closed is text, unless the line begins with it.
func (r *reader) comment(s string, at int, begins bool) int {
	for n := 0; ; {
		k := strings.IndexAny(s[n:], "<`")
		if k < 0 {
			return len(s)
		}
		n += k
		switch {
		case s[n] == '`':
			n = markdown.SkipCode(s, n)
		case strings.HasPrefix(s[n:], "<!--") && (r.comments >= at+n || begins && markdown.TrimBlank(s[:n]) == ""):
			return n
		default:
			n++
		}
	}
}

var quoting = regexp.MustCompile(`(?i)^<(blockquote|pre|xmp|textarea|script|style|code)(?:\s[^<>]*)?>`)

// region returns the end tag of the region that a line begins with: thinking, or an element whose text
// is not the reviewer's. <code> that ends on its line is emphasis.
func region(s string) (until string) {
	s = strings.TrimLeftFunc(s, markdown.Blank)
	if end, _, ok := markdown.Thought(s); ok {
		return end
	}
	m := quoting.FindStringSubmatch(s[:min(len(s), 400)])
	if m == nil {
		return ""
	}
	until = "</" + m[1] + ">"
	if strings.EqualFold(m[1], "code") && markdown.IndexFold(s, until) >= 0 {
		return ""
	}
	return until
}

// quoted reports whether a line quotes: behind >, or more than a word in one pair of backticks or quotation marks.
func quoted(line string) bool {
	s := markdown.TrimBlank(line)
	if strings.HasPrefix(s, ">") {
		return true
	}
	if item, ok := markdown.Item(s); ok {
		s = item
	}
	for _, pair := range []string{"``", `""`, "“”", "„“", "«»", "''", "‘’"} {
		r := []rune(pair)
		open, end := string(r[0]), string(r[1])
		inner, ok := strings.CutPrefix(s, open)
		inner, ok2 := strings.CutSuffix(inner, end)
		if ok && ok2 && strings.ContainsAny(inner, ": ") && !strings.Contains(inner, open) {
			return true
		}
	}
	return false
}

var (
	struckOut = regexp.MustCompile(`~~[^~\n]*~~|<(?:s|del|strike)>[^<\n]*</(?:s|del|strike)>`)
	htmlTag   = regexp.MustCompile(`(?i)</?(?:b|i|em|strong|span|code|u|mark|ins|small|big|sup|sub|font|a|h[1-6]|dl|dt|dd|table|thead|tbody|td|tr|th|p|br|hr|li|ul|ol|div|section)(?:\s[^<>\n]*)?/?>`)
	link      = regexp.MustCompile(`\[([^\[\]]*)\]\([^()\s]*\)`)
	opened    = regexp.MustCompile(`(^|[^\pL\pN_])_{1,3}([\pL\pN])`)
	closed    = regexp.MustCompile(`([\pL\pN.!?:)])_{1,3}($|[^\pL\pN_])`)
)

// longest is how much of a line is read: nobody's score or decision stands farther behind its label.
const longest = 10_000

// normal makes blanks, dashes in words, apostrophes and slashes plain, drops emphasis and what was struck out.
func normal(s string) string {
	if s == "" {
		return ""
	}
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "")
	}
	if strings.ContainsAny(s, "<~") {
		s = struckOut.ReplaceAllString(s, " ")
		s = htmlTag.ReplaceAllString(s, " ")
	}
	if strings.Contains(s, "](") {
		s = link.ReplaceAllString(s, "$1")
	}
	if strings.Contains(s, "_") {
		s = closed.ReplaceAllString(opened.ReplaceAllString(s, "$1$2"), "$1$2")
	}
	return strings.Map(plain, s)
}

func plain(r rune) rune {
	switch {
	case markdown.Invisible(r), r == '*', r == '`':
		return -1
	case unicode.IsSpace(r):
		return ' '
	case r >= '\uff10' && r <= '\uff19':
		return r - '\uff10' + '0'
	}
	switch r {
	case '\u2010', '\u2011', '\u2012', '\ufe63', '\uff0d':
		return '-'
	case '\u2044', '\u2215', '\uff0f':
		return '/'
	case '\uff1a':
		return ':'
	case '\u2019', '\u02bc':
		return '\''
	}
	return r
}

// cells returns the cells of a table row, or the line as the only one; each without list signs,
// heading signs and signs in front.
func cells(line string) []string {
	s := strings.TrimSpace(line)
	if !strings.HasPrefix(s, "|") {
		return []string{bare(s)}
	}
	out := split(s)
	for i := range out {
		out[i] = bare(out[i])
	}
	return out
}

// bare drops what stands in front of a label.
func bare(s string) string {
	s = strings.TrimLeft(strings.TrimSpace(s), "# ")
	if item, ok := markdown.Item(s); ok {
		s = item
	}
	for _, box := range []string{"[x]", "[X]", "[ ]"} {
		s = strings.TrimPrefix(s, box)
	}
	return strings.TrimSpace(strings.TrimLeftFunc(s, func(r rune) bool {
		return r == ' ' || r == '_' || r == '\ufe0f' || unicode.Is(unicode.So, r) && !denies(r)
	}))
}

// denies reports whether a sign says no.
func denies(r rune) bool { return strings.ContainsRune("❌✗✘✖🚫⛔👎🛑☐", r) }

// warns reports whether a sign leaves a doubt.
func warns(r rune) bool { return strings.ContainsRune("⚠🤷🚧⏳⏸", r) }

// A label is a name to look for at the start of a cell: in plain letters, with single blanks.
type label string

func newLabel(text string) label { return label(strings.Join(strings.Fields(normal(text)), " ")) }

// cut returns what stands behind the label when a cell begins with it as a whole: PA-05 is
// neither in PA-050 nor in PA-05.1, PA-05-b or PA-05/b.
func (l label) cut(cell string) (rest string, ok bool) {
	rest, ok = l.prefix(cell)
	if !ok {
		return "", false
	}
	if r, _ := utf8.DecodeRuneInString(rest); unicode.IsLetter(r) || unicode.IsDigit(r) {
		return "", false
	}
	if behind := strings.TrimLeft(rest, ".-–_/"); len(behind) < len(rest) && behind != "" {
		if c := behind[0]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return "", false
		}
	}
	return rest, true
}

// prefix is strings.CutPrefix without regard to case, kinds of dashes and the number of blanks, which may be
// hyphens or underlines: ship_decision.
func (l label) prefix(cell string) (rest string, ok bool) {
	for _, want := range l {
		r, n := utf8.DecodeRuneInString(cell)
		switch {
		case n == 0:
			return "", false
		case want == ' ':
			trimmed := strings.TrimLeft(cell, " -_")
			if len(trimmed) == len(cell) {
				return "", false
			}
			cell = trimmed
			continue
		case want == '-' && strings.ContainsRune("-–—−", r):
		case r != want && unicode.ToLower(r) != unicode.ToLower(want):
			return "", false
		}
		cell = cell[n:]
	}
	return cell, l != ""
}

// find looks for the label anywhere behind the start of a line.
func (l label) find(line string) (before, rest string, ok bool) {
	for i := 1; i < len(line); i++ {
		if c := line[i-1]; c >= utf8.RuneSelf || c != ' ' && c != ':' && c != '(' {
			continue
		}
		if rest, ok := l.cut(line[i:]); ok {
			return line[:i], rest, true
		}
	}
	return "", "", false
}
