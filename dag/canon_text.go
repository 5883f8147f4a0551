package dag

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"dagrun.dev/internal/number"
)

var canonicalForm = []jsontext.Options{
	jsontext.CanonicalizeRawInts(true), jsontext.CanonicalizeRawFloats(true), jsontext.ReorderRawObjects(true),
}

// AppendCanonical appends the canonical form (RFC 8785) of a JSON text to dst. Repeated names,
// integers that a float64 cannot hold exactly, and anything after the value are errors.
func AppendCanonical(dst, src []byte) ([]byte, error) {
	out, err := jsontext.AppendFormat(dst, src, canonicalForm...)
	if err != nil {
		return dst, worded(err)
	}
	return out, eachNumber(src, exact)
}

// eachNumber goes over the numbers of a JSON text that is known to be one.
func eachNumber(src []byte, check func(text string) error) error {
	for i := 0; i < len(src); i++ {
		switch c := src[i]; {
		case c == '"':
			for i++; src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case c == '-' || c >= '0' && c <= '9':
			start := i
			for i++; i < len(src) && bytes.IndexByte([]byte("0123456789.eE+-"), src[i]) >= 0; i++ {
			}
			if err := check(string(src[start:i])); err != nil {
				return err
			}
		}
	}
	return nil
}

// exact refuses a number that would be read back as another one.
func exact(text string) error {
	if number.Whole(text) && number.Stays(text) {
		return nil
	}
	switch _, ok := number.Float(text); {
	case !ok:
		return outOfRange(text)
	case number.Whole(text):
		return errTooBig
	}
	return nil
}

func outOfRange(number string) error { return fmt.Errorf("number %.40s is out of range", number) }

// worded says what the library found wrong with a JSON text, and at which byte.
func worded(err error) error {
	var s *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("JSON ends before it is complete")
	case !errors.As(err, &s):
		return err
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("duplicate name %q in one object", s.JSONPointer.LastToken())
	case strings.HasPrefix(s.Err.Error(), "invalid surrogate pair"):
		return fmt.Errorf("half of a surrogate pair stands alone in a string, at byte %d", s.ByteOffset)
	}
	return fmt.Errorf("%w at byte %d", s.Err, s.ByteOffset)
}

// appendNumber writes a float as ECMAScript does.
func appendNumber(dst []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, fmt.Errorf("%v is not a number that JSON can hold", f)
	}
	if f == 0 {
		return append(dst, '0'), nil // minus zero too
	}
	return append(dst, jsontext.Float(f).String()...), nil
}

// appendString writes a string; bytes that are no UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s)
	return dst
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
