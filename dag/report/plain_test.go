package report

import (
	"strings"
	"testing"
)

// B-10: whatever text others wrote, one line comes out that no terminal acts on.
func FuzzPlain(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[2J\x07", "a\nb\tc", "\xff\xfe", "\u202eevil", "\u009b31m", "\uFFFD", "日本"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Plain(s)
		for _, c := range got {
			if !visible(c) && c != '\uFFFD' {
				t.Fatalf("%q became %q", s, got)
			}
		}
		if Plain(got) != got && !strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("%q changes again", got)
		}
	})
}
