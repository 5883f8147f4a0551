package mask

import (
	"bytes"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// reach is how far the longest form of one character goes, with the line break before it.
	reach = 64
	// leastCut is how many characters must be left of a secret that was cut.
	leastCut = 8
	// leastBase64 is how many characters of base64 must be known of a secret that stands in the middle of it.
	leastBase64 = 8
)

// A pattern is a secret or a line of one, by characters, as text or as base64.
type pattern struct {
	chars  []char
	need   int // as many must be there; the others belong to it when they are
	base64 bool
}

// A char is one character of a pattern: the bytes that it is written with, and the rune by which escaped forms are
// known.
type char struct {
	raw        string
	twin       byte // of the other alphabet of base64
	r          rune // -1: bytes that are no UTF-8
	afterSlash bool // a backslash stands before it, whose form may have taken one too many
}

// A finder looks for patterns. It is not changed once it is made.
type finder struct {
	patterns []pattern
	first    [256][]int // patterns by the first byte of their first character
	pairs    [1 << 16 / 64]uint64
}

func newFinder(secrets map[string]bool) *finder {
	f := &finder{}
	for _, s := range slices.Sorted(maps.Keys(secrets)) {
		f.patterns = append(f.patterns, textPattern(s))
		for before := range 3 {
			if p := base64Pattern(s, before); p.need >= leastBase64 || before == 0 {
				f.patterns = append(f.patterns, p)
			}
		}
	}
	for i, p := range f.patterns {
		for b := range p.chars[0].starts() {
			f.first[b] = append(f.first[b], i)
			f.pair(b, p)
		}
		f.pairEscaped(p.chars[0].r)
	}
	return f
}

// pair marks how a pattern that begins with byte b may go on.
func (f *finder) pair(b byte, p pattern) {
	if len(p.chars) == 1 || len(p.chars[0].raw) > 1 || b == '\\' {
		for next := range 256 {
			f.mark(b, byte(next))
		}
		return
	}
	for next := range p.chars[1].starts() {
		f.mark(b, next)
	}
	for _, next := range []byte(escapes + "\r\n") {
		f.mark(b, next)
	}
}

// pairEscaped marks how the escaped forms of a pattern's first character may begin.
func (f *finder) pairEscaped(r rune) {
	for b := range 256 {
		c := byte(b)
		digit := '0' <= c && c <= '9' || 'a' <= c|' ' && c|' ' <= 'f'
		switch {
		case digit, c == '#', 'a' <= c|' ' && c|' ' <= 'z':
			f.mark('&', c)
		}
		if digit {
			f.mark('%', c)
		}
		if r == ' ' {
			f.mark('+', c)
		}
		at := strings.IndexByte(letters, c)
		named := at >= 0 && rune(lettered[at]) == r
		if named || rune(c) == r || strings.IndexByte(`\uUx`, c) >= 0 {
			f.mark('\\', c)
		}
	}
}

func (f *finder) mark(a, b byte) {
	i := int(a)<<8 | int(b)
	f.pairs[i/64] |= 1 << (i % 64)
}

// candidate returns the first place from b[p] on where a secret may begin; len(b) when there is none.
func (f *finder) candidate(b []byte, p int) int {
	for ; p+1 < len(b); p++ {
		if i := uint16(b[p])<<8 | uint16(b[p+1]); f.pairs[i/64]&(1<<(i%64)) != 0 {
			return p
		}
	}
	if p+1 == len(b) && len(f.first[b[p]]) == 0 && strings.IndexByte(escapes, b[p]) < 0 {
		p++
	}
	return p
}

func textPattern(s string) (p pattern) {
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 {
			r = -1
		}
		last := len(p.chars) - 1
		p.chars = append(p.chars, char{raw: s[:n], r: r, afterSlash: last >= 0 && p.chars[last].r == '\\'})
		s = s[n:]
	}
	p.need = len(p.chars)
	return p
}

// base64Pattern is what shows of a secret in base64 when so many bytes more than a multiple of three stand before
// it. What comes behind it decides about its last character, and so does padding.
func base64Pattern(s string, before int) pattern {
	coded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + s))
	skip := []int{0, 2, 3}[before] // they depend on what stands before
	p := pattern{need: (before+len(s))*8/6 - skip, base64: true}
	for _, c := range []byte(coded[skip:]) {
		x := char{raw: string(c), r: rune(c)}
		switch c {
		case '+':
			x.twin = '-'
		case '/':
			x.twin = '_'
		}
		p.chars = append(p.chars, x)
	}
	return p
}

// starts yields the bytes that the unescaped character may begin with.
func (c char) starts() func(yield func(byte) bool) {
	return func(yield func(byte) bool) {
		if yield(c.raw[0]) && c.twin != 0 {
			yield(c.twin)
		}
	}
}

// forms appends the ends of the character's forms at b[at].
func (c char) forms(ends []int, b []byte, at int) []int {
	add := func(end int) {
		if !slices.Contains(ends, end) {
			ends = append(ends, end)
		}
	}
	rest := b[at:]
	switch {
	case c.r == '\\':
		for n, most := 1, slashes(rest); n <= most; n *= 2 { // JSON within JSON
			add(at + n)
		}
	case len(rest) >= len(c.raw) && string(rest[:len(c.raw)]) == c.raw:
		add(at + len(c.raw))
	case c.twin != 0 && len(rest) > 0 && rest[0] == c.twin:
		add(at + 1)
	}
	if c.afterSlash && at > 0 && b[at-1] == '\\' {
		at--
	}
	for r, n := range decode(b[at:]) {
		if r == c.r || c.twin != 0 && r == rune(c.twin) {
			add(at + n)
		}
	}
	return ends
}

// match returns where the longest form of the pattern that begins at b[at] ends, 0 when there is none. more says
// that it takes more text to know. With cut, what text or dots end too early is a form as well.
func (p *pattern) match(b []byte, at int, final, cut bool) (end int, more bool) {
	var mine, other [8]int
	now, next := append(mine[:0], at), other[:0]
	for i, c := range p.chars {
		if i >= p.need {
			end = max(end, slices.Max(now))
		}
		next = next[:0]
		for _, q := range now {
			if !final && q+reach > len(b) {
				return end, true
			}
			next = c.forms(next, b, q)
			if p.base64 && i > 0 {
				if n := lineBreak(b[q:]); n > 0 {
					next = c.forms(next, b, q+n)
				}
			}
			if cut && i >= leastCut && isCut(b[q:]) {
				end = max(end, q)
			}
		}
		if len(next) == 0 {
			return end, false
		}
		now, next = next, now
	}
	return max(end, slices.Max(now)), false
}

// isCut reports whether b begins with what stands for text that was left out, or is at its end; what may be the
// beginning of an escape can stand before it.
func isCut(b []byte) bool {
	if len(b) > 0 && strings.IndexByte(escapes, b[0]) >= 0 {
		b = bytes.TrimLeftFunc(b, func(r rune) bool {
			return r < utf8.RuneSelf && (strings.ContainsRune(escapes+"#", r) || unicode.IsLetter(r) || unicode.IsDigit(r))
		})
	}
	return len(b) == 0 || bytes.HasPrefix(b, []byte("...")) || bytes.HasPrefix(b, []byte("\n[... "))
}

// at returns where the longest secret that begins at b[at] ends, 0 when none does.
func (f *finder) at(b []byte, at int, final, cut bool) (end int, more bool) {
	if !final && at+reach > len(b) {
		return 0, true
	}
	try := func(list []int) {
		for _, i := range list {
			e, m := f.patterns[i].match(b, at, final, cut)
			end, more = max(end, e), more || m
		}
	}
	try(f.first[b[at]])
	for r := range decode(b[at:]) {
		var lead [utf8.UTFMax]byte
		utf8.EncodeRune(lead[:], r)
		if lead[0] != b[at] {
			try(f.first[lead[0]])
		}
	}
	return end, more
}

// ofCut returns where the end of a secret ends whose beginning was cut off before b[at], 0 when there is none.
func (f *finder) ofCut(b []byte, at int) (end int) {
	for _, p := range f.patterns {
		for i := 1; i+leastCut <= p.need; i++ {
			part := pattern{chars: p.chars[i:], need: p.need - i, base64: p.base64}
			e, _ := part.match(b, at, true, false)
			end = max(end, e)
		}
	}
	return end
}

// A cleaner takes secrets out of one piece of text.
type cleaner struct {
	finder *finder
	final  bool // no more text comes
	cut    bool // the text may have been cut at its ends and at dots
	found  bool
	out    []byte // the text without secrets, when some were found
}

// clean reads b as far as it is certain what is a secret, and returns how far that is. Secrets that overlap are
// taken out together.
func (c *cleaner) clean(b []byte) int {
	written, start, end := 0, -1, 0 // b[start:end] is to be masked
	take := func(from, to int) {
		if start >= 0 && from >= end {
			c.replace(b[written:start])
			written, start = end, -1
		}
		if to > 0 && start < 0 {
			start = max(written, whole(b, from))
		}
		end = max(end, to)
	}
	for p := c.next(b, 0); p < len(b); p = c.next(b, p+1) {
		e, more := c.finder.at(b, p, c.final, c.cut)
		if c.cut && isDots(b[:p]) {
			e = max(e, c.finder.ofCut(b, p))
		}
		take(p, e)
		if more {
			if p = max(written, whole(b, p)); start >= 0 {
				p = start
			}
			c.rest(b[written:p])
			return p
		}
	}
	take(len(b), 0)
	c.rest(b[written:])
	return len(b)
}

// whole is where the character begins that b[p] belongs to, when that is an escaped one: what is left must not be
// half of it.
func whole(b []byte, p int) int {
	n := 0
	for n < p && b[p-1-n] == '\\' {
		n++
	}
	return p - n%2
}

// next is the next place to look at. A message is short and looked at whole.
func (c *cleaner) next(b []byte, p int) int {
	if c.cut {
		return p
	}
	return c.finder.candidate(b, p)
}

// rest adds text without secrets behind the last one.
func (c *cleaner) rest(b []byte) {
	if c.found {
		c.out = append(c.out, b...)
	}
}

func (c *cleaner) replace(before []byte) {
	c.out, c.found = append(append(c.out, before...), Shown...), true
}

// isDots reports whether b ends with what stands for text that was left out, or is empty.
func isDots(b []byte) bool {
	return len(b) == 0 || bytes.HasSuffix(b, []byte("...")) || bytes.HasSuffix(b, []byte(" left out ...]\n"))
}

// Shown is what stands in for a secret.
const Shown = "[secret]"
