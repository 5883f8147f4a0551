package printable

import (
	"slices"
	"testing"
)

func TestColumns(t *testing.T) {
	for _, c := range []struct {
		line  string
		most  int
		cut   string
		lines []string
	}{
		{"", 5, "", []string{""}},
		{"abcde", 5, "abcde", []string{"abcde"}},
		{"abcdef", 5, "abcd…", []string{"abcdef"}},
		{"漢字漢字", 5, "漢字…", []string{"漢字漢字"}},
		{"e\u0301e\u0301e\u0301", 3, "e\u0301e\u0301e\u0301", []string{"e\u0301e\u0301e\u0301"}},
		{"A:   one two three", 9, "A:   one…", []string{"A:   one", "  two", "  three"}},
		{"  a bcdefghijkl m", 6, "  a b…", []string{"  a", "  bcdefghijkl", "  m"}},
	} {
		if got, _ := Cut(c.line, c.most); got != c.cut {
			t.Errorf("%q on %d columns: %q, want %q", c.line, c.most, got, c.cut)
		}
		if got := Wrap(c.line, c.most, 2); !slices.Equal(got, c.lines) {
			t.Errorf("%q on lines of %d columns: %q, want %q", c.line, c.most, got, c.lines)
		}
	}
}
