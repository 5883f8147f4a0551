package extract

import (
	"regexp"
	"strings"
)

// A comment is one of a style sheet or a script.
type comment struct {
	text string
	last bool   // a closing brace, another comment or the end follows
	next string // what follows, up to a brace
}

// dotted is a body of dots.
var dotted = regexp.MustCompile(`^\{\s*(?:\.\.\.|…)\s*\}`)

// comments returns the comments of a style sheet or a script; what stands in strings is none.
func comments(src string, script bool) []comment {
	var out []comment
	var ends []int
	before := byte(0) // last byte that is no blank and in no comment: tells a division from a regular expression
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '"' || c == '\'' || c == '`' && script:
			i = stringEnd(src, i)
			before = c
		case strings.HasPrefix(src[i:], "/*"):
			end := strings.Index(src[i+2:], "*/")
			if end < 0 {
				end = len(src) - i - 2
			}
			out = append(out, comment{text: src[i+2 : i+2+end]})
			i = min(len(src), i+2+end+2)
			ends = append(ends, i)
		case c == '{' && dotted.MatchString(src[i:min(len(src), i+40)]): // { ... } says so, too
			out, ends = append(out, comment{text: "..."}), append(ends, i+1)
			before = c
			i++
		case script && strings.HasPrefix(src[i:], "//"):
			end := strings.IndexAny(src[i:], "\r\n")
			if end < 0 {
				end = len(src) - i
			}
			out = append(out, comment{text: src[i+2 : i+end]})
			i += end
			ends = append(ends, i)
		case script && c == '/' && strings.IndexByte("(,=:[!&|?{};+-*%~^<>\x00", before) >= 0:
			i = regexpEnd(src, i)
			before = '/'
		default:
			if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
				before = c
			}
			i++
		}
	}
	for n, end := range ends {
		rest := strings.TrimLeft(src[end:], " \t\r\n")
		out[n].next, _, _ = strings.Cut(rest[:min(len(rest), 200)], "{")
		out[n].last = rest == "" || rest[0] == '}' || rest[0] == ')' || strings.HasPrefix(rest, "/*") || strings.HasPrefix(rest, "//")
	}
	return out
}

// stringEnd returns the offset behind a string. A string in quotes ends at the line's end at the latest.
func stringEnd(src string, i int) int {
	quote := src[i]
	for i++; i < len(src); i++ {
		switch {
		case src[i] == '\\':
			i++
		case src[i] == quote:
			return i + 1
		case quote != '`' && src[i] == '\n':
			return i
		}
	}
	return len(src)
}

// regexpEnd returns the offset behind a regular expression, or behind the slash when its line
// does not end it.
func regexpEnd(src string, start int) int {
	const longest = 1000
	class := false
	for i := start + 1; i < min(len(src), start+longest); i++ {
		switch src[i] {
		case '\\':
			i++
		case '[':
			class = true
		case ']':
			class = false
		case '/':
			if !class {
				return i + 1
			}
		case '\n':
			return start + 1
		}
	}
	return start + 1
}
