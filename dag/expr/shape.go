package expr

import (
	"strconv"
	"strings"
)

// shape returns src with the ids in nodes['id'] replaced by '#0', '#1' ... and those ids.
// Expressions that differ in ids alone, such as those a foreach makes by the thousand, have one
// shape and are compiled once. An id cannot hold '#'.
func shape(src string) (string, []string) {
	if !strings.Contains(src, "nodes") || numbered(src) {
		return src, nil
	}
	var b strings.Builder
	var ids []string
	done := 0
	for i := 0; i < len(src); {
		switch c := src[i]; {
		case c == '"' || c == '\'':
			i = skipString(src, i)
		case c == '/' && strings.HasPrefix(src[i:], "//"):
			for i < len(src) && src[i] != '\n' {
				i++
			}
		case isWord(c):
			start := i
			for i < len(src) && isWord(src[i]) {
				i++
			}
			if src[start:i] != "nodes" || strings.HasSuffix(strings.TrimRight(src[:start], " \t\r\n"), ".") {
				continue // also r'...' and b'...': the quote comes next
			}
			if next := skipSpace(src, i); next < len(src) && src[next] == ',' {
				return src, nil // the variable of a loop: list.map(nodes, nodes['a'])
			}
			from, to := idLiteral(src, i)
			if from == 0 {
				continue
			}
			b.WriteString(src[done:from])
			b.WriteByte('#')
			b.WriteString(strconv.Itoa(len(ids)))
			ids = append(ids, src[from:to])
			done, i = to, to+1
		default:
			i++
		}
	}
	if ids == nil {
		return src, nil
	}
	b.WriteString(src[done:])
	return b.String(), ids
}

// numbered says whether an expression could make a text such as #0 itself: with '#', or escaped.
func numbered(src string) bool {
	escaped := strings.Contains(src, "23") || strings.Contains(src, "43") // \x23, \043
	return strings.Contains(src, "#") || strings.Contains(src, `\`) && escaped
}

// idLiteral returns the place of the text of a plain string literal in brackets at src[i:],
// or 0, 0.
func idLiteral(src string, i int) (from, to int) {
	i = skipSpace(src, i)
	if i >= len(src) || src[i] != '[' {
		return 0, 0
	}
	i = skipSpace(src, i+1)
	if i < len(src) && src[i] == '?' {
		i = skipSpace(src, i+1)
	}
	if i >= len(src) || src[i] != '\'' && src[i] != '"' {
		return 0, 0
	}
	n := strings.IndexByte(src[i+1:], src[i])
	if n <= 0 || strings.ContainsAny(src[i+1:i+1+n], "\\#\n'\"") {
		return 0, 0
	}
	to = i + 1 + n
	if end := skipSpace(src, to+1); end >= len(src) || src[end] != ']' {
		return 0, 0 // the literal is only part of the index
	}
	return i + 1, to
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the offset after the CEL string literal that starts at s[i], or len(s)
// when it has no end. Raw literals (r'...') keep backslashes as they are.
func skipString(s string, i int) int {
	raw := i > 0 && (s[i-1] == 'r' || s[i-1] == 'R') &&
		(i == 1 || !isWord(s[i-2]) || s[i-2] == 'b' || s[i-2] == 'B')
	quote := s[i : i+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s[i:], triple) {
		quote = triple
	}
	for i += len(quote); i < len(s); i++ {
		if s[i] == '\\' && !raw {
			i++
			continue
		}
		if strings.HasPrefix(s[i:], quote) {
			return i + len(quote)
		}
	}
	return len(s)
}
