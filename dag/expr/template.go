package expr

import (
	"fmt"
	"strings"
)

// A Piece is a stretch of a template: literal text, or the source of an expression.
type Piece struct {
	Text   string // literal text, $${ already turned into ${
	Source string // of ${Source}; empty for text
}

// Split cuts a template into its pieces: literal text and ${...} in turn. In literal text
// $${ stands for ${. A string without ${ is one piece of text (or none when it is empty).
// An expression may hold braces and string literals; an error says what is wrong and how to
// write a literal ${.
func Split(s string) ([]Piece, error) {
	if !strings.Contains(s, "${") {
		if s == "" {
			return nil, nil
		}
		return []Piece{{Text: s}}, nil
	}
	var out []Piece
	var text strings.Builder
	for i := 0; i < len(s); {
		switch {
		case strings.HasPrefix(s[i:], "$${"):
			text.WriteString("${")
			i += 3
		case strings.HasPrefix(s[i:], "${"):
			end := closing(s, i+2)
			if end < 0 {
				return nil, fmt.Errorf("%s has no closing brace; write $${ for a literal ${", quoteShort(s[i:]))
			}
			src := strings.TrimSpace(s[i+2 : end])
			if src == "" {
				return nil, fmt.Errorf("${} is empty; write $${} for the text ${}")
			}
			if text.Len() > 0 {
				out = append(out, Piece{Text: text.String()})
				text.Reset()
			}
			out = append(out, Piece{Source: src})
			i = end + 1
		default:
			text.WriteByte(s[i])
			i++
		}
	}
	if text.Len() > 0 {
		out = append(out, Piece{Text: text.String()})
	}
	return out, nil
}

// Escape returns the template that stands for the text s.
func Escape(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// Join is the inverse of Split.
func Join(pieces []Piece) string {
	var out, text strings.Builder
	for _, p := range pieces {
		if p.Source == "" {
			text.WriteString(p.Text)
			continue
		}
		t := Escape(text.String())
		if strings.HasSuffix(t, "$") { // $${ would be a literal ${
			t = t[:len(t)-1] + "${'$'}"
		}
		text.Reset()
		out.WriteString(t + "${" + p.Source + "}")
	}
	return out.String() + Escape(text.String())
}

// closing returns the offset of the brace that ends the expression starting at s[i], or -1.
func closing(s string, i int) int {
	for depth := 0; i < len(s); {
		switch s[i] {
		case '"', '\'':
			i = skipString(s, i)
			continue
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		}
		i++
	}
	return -1
}

func quoteShort(s string) string {
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return fmt.Sprintf("%q", s)
}
