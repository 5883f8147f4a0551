package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"dagrun.dev/internal/tree"
)

var parserError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

// findable is the size up to which the place of a syntax error is searched for; it takes a
// parse for each halving of the number of lines.
const findable = 1 << 18

// longestKey is YAML's own bound for a key without a question mark.
const longestKey = 1024

// syntax words an error of the parser and finds its place. The parser names the line where the
// enclosing block starts, or none; the mistake is in the last line of the shortest start of the file
// that has it.
func syntax(file tree.File, data []byte, err error) *tree.Diagnostic {
	m := parserError.FindStringSubmatch(err.Error())
	if m == nil {
		m = []string{"", "", err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	text := m[2]
	if strings.HasPrefix(text, "exceeded max depth") {
		return diagnostic(file, line, 0, "nested far too deep")
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	if len(data) <= findable {
		if n := shortest(lines, text); n > 0 {
			line = n
		}
	}
	d := diagnostic(file, line, 0, "%s", text)
	if line < 1 || line > len(lines) {
		return d
	}
	here := strings.TrimRight(string(lines[line-1]), "\r\n")
	d.Pos.Col = int32(indent(here)) + 1
	before := ""
	if line > 1 {
		before = strings.TrimRight(string(lines[line-2]), "\r\n")
	}
	explain(d, before, here)
	return d
}

// version is a directive that asks for YAML 1.2, before the line --- that ends all directives.
var version = regexp.MustCompile(`^(?:\x{FEFF})?` + // a byte order mark
	`(?:(?:%[^\r\n]*|[ \t]*(?:#[^\r\n]*)?)\r?\n)*?` + // other directives, and comments
	`%YAML[ \t]+1\.(2)[ \t]*(?:#[^\r\n]*)?\r?\n`)

// versioned returns data with a directive that the parser takes: it knows that of YAML 1.1 only, and
// plain values are read as YAML 1.2 does either way.
func versioned(data []byte) []byte {
	at := version.FindSubmatchIndex(data)
	if at == nil {
		return data
	}
	data = bytes.Clone(data)
	data[at[2]] = '1'
	return data
}

// explain puts the commonest mistakes in the words of who made them.
func explain(d *tree.Diagnostic, before, here string) {
	text := d.Text
	v, above := value(here), strings.TrimSpace(before)
	lead := here[:len(here)-len(strings.TrimLeft(here, " \t"))]
	switch {
	case strings.HasPrefix(text, "unknown anchor '"):
		name := strings.TrimPrefix(text, "unknown anchor '")
		name, _, _ = strings.Cut(name, "'")
		column(d, here, "*"+name)
	case strings.Contains(text, "found incompatible YAML document"):
		d.Text = "this version of YAML is not known; want %YAML 1.2, or no such line"
	case strings.HasPrefix(here, "%") && strings.Contains(text, "directive"):
		d.Text = "a line that starts with % is a directive, and YAML does not know this one here; leave it out"
	case strings.HasPrefix(before, "%") && !strings.HasPrefix(here, "%") && !strings.HasPrefix(here, "---"):
		d.Text = "after a directive (a line that starts with %) the line --- is wanted first"
	case strings.ContainsRune(lead, '\t'):
		column(d, here, "\t")
		d.Text = "tab used for indentation; YAML allows only spaces here"
	case strings.Contains(here, "{{"):
		d.Text += "; put text with {{ }} in quotes"
	case strings.Contains(text, "did not find expected <document start>"):
		d.Text = "text after the end of the document; a file holds one"
	case strings.Contains(text, "unexpected end of stream"):
		if column(d, here, `"`) || column(d, here, "'") {
			d.Text = "the quote that opens here is never closed"
		}
	case strings.Contains(text, "mapping values are not allowed"):
		d.Text = "a second ': ' in one value; put the text in quotes"
		if len(here) > longestKey && strings.Index(here, ": ") > longestKey {
			d.Text = fmt.Sprintf("a key of more than %d characters, which YAML does not allow", longestKey)
		} else if indent(here) > indent(before) && above != "" && !strings.HasSuffix(above, ":") {
			d.Text = "indented deeper than the line above, which has a value already"
		} else if indent(here) == indent(before) && above != "" && !strings.Contains(above+" ", ": ") {
			d.Pos.Line--
			d.Text = "want key: value here, with a space behind the ':'"
		} else {
			column(d, here, v[max(0, strings.Index(v, ": ")):])
		}
	case strings.Contains(text, "did not find expected ',' or"):
		d.Text = "a bracket of this line is never closed, a ',' is missing, or a text with ': ' or '?' in it is not in quotes"
		if column(d, here, "${") {
			d.Text = "put text with ${ } in quotes"
		}
	case strings.Contains(text, "did not find expected node content"):
		d.Text = "a value is missing, or a bracket is never closed"
	case strings.Contains(text, "did not find expected key") && indent(here) < indent(before):
		d.Text = "indented like no line above it"
	case strings.IndexAny(v, `"'`) == 0:
		column(d, here, v)
		d.Text = "the text goes on behind its closing quote; use the other quotes around all of it, or a block (|)"
	case strings.Contains(text, "cannot start any token") && noToken.MatchString(here):
		at := noToken.FindStringIndex(here)
		column(d, here, here[at[1]-1:])
		d.Text = "a text that starts with " + here[at[1]-1:at[1]] + " wants quotes around all of it"
	case strings.IndexAny(v, "[]{}*&!|>%@`-") == 0:
		column(d, here, v)
		d.Text = "a text that starts with " + v[:1] + " wants quotes around all of it"
	}
}

// noToken finds what nothing can start with that has no quotes.
var noToken = regexp.MustCompile("[ ,\\[{][@`]")

// value is what stands in a line behind its first key, or behind the dash of an item.
func value(line string) string {
	line = strings.TrimLeft(line, " -")
	if _, v, ok := strings.Cut(line, ": "); ok {
		return strings.TrimSpace(v)
	}
	return line
}

// column moves d to where what stands in its line.
func column(d *tree.Diagnostic, here, what string) bool {
	i := strings.Index(here, what)
	if i >= 0 {
		d.Pos.Col = int32(utf8.RuneCountInString(here[:i])) + 1
	}
	return i >= 0
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// shortest returns how many lines it takes to get the error with this text, or 0. A start of a
// file that ends inside quotes or brackets has an error of its own, with another text.
func shortest(lines [][]byte, text string) int {
	lo, hi := 0, len(lines) // the error is not in lines[:lo] and is in lines[:hi]
	if !hasError(lines[:hi], text) {
		return 0
	}
	for lo+1 < hi {
		mid := (lo + hi) / 2
		if hasError(lines[:mid], text) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

func hasError(lines [][]byte, text string) bool {
	dec := yaml.NewDecoder(bytes.NewReader(bytes.Join(lines, nil)))
	for {
		var n yaml.Node
		err := decode(dec, &n)
		if err != nil {
			return !errors.Is(err, io.EOF) && strings.HasSuffix(err.Error(), text)
		}
	}
}
