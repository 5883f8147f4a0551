package proc

import (
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
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
		if got := Printable(tt.in); got != tt.want {
			t.Errorf("Printable(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b]0;x\x1b\\\x1b[1;2")
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if !utf8.ValidString(got) || strings.ContainsRune(got, 0x1b) || strings.ContainsRune(got, '\r') {
			t.Errorf("%q became %q", s, got)
		}
		if again := Printable(got); again != got {
			t.Errorf("%q became %q and then %q", s, got, again)
		}
	})
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	in := "a\r\n\n" + long + "\n" + strings.Repeat("y", 300_001) + "\nlast"
	r := NewLineReader(strings.NewReader(in), 300_000)
	want := []string{"a", "", long, "TOO LONG", "last"}
	for i, w := range want {
		line, err := r.Line()
		got := string(line)
		if errors.Is(err, ErrLineTooLong) {
			got = "TOO LONG"
		} else if err != nil {
			t.Fatal(err)
		}
		if got != w {
			t.Errorf("line %d: %d bytes, want %d", i, len(got), len(w))
		}
	}
	if _, err := r.Line(); !errors.Is(err, io.EOF) {
		t.Errorf("error %v, want EOF", err)
	}
}
