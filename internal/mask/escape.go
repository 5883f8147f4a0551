package mask

import (
	"bytes"
	"html"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes are the bytes that escaped forms of characters begin with.
const escapes = `\%&+`

// letters stand behind a backslash for lettered.
const letters, lettered = "nrtbfav", "\n\r\t\b\f\a\v"

// mostSlashes bounds the backslashes before an escaped character: JSON within JSON doubles them.
const mostSlashes = 8

// decode yields the characters whose escaped forms b begins with, each with the length of its form. There may be
// several: %2541 is an A that was escaped twice, and a % before 41.
func decode(b []byte) func(yield func(r rune, n int) bool) {
	return func(yield func(rune, int) bool) {
		if len(b) == 0 {
			return
		}
		switch b[0] {
		case '\\': // JSON, Go, JavaScript, C and shells
			r, n := backslashed(b)
			if n > 0 && yield(r, n) && r == '&' { // HTML in JSON
				if r, more := entity(b[n:]); more > 0 {
					yield(r, n+more)
				}
			}
		case '%':
			percented(b, yield)
		case '&':
			if r, n := entity(b[1:]); n > 0 {
				yield(r, n+1)
			}
		case '+': // in the query of an address
			yield(' ', 1)
		}
	}
}

func backslashed(b []byte) (rune, int) {
	i := slashes(b)
	if i == 0 || i == len(b) {
		return 0, 0
	}
	c := b[i]
	switch at := strings.IndexByte(letters, c); {
	case at >= 0:
		return rune(lettered[at]), i + 1
	case c == 'x':
		return hex(b, i+1, 2)
	case c == 'U':
		return hex(b, i+1, 8)
	case c == 'u':
		r, end := hex(b, i+1, 4)
		if !utf16.IsSurrogate(r) {
			return r, end
		}
		other := end + slashes(b[end:])
		if other == end || other == len(b) || b[other] != 'u' {
			return 0, 0
		}
		low, end := hex(b, other+1, 4)
		return utf16.DecodeRune(r, low), end
	case c < utf8.RuneSelf && !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'):
		return rune(c), i + 1
	}
	return 0, 0
}

// slashes counts the backslashes before an escaped character.
func slashes(b []byte) int {
	n := 0
	for n < len(b) && n < mostSlashes && b[n] == '\\' {
		n++
	}
	return n
}

// percented yields what %XX is, and %25XX, where it was escaped twice; a character of several bytes has several.
func percented(b []byte, yield func(rune, int) bool) {
	var raw [utf8.UTFMax]byte
	i := 0
	for n := range raw {
		if i == len(b) || b[i] != '%' {
			return
		}
		v, end := hex(b, i+1, 2)
		if end == 0 {
			return
		}
		if inner, more := hex(b, end, 2); v == '%' && more > 0 {
			if n == 0 && !yield('%', end) {
				return
			}
			v, end = inner, more
		}
		raw[n], i = byte(v), end
		if utf8.FullRune(raw[:n+1]) {
			if r, size := utf8.DecodeRune(raw[:n+1]); size == n+1 && yield(r, i) && r == '+' {
				yield(' ', i)
			}
			return
		}
	}
}

// entity reads what HTML writes as &lt; or &#60;, from behind the &.
func entity(b []byte) (rune, int) {
	end := bytes.IndexByte(b[:min(len(b), 12)], ';')
	if end < 1 {
		return 0, 0
	}
	s := html.UnescapeString("&" + string(b[:end+1]))
	if r, n := utf8.DecodeRuneInString(s); n == len(s) {
		return r, end + 1
	}
	return 0, 0
}

// lineBreak returns the length of a line break within base64, as it is or escaped, and of the blanks behind it; 0 when
// b begins with none.
func lineBreak(b []byte) int {
	i := 0
	for range 2 { // \r\n
		if i < len(b) && (b[i] == '\n' || b[i] == '\r') {
			i++
			continue
		}
		for r, n := range decode(b[i:]) {
			if r == '\n' || r == '\r' {
				i += n
				break
			}
		}
	}
	for most := i + 16; i > 0 && i < min(len(b), most) && (b[i] == ' ' || b[i] == '\t'); {
		i++
	}
	return i
}

// hex reads so many digits and returns where they end; 0 when they are none.
func hex(b []byte, at, digits int) (v rune, end int) {
	if at+digits > len(b) {
		return 0, 0
	}
	n, err := strconv.ParseUint(string(b[at:at+digits]), 16, 32)
	if err != nil {
		return 0, 0
	}
	return rune(n), at + digits
}
