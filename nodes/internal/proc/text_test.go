package proc

import (
	"errors"
	"io"
	"strings"
	"testing"
)

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
