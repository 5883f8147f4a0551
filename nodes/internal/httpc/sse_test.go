package httpc

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func events(text string, one bool) (out []string, err error) {
	var r io.Reader = strings.NewReader(text)
	if one {
		r = iotest.OneByteReader(r)
	}
	e := NewEvents(r, 1000)
	for {
		ev, err := e.Next()
		if err != nil {
			return out, err
		}
		open := ""
		if ev.Open {
			open = " open"
		}
		out = append(out, fmt.Sprintf("%s=%s%s", ev.Name, ev.Data, open))
	}
}

// All line ends, comments, several data lines, a mark at the beginning, an end in the middle.
func TestEvents(t *testing.T) {
	tests := []struct{ text, want string }{
		{"data: a\n\ndata: b\n\n", "[=a =b]"},
		{"event: x\r\ndata: a\r\n\r\nevent: y\r\ndata: b\r\n\r\n", "[x=a y=b]"},
		{"data: a\r\rdata: b\r\r", "[=a =b]"},
		{"\xef\xbb\xbfdata: a\n\n", "[=a]"},
		{": ping\n\n: ping\n\ndata: a\n: in between\ndata: b\n\n", "[=a\nb]"},
		{"data:a\ndata\ndata:  b\n\n", "[=a\n\n b]"},
		{"id: 1\nretry: 5\nevent: only\n\ndata: a\n\n", "[=a]"},
		{"event: e\ndata: a", "[e=a open]"},
		{"data: a\n", "[=a open]"},
		{"data: a\r\n\r", "[=a]"},
		{"nonsense\ndata: {\"x\": \"a: b\"}\n\n", `[={"x": "a: b"}]`},
		{"", "[]"},
	}
	for _, tt := range tests {
		for _, one := range []bool{false, true} {
			got, err := events(tt.text, one)
			if fmt.Sprint(got) != tt.want || !errors.Is(err, io.EOF) {
				t.Errorf("%q: %q %v, want %q", tt.text, got, err, tt.want)
			}
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	for _, text := range []string{"data: " + strings.Repeat("x", 2000) + "\n\n", strings.Repeat("data: "+strings.Repeat("x", 100)+"\n", 20) + "\n", strings.Repeat("x", 5000)} {
		_, err := events(text, false)
		if e := asError(t, err); e.Category != "protocol" || !e.Permanent {
			t.Errorf("%v", err)
		}
	}
	broken := io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(errors.New("reset")))
	e := NewEvents(broken, 1000)
	if ev, err := e.Next(); err != nil || string(ev.Data) != "a" {
		t.Errorf("%q %v", ev.Data, err)
	}
	if _, err := e.Next(); err == nil || err.Error() != "reset" {
		t.Errorf("%v", err)
	}
}
