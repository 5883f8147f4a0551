package markdown

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"golang.org/x/net/html"
)

// A Doc is a Markdown text as the lines that its author says: what stands in code blocks, quotes and
// comments, and what is struck out, is none of them.
type Doc struct {
	Text     string // with LF line ends
	Rows     []Row
	elements []element
}

// A Row is a line of text, a heading or a row of a table.
type Row struct {
	At    int // where its line begins in Doc.Text
	Level int // 1 to 6: a heading; 7: a line that is bold as a whole
	Item  int // depth of the list that an item begins of here; 0: none
	// Wrapped: the line before goes on here, in the same paragraph.
	Wrapped bool
	// Cells are the texts between | signs, without emphasis, its tags included; `code` keeps its signs, a comment is
	// "<!---->".
	Cells []string
}

// Quoted reports that a text is one code block and nothing else, as answers are whose author was asked for a form.
func (d *Doc) Quoted() (inner *Doc, ok bool) {
	root := parser.Parse(text.NewReader([]byte(d.Text)))
	block, ok := root.FirstChild().(*ast.FencedCodeBlock)
	if !ok || root.ChildCount() != 1 {
		return nil, false
	}
	return Parse(string(block.Lines().Value([]byte(d.Text)))), true
}

var parser = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough)).Parser()

// deep is the start of a line that stands deeper in quotes and lists than anybody writes: the parser needs the square
// of the depth, and more.
var deep = regexp.MustCompile(`(?m)^(?:[ \t]*(?:>|[-+*]|[0-9]{1,9}[.)])){20}.*$`)

// Parse reads a text. Lines that stand deeper than 20 quotes or lists are left out.
func Parse(src string) *Doc {
	lines := deep.ReplaceAllString(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src), "")
	d := &Doc{Text: opened(lines)}
	b := []byte(d.Text)
	w := writer{doc: d, src: b}
	_ = ast.Walk(parser.Parse(text.NewReader(b)), w.block)
	d.elements = elements(w.tags)
	return d
}

// opened returns a text that stands in one element of its author's own, such as <answer>, with blank lines within the
// tags: without them Markdown takes for HTML what follows the first one.
func opened(text string) string {
	m := enclosed.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	name := strings.ToLower(m[2])
	inner := strings.ToLower(m[3])
	if !(element{name: name}).own() || name != strings.ToLower(m[5]) || strings.Contains(inner, "</"+name) {
		return text
	}
	return m[1] + "\n\n" + m[3] + "\n\n" + m[4]
}

var enclosed = regexp.MustCompile(`(?s)^(\s*<([A-Za-z][\w.-]*)[^<>]*>)(.*)(</([A-Za-z][\w.-]*)>\s*)$`)

// emphasis are the tags that only dress a text.
var emphasis = regexp.MustCompile(`(?i)^</?(?:b|strong|em|i|u|mark|code|span|font|br)\s*/?>$`)

// reference is a character that is written as a reference: &nbsp;, &#47;.
var reference = regexp.MustCompile(`&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);`)

// A writer turns blocks into rows.
type writer struct {
	doc   *Doc
	src   []byte
	tags  []tag
	level int  // of the heading that is read
	item  int  // depth of the list item that begins
	depth int  // of lists
	start int  // of the source line that is read; -1: not known yet
	soft  bool // the line before goes on
	plain bool // something that is not bold stands on it
	bold  bool // something bold does
	line  strings.Builder
}

func (w *writer) block(n ast.Node, entering bool) (ast.WalkStatus, error) {
	switch n := n.(type) {
	case *ast.Blockquote, *ast.FencedCodeBlock, *ast.CodeBlock:
		return ast.WalkSkipChildren, nil
	case *ast.HTMLBlock:
		if lines := n.Lines(); entering && lines.Len() > 0 {
			w.tags = append(w.tags, tags(lines.At(0).Start, lines.Value(w.src))...)
		}
		return ast.WalkSkipChildren, nil
	case *ast.List:
		w.depth += map[bool]int{true: 1, false: -1}[entering]
	case *ast.ListItem:
		w.item = map[bool]int{true: w.depth, false: 0}[entering]
	case *ast.Heading, *ast.Paragraph, *ast.TextBlock, *east.TableHeader, *east.TableRow:
		if !entering {
			return ast.WalkContinue, nil
		}
		w.start, w.level, w.soft = -1, 0, false
		if h, ok := n.(*ast.Heading); ok {
			w.level = h.Level
		}
		w.inline(n, false)
		w.end()
		return ast.WalkSkipChildren, nil
	}
	return ast.WalkContinue, nil
}

// inline writes the text within a node.
func (w *writer) inline(n ast.Node, bold bool) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			w.text(c.Segment, c.Segment.Value(w.src), bold)
			if c.SoftLineBreak() || c.HardLineBreak() {
				w.end()
				w.soft = true
			}
		case *ast.CodeSpan:
			w.line.WriteByte('`')
			for t := c.FirstChild(); t != nil; t = t.NextSibling() {
				if t, ok := t.(*ast.Text); ok {
					w.line.WriteString(strings.ReplaceAll(string(t.Value(w.src)), "|", "/"))
				}
			}
			w.line.WriteByte('`')
			w.bold, w.plain = w.bold || bold, w.plain || !bold
		case *ast.RawHTML:
			tag := c.Segments.Value(w.src)
			w.tags = append(w.tags, tags(c.Segments.At(0).Start, tag)...)
			switch {
			case bytes.HasPrefix(tag, []byte("<!--")):
				w.line.WriteString("<!---->")
			case !emphasis.Match(tag): // it may strike out what follows
				w.line.WriteString(strings.ReplaceAll(string(tag), "|", "/"))
			}
		case *ast.Emphasis:
			w.inline(c, bold || c.Level == 2)
		case *ast.Link:
			w.inline(c, bold)
		case *east.TableCell:
			w.line.WriteByte('|')
			w.inline(c, bold)
		}
	}
}

func (w *writer) text(s text.Segment, source []byte, bold bool) {
	if w.start < 0 {
		w.start = bytes.LastIndexByte(w.src[:s.Start], '\n') + 1
	}
	words := string(util.UnescapePunctuations(source))
	words = reference.ReplaceAllStringFunc(words, func(s string) string {
		return strings.NewReplacer("|", "/", "`", "'").Replace(html.UnescapeString(s)) // &#124; divides no cells
	})
	w.line.WriteString(words)
	if strings.Trim(words, ":. ") != "" {
		w.bold, w.plain = w.bold || bold, w.plain || !bold
	}
}

// end ends a row.
func (w *writer) end() {
	if w.start >= 0 {
		r := Row{At: w.start, Level: w.level, Item: w.item, Wrapped: w.soft}
		for _, cell := range strings.Split(strings.Trim(w.line.String(), "| \t"), "|") {
			r.Cells = append(r.Cells, strings.TrimSpace(cell))
		}
		if r.Level == 0 && w.bold && !w.plain && w.item == 0 && len(r.Cells) == 1 {
			r.Level = 7
		}
		w.doc.Rows = append(w.doc.Rows, r)
	}
	w.line.Reset()
	w.start, w.item, w.soft, w.bold, w.plain = -1, 0, false, false, false
}

// Outside returns the rows that stand in no element of HTML, dress aside. Where all rows stand in one whose name is
// none of HTML's, such as <answer>, that is how the author was asked to answer: whole is its name.
func (d *Doc) Outside() (rows []Row, whole string) {
	if rows = d.outside(d.elements); len(rows) > 0 || len(d.Rows) == 0 {
		return rows, ""
	}
	first, last := d.Rows[0].At, d.Rows[len(d.Rows)-1].At
	all := slices.IndexFunc(d.elements, func(e element) bool { return e.own() && e.holds(first) && e.holds(last) })
	if all < 0 {
		return nil, ""
	}
	return d.outside(slices.Delete(slices.Clone(d.elements), all, all+1)), d.elements[all].name
}

func (d *Doc) outside(list []element) (rows []Row) {
	list = outermost(list)
	for _, r := range d.Rows {
		for len(list) > 0 && list[0].to <= r.At {
			list = list[1:]
		}
		if len(list) == 0 || !list[0].holds(r.At) {
			rows = append(rows, r)
		}
	}
	return rows
}

// Section returns the text below a heading up to the next one of its level or above. Of several that have the heading
// the last one with any text counts: an answer may repeat its outline first.
func (d *Doc) Section(heading string) (body string, ok bool) {
	for i, r := range d.Rows {
		if rest, at := r.After(heading); r.Level == 0 || at != 0 || !setOff(rest[0]) {
			continue
		}
		from, to := d.behind(r), len(d.Text)
		for _, next := range d.Rows[i+1:] {
			if next.Level > 0 && next.Level <= r.Level {
				to = max(from, next.At)
				break
			}
		}
		if text := d.Text[from:to]; TrimBlank(text) != "" {
			body, ok = text, true
		}
	}
	return body, ok
}

// setOff reports whether what stands behind the words of a heading is set off from them: "(3)" and ": missing" are,
// "minded" is not.
func setOff(rest string) bool {
	for _, r := range rest {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\''
	}
	return true
}

// behind returns where the line behind a heading begins, and behind the line that may be drawn below it.
func (d *Doc) behind(r Row) int {
	at := d.next(r.At)
	if under := strings.TrimSpace(d.Text[at:d.next(at)]); r.Level <= 2 && under != "" && strings.Trim(under, "=") == "" {
		at = d.next(at)
	}
	return at
}

func (d *Doc) next(at int) int {
	if n := strings.IndexByte(d.Text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(d.Text)
}

// After looks for the cell that begins with a label, as a whole word and without regard to case, and returns what
// stands behind it in its cell and the cells behind that; at is the cell's number, -1 when there is none. The label may
// be `code`.
func (r Row) After(label string) (rest []string, at int) {
	label = Fold(label)
	for i, cell := range r.Cells {
		text := trimNumber(strings.TrimLeft(Fold(cell), "•· "))
		behind, ok := strings.CutPrefix(text, "`"+label+"`")
		if !ok {
			behind, ok = strings.CutPrefix(text, label)
		}
		if ok && label != "" && !joined(behind) {
			rest = []string{strings.TrimSpace(behind)}
			for _, c := range r.Cells[i+1:] {
				rest = append(rest, Fold(c))
			}
			return rest, i
		}
	}
	return nil, -1
}

// trimNumber cuts the number off a heading, "3. " or "3) ".
func trimNumber(s string) string {
	digits := len(s) - len(strings.TrimLeft(s, "0123456789"))
	if rest := s[digits:]; digits > 0 && len(rest) > 1 && (rest[0] == '.' || rest[0] == ')') && rest[1] == ' ' {
		return rest[2:]
	}
	return s
}

// joined reports whether a word goes on: "PA-05" in "PA-05b", "PA-05.1" and "PA-05-b".
func joined(behind string) bool {
	r := []rune(behind[:min(len(behind), 8)])
	letter := func(i int) bool { return i < len(r) && (unicode.IsLetter(r[i]) || unicode.IsDigit(r[i])) }
	return letter(0) || len(r) > 0 && strings.ContainsRune("-._", r[0]) && letter(1)
}

// Fold returns a text in lower case with single blanks and plain hyphens, without invisible characters.
func Fold(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case Invisible(r):
			return -1
		case Blank(r):
			return ' '
		case unicode.Is(unicode.Pd, r) || r == '\u2212':
			return '-'
		case r == '：':
			return ':'
		}
		return unicode.ToLower(r)
	}, s)
	return strings.Join(strings.Fields(s), " ")
}
