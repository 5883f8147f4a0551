package printable

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain text\n\tindented", "plain text\n\tindented"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b]0;title\x07after", "after"},
		{"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"\x1b]0;never ended\nnext", "\nnext"},
		{"\x1bPq#0\x1b\\sixel", "sixel"},
		{"\x1b(Bascii", `Bascii`},
		{"\x1b", `\x1b`},
		{"\x1b[", ""},
		{"50%\r60%\r\n", "50%\n60%\n"},
		{"bell\a back\b", `bell\x07 back\x08`},
		{"a\x00b", `a\x00b`},
		{"c1 \u009b31m", `c1 \x9b31m`},
		{"bad \xff\xfe", `bad \xff\xfe`},
		{"rtl \u202egnp.exe", `rtl \u202egnp.exe`},
		{"zero\u200ewidth\ufeff", `zero\u200ewidth\ufeff`},
		{"grüße 漢字 🎉", "grüße 漢字 🎉"},
	}
	for _, tt := range tests {
		if got := Text(tt.in); got != tt.want {
			t.Errorf("Text(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("\x1b]0;x\x1b\\\x1b[1;2")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0x1b) || strings.ContainsRune(got, '\r') {
			t.Errorf("%q became %q", s, got)
		}
		if again := Text(got); again != got {
			t.Errorf("%q became %q and then %q", s, got, again)
		}
	})
}

func TestLine(t *testing.T) {
	if got := Line(" a\x1b[2J\r\nb\tc "); got != "a b c" {
		t.Errorf("got %q", got)
	}
}

func TestClip(t *testing.T) {
	for _, tt := range []struct {
		s    string
		n    int
		want string
	}{{"abc", 3, "abc"}, {"abcd", 3, "abc..."}, {"aé", 2, "a..."}, {"aé", 3, "aé"}, {"é", 1, "..."}, {"", 0, ""}, {"a\xff\xff", 2, "a\xff..."}} {
		if got := Clip(tt.s, tt.n); got != tt.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", tt.s, tt.n, got, tt.want)
		}
	}
}
