// Package glob matches slash-separated names with patterns, the same wherever a specification may write one: files
// beside it, and what nodes write.
//
//   - any characters of one element, none included
//     ?       one character
//     [a-z]   one character of these; [!a-z] one that is none of these
//     **      any elements; none, except at the end
//
// Whatever else stands in a pattern stands for itself. A slash at the end is an element of its own: "a/*/" matches
// "a/b/" and not "a/b". Names need not exist; no file is looked at.
package glob

import (
	"errors"
	"path"
	"strings"
)

// Is reports whether a name is a pattern.
func Is(name string) bool { return strings.ContainsAny(name, "*?[") }

// Check says what is wrong with a pattern.
func Check(pattern string) error {
	if strings.Contains(pattern, `\`) {
		return errors.New(`a pattern has no \; write [*] for a literal *`)
	}
	for _, e := range strings.Split(pattern, "/") {
		if _, err := path.Match(element(e), ""); err != nil {
			return errors.New("a [ without its ], or with nothing in it; write [[] for a literal [")
		}
		if strings.Contains(e, "**") && e != "**" {
			return errors.New("** stands alone between slashes: a/**/b, or **/*.txt")
		}
	}
	return nil
}

// element is one element in the notation of package path.
func element(e string) string { return strings.ReplaceAll(e, "[!", "[^") }

// Match reports whether a name matches a pattern. One that Check refuses matches nothing.
func Match(pattern, name string) bool {
	if prefix := Literal(pattern); !strings.HasPrefix(name, prefix) {
		return false // most names, without taking anything apart
	}
	return elements(strings.Split(pattern, "/"), strings.Split(name, "/"))
}

// elements goes back to the last ** only: what the ones before it took can always stay as it was.
func elements(pattern, name []string) bool {
	p, n, deep, from := 0, 0, -1, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == "**" {
			deep, from = p, n
			if p++; p == len(pattern) {
				return true // at least one element is left
			}
			continue
		}
		if p < len(pattern) {
			if ok, err := path.Match(element(pattern[p]), name[n]); ok && err == nil {
				p, n = p+1, n+1
				continue
			}
		}
		if deep < 0 {
			return false
		}
		from++
		p, n = deep+1, from
	}
	return p == len(pattern)
}

// Literal is what every name begins with that matches a pattern.
func Literal(pattern string) string {
	if i := strings.IndexAny(pattern, "*?["); i >= 0 {
		return pattern[:i]
	}
	return pattern
}

// Overlap reports whether some name could match a pattern where a part of the name is not known yet: known are the
// parts around what is missing, which may be anything. It errs on the side of yes.
func Overlap(pattern string, known []string) bool {
	a := tokens(pattern)
	var b []rune
	for i, part := range known {
		if i > 0 {
			b = append(b, anything)
		}
		b = append(b, []rune(part)...)
	}
	seen := make([]bool, (len(a)+1)*(len(b)+1))
	var meet func(i, j int) bool
	meet = func(i, j int) bool {
		at := i*(len(b)+1) + j
		if seen[at] {
			return false
		}
		seen[at] = true
		switch {
		case i == len(a) && j == len(b):
			return true
		case i < len(a) && many(a[i]) && meet(i+1, j), j < len(b) && many(b[j]) && meet(i, j+1):
			return true
		case i == len(a) || j == len(b):
			return false
		case many(a[i]) && takes(a[i], b[j]) && meet(i, j+1), many(b[j]) && takes(b[j], a[i]) && meet(i+1, j):
			return true
		}
		return !many(a[i]) && !many(b[j]) && takes(a[i], b[j]) && meet(i+1, j+1)
	}
	return meet(0, 0)
}

// What stands in tokens beside the characters themselves.
const (
	one      = -1 - iota // character of an element
	some                 // characters of an element
	anything             // characters, slashes too
)

func many(t rune) bool { return t == some || t == anything }

// takes reports whether what one token stands for may be, or begin with, what another does.
func takes(a, b rune) bool {
	switch {
	case a == anything || b == anything || a == b:
		return true
	case a < 0:
		return b != '/'
	}
	return b < 0 && a != '/'
}

// tokens takes a pattern apart; a class is any character.
func tokens(pattern string) (list []rune) {
	for p := []rune(pattern); len(p) > 0; p = p[1:] {
		switch {
		case p[0] == '*' && len(p) > 1 && p[1] == '*':
			if p = p[1:]; len(p) > 1 && p[1] == '/' {
				p = p[1:] // no element is as good
			}
			list = append(list, anything)
		case p[0] == '*':
			list = append(list, some)
		case p[0] == '?':
			list = append(list, one)
		case p[0] == '[':
			for i := 2; i < len(p); i++ { // a ] in front stands for itself
				if p[i] == ']' {
					p = p[i:]
					break
				}
			}
			list = append(list, one)
		default:
			list = append(list, p[0])
		}
	}
	return list
}
