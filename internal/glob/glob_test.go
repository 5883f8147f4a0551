package glob

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no string
	}{
		{"part/*.tsv", "part/1.tsv part/.tsv part/é.tsv", "part/1.txt part/a/1.tsv x/part/1.tsv part"},
		{"part/?.tsv", "part/1.tsv part/é.tsv", "part/10.tsv part/.tsv"},
		{"[a-c]*", "a b12", "d a/b"},
		{"[!a-c]*", "d", "a"},
		{"**", "a a/b a/b/", ""},
		{"a/**", "a/b a/b/c a/", "a ab b/a"},
		{"**/*.txt", "x.txt a/x.txt a/b/x.txt", "x.tx a/x.txt/b"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a/x/c b a/bb"},
		{"**/a/**/b/*", "a/b/c x/a/y/b/c a/a/b/b/c", "a/c a/b"},
		{"pages/*/", "pages/a/", "pages/a pages/a/b"},
		{"a[*]", "a*", "ab"},
		{"a.txt", "a.txt", "b.txt"},
	} {
		if err := Check(tt.pattern); err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
		}
		for _, name := range strings.Fields(tt.yes) {
			if !Match(tt.pattern, name) {
				t.Errorf("%s does not match %s", tt.pattern, name)
			}
			if !Overlap(tt.pattern, []string{name}) {
				t.Errorf("%s does not overlap %s", tt.pattern, name)
			}
		}
		for _, name := range strings.Fields(tt.no) {
			if Match(tt.pattern, name) {
				t.Errorf("%s matches %s", tt.pattern, name)
			}
		}
	}
	long := strings.Repeat("a/", 2000) + "b"
	if Match(strings.Repeat("**/a/", 500)+"c", long) { // and it takes no time
		t.Error("matches what does not end so")
	}
}

func TestOverlap(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		known   string // <> is what is missing
		want    bool
	}{
		{"part/*.tsv", "part/<>.tsv", true}, {"part/*.tsv", "part/<>.txt", false}, {"part/*.tsv", "<>", true},
		{"part/*.tsv", "parts/<>.tsv", false}, {"part/a*.tsv", "part/b<>.tsv", false}, {"**", "<>/x/<>", true},
		{"**/x.txt", "a/<>", true}, {"*.txt", "a/<>.txt", false}, {"*.txt", "<>.txt", true}, {"pages/*/", "pages/<>/", true},
		{"pages/*/", "pages/<>.html", false}, {"a[0-9]", "a<>", true}, {"a?c", "a<>c", true}, {"a?c", "ac<>d", false},
	} {
		if got := Overlap(tt.pattern, strings.Split(tt.known, "<>")); got != tt.want {
			t.Errorf("%s and %s: %v", tt.pattern, tt.known, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, pattern := range []string{"a[", "a/[b", "[]", "a**", "**a/b", `a\*`} {
		if Check(pattern) == nil {
			t.Errorf("%s is taken", pattern)
		}
	}
}
