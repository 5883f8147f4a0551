package dag

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of JSON that is read.
const maxDepth = 1000

// AppendCanonical appends the canonical form (RFC 8785) of a JSON text to dst. Repeated names,
// integers that a float64 cannot hold exactly, and anything after the value are errors.
func AppendCanonical(dst, src []byte) ([]byte, error) {
	d := &decoder{src: src}
	dst, err := d.canonical(dst, 0)
	if err == nil {
		err = d.end()
	}
	return dst, err
}

// A member is one name and value of an object while its canonical form stands in dst[from:to].
type member struct {
	name     string
	from, to int
}

func (d *decoder) canonical(dst []byte, depth int) ([]byte, error) {
	if depth > maxDepth {
		return dst, errors.New("nested too deeply")
	}
	d.space()
	switch c := d.peek(); {
	case c == '{':
		return d.canonicalObject(dst, depth)
	case c == '[':
		return d.canonicalArray(dst, depth)
	case c == '"':
		s, err := d.text()
		return appendString(dst, s), err
	case c == '-' || c >= '0' && c <= '9':
		return d.canonicalNumber(dst)
	default:
		for _, word := range [...]string{"true", "false", "null"} {
			if d.word(word) {
				return append(dst, word...), nil
			}
		}
		return dst, d.unexpected("a value")
	}
}

func (d *decoder) canonicalArray(dst []byte, depth int) ([]byte, error) {
	dst = append(dst, '[')
	err := d.list('[', ']', func(n int) (err error) {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst, err = d.canonical(dst, depth+1)
		return err
	})
	return append(dst, ']'), err
}

func (d *decoder) canonicalObject(dst []byte, depth int) ([]byte, error) {
	dst = append(dst, '{')
	var few [8]member
	members, sorted, start := few[:0], true, len(dst)
	err := d.list('{', '}', func(n int) error {
		text, err := d.name()
		if err != nil {
			return err
		}
		name := string(text)
		if n > 0 {
			dst = append(dst, ',')
			sorted = sorted && compareUTF16(members[n-1].name, name) < 0
		}
		from := len(dst)
		dst = append(appendString(dst, name), ':')
		dst, err = d.canonical(dst, depth+1)
		members = append(members, member{name, from, len(dst)})
		return err
	})
	if err == nil && !sorted {
		dst, err = sortMembers(dst, start, members)
	}
	return append(dst, '}'), err
}

func sortMembers(dst []byte, start int, members []member) ([]byte, error) {
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.name, b.name) })
	sorted := make([]byte, 0, len(dst)-start)
	for i, m := range members {
		if i > 0 {
			if members[i-1].name == m.name {
				return dst, fmt.Errorf("duplicate name %q in one object", m.name)
			}
			sorted = append(sorted, ',')
		}
		sorted = append(sorted, dst[m.from:m.to]...)
	}
	return append(dst[:start], sorted...), nil
}

func (d *decoder) canonicalNumber(dst []byte) ([]byte, error) {
	text, integer, err := d.number()
	if err != nil {
		return dst, err
	}
	if integer && len(text) <= 15 && text[0] != '-' {
		return append(dst, text...), nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return dst, fmt.Errorf("number %s is out of range", text)
	}
	if integer && f != 0 && strconv.FormatFloat(f, 'f', -1, 64) != string(text) {
		return dst, errTooBig
	}
	return appendNumber(dst, f)
}

func appendInteger(dst []byte, i int64) []byte { return strconv.AppendInt(dst, i, 10) }

func appendFloat(dst []byte, f float64) []byte {
	if a := math.Abs(f); a >= 1e-6 && a < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') { // e-07 is e-7
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

const hexDigits = "0123456789abcdef"

func appendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, size := utf8.DecodeRuneInString(string(s[i:min(len(s), i+utf8.UTFMax)])); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
			dst = append(append(dst, s[start:i]...), "\ufffd"...)
		} else {
			dst = appendEscape(append(dst, s[start:i]...), c)
		}
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\t':
		return append(dst, `\t`...)
	case '\n':
		return append(dst, `\n`...)
	case '\f':
		return append(dst, `\f`...)
	case '\r':
		return append(dst, `\r`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// compareUTF16 orders strings by their UTF-16 code units: as bytes do, except that characters
// above U+FFFF come before U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) || i == len(b) {
		return len(a) - len(b)
	}
	ca, cb := a[i], b[i]
	if (ca >= 0xF0) != (cb >= 0xF0) && ca >= 0xEE && cb >= 0xEE {
		return int(cb) - int(ca)
	}
	return int(ca) - int(cb)
}
