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
	lines  []string // in order; what does not count is the empty line
	fenced bool     // the whole text was one code block, so it counts
}

var (
	htmlComment = regexp.MustCompile(`(?s)<!--.*?(?:-->|\z)`)
	thinking    = regexp.MustCompile(`(?is)^[ \t]*<(?:think|thinking|reasoning)>.*?</(?:think|thinking|reasoning)>`)
	struckOut   = regexp.MustCompile(`~~[^~\n]*~~|<(?:s|del|strike)>[^<\n]*</(?:s|del|strike)>`)
	htmlTag     = regexp.MustCompile(`</?(?:b|i|em|strong|span|code|u|mark|td|tr|th|p|br|li|ul|ol|div)(?:\s[^<>\n]*)?/?>`)
)

// read drops what does not count. A text that is one code block and nothing else counts.
func read(text string) *review {
	r := &review{}
	text = strings.TrimPrefix(text, "\ufeff")
	text = thinking.ReplaceAllString(text, "")
	lines, code := markdown.Lines(text), markdown.Code(text)
	r.fenced = oneBlock(text, lines, code)
	kept := make([]string, len(lines))
	for i, l := range lines {
		line := l.Of(text)
		_, fence := markdown.OpenFence(line)
		if code[i] && (!r.fenced || fence) || quoted(line) {
			line = ""
		}
		kept[i] = line
	}
	// Comments may hold whole lines: the number of lines does not matter, their order does.
	joined := htmlComment.ReplaceAllString(strings.Join(kept, "\n"), "")
	for _, line := range strings.Split(joined, "\n") {
		r.lines = append(r.lines, normal(line))
	}
	return r
}

// oneBlock reports whether nothing stands outside of one single code block.
func oneBlock(text string, lines []markdown.Line, code []bool) bool {
	blocks := 0
	for i, l := range lines {
		if !code[i] && markdown.TrimBlank(l.Of(text)) != "" {
			return false
		}
		if code[i] && (i == 0 || !code[i-1]) {
			blocks++
		}
	}
	return blocks == 1
}

// quoted reports whether a line quotes: behind >, or in one pair of backticks or quotation marks as a whole.
func quoted(line string) bool {
	s := markdown.TrimBlank(line)
	if strings.HasPrefix(s, ">") {
		return true
	}
	if item, ok := markdown.Item(s); ok {
		s = item
	}
	for _, pair := range []string{"``", `""`, "“”", "„“", "«»", "''"} {
		r := []rune(pair)
		open, end := string(r[0]), string(r[1])
		inner, ok := strings.CutPrefix(s, open)
		if inner2, ok2 := strings.CutSuffix(inner, end); ok && ok2 && inner2 != "" && !strings.Contains(inner2, open) {
			return true
		}
	}
	return false
}

// normal makes blanks, dashes in words and slashes plain, drops emphasis and what was struck out.
func normal(s string) string {
	s = struckOut.ReplaceAllString(s, " ")
	s = htmlTag.ReplaceAllString(s, " ")
	return strings.Map(func(r rune) rune {
		switch {
		case markdown.Invisible(r), r == '*', r == '`':
			return -1
		case unicode.IsSpace(r):
			return ' '
		case r == '\u2010' || r == '\u2011' || r == '\u2012' || r == '\ufe63' || r == '\uff0d':
			return '-'
		case r == '\u2044' || r == '\u2215' || r == '\uff0f':
			return '/'
		case r == '\uff1a':
			return ':'
		case r >= '\uff10' && r <= '\uff19':
			return r - '\uff10' + '0'
		}
		return r
	}, s)
}

// cells returns the cells of a table row, or the line as the only one; each without list signs,
// heading signs and signs in front.
func cells(line string) []string {
	s := strings.TrimSpace(line)
	if !strings.HasPrefix(s, "|") {
		return []string{bare(s)}
	}
	var out []string
	for _, c := range strings.Split(strings.Trim(s, "|"), "|") {
		out = append(out, bare(c))
	}
	return out
}

// bare drops what stands in front of a label.
func bare(s string) string {
	s = strings.TrimSpace(s)
	s = strings.TrimLeft(s, "# ")
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
func denies(r rune) bool { return strings.ContainsRune("❌✗✘✖🚫⛔👎", r) }

// A label is a name to look for at the start of a cell.
type label struct {
	text string
	re   *regexp.Regexp
}

func newLabel(text string) label {
	var b strings.Builder
	b.WriteString(`(?i)^`)
	for _, r := range strings.Join(strings.Fields(normal(text)), " ") {
		switch r {
		case ' ':
			b.WriteString(` +`)
		case '-':
			b.WriteString(`[-–—−]`)
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return label{text: text, re: regexp.MustCompile(b.String())}
}

// cut returns what stands behind the label when a cell begins with it as a whole: PA-05 is
// neither in PA-050 nor in PA-05.1 nor in PA-05-b.
func (l label) cut(cell string) (rest string, ok bool) {
	m := l.re.FindStringIndex(cell)
	if m == nil || m[1] == 0 {
		return "", false
	}
	rest = cell[m[1]:]
	trimmed := strings.TrimLeft(rest, ".-–‑_")
	if r, _ := utf8.DecodeRuneInString(rest); unicode.IsLetter(r) || unicode.IsDigit(r) {
		return "", false
	}
	if len(trimmed) < len(rest) && trimmed != "" {
		if c := trimmed[0]; c >= '0' && c <= '9' && rest[0] != '-' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || rest[0] == '-' && c >= '0' && c <= '9' {
			return "", false
		}
	}
	return rest, true
}
