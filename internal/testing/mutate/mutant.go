package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A mutant is one change of a file.
type mutant struct {
	name     string // file, place, what becomes what; it does not depend on the number of the line
	file     string
	from, to int
	text     string
}

// named gives each change a name of its own, in the order of the file, and takes out what changes nothing or is there
// twice.
func named(file string, src []byte, found []mutant) (out []mutant) {
	order := func(a, b mutant) int { return cmp.Or(a.from-b.from, a.to-b.to, cmp.Compare(a.text, b.text)) }
	slices.SortStableFunc(found, order)
	found = slices.CompactFunc(found, func(a, b mutant) bool { return order(a, b) == 0 })
	seen := map[string]int{}
	for _, m := range found {
		old := string(src[m.from:m.to])
		if old == m.text {
			continue
		}
		m.file = file
		m.name = fmt.Sprintf("%s: %s: %s -> %s", file, m.name, short(old), cmp.Or(short(m.text), "nothing"))
		if seen[m.name]++; seen[m.name] > 1 {
			m.name += fmt.Sprintf(" (%d)", seen[m.name])
		}
		out = append(out, m)
	}
	return out
}

// lineAt is the line around an offset, as names show it.
func lineAt(src []byte, at int) string {
	from := bytes.LastIndexByte(src[:at], '\n') + 1
	line, _, _ := bytes.Cut(src[from:], []byte("\n"))
	return "`" + short(string(line)) + "`"
}

func short(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 70 {
		s = string(r[:67]) + "..."
	}
	return s
}
