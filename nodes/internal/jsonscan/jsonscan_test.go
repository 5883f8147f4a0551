package jsonscan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
	tests := []struct {
		name, in string
		objects  string // their "n" fields
		noise    int
		cut      bool
	}{
		{"one", `{"n":1}`, "1", 0, false},
		{"lines", "{\"n\":1}\r\n\n{\"n\":2}\n", "1 2", 0, false},
		{"array", ` [{"n":1}, 5, {"n":2}] `, "1 2", 0, false},
		{"glued", `{"n":1}{"n":2}[{"n":3}]`, "1 2 3", 0, false},
		{"spread", "{\n \"n\":\n 1\n}\n{\"n\":2}", "1 2", 0, false},
		{"byte order mark", "\ufeff{\"n\":1}", "1", 0, false},
		{"noise", "hello {world}\n[info] {\"n\":9}\n{\"n\":1}\nbye {2.0}\n", "1", 3, false},
		{"rest of a line", "{\"n\":1} trailing words\n{\"n\":2}\n", "1 2", 1, false},
		{"cut", `{"n":1}` + "\n" + `{"n":2,"x":"abc`, "1", 0, true},
		{"cut, then whole lines", "{\"a\":[\n{\"n\":2}", "2", 0, true},
		{"broken, then whole lines", "{\"n\":\n{\"n\":2}\nx\n{\"n\":3}\n", "2 3", 2, false},
		{"coloured", "\x1b[2K\x1b[1;32m{\n\"n\":1}\x1b[0m\n", "1", 0, false},
		{"escape at the end", "{\"n\":1}\x1b", "1", 1, false},
		{"hidden in noise", "done.{\"type\":\"t\",\"n\":1}\n", "1", 1, false},
		{"hidden does not count beside others", "log {\"type\":\"t\",\"n\":9}\n{\"n\":1}\n", "1", 1, false},
		{"empty", " \n\t\n", "", 0, false},
		{"null and numbers", "null\n5\n\"x\"\n{\"n\":1}", "1", 3, false},
		{"name of another case", `{"N":7,"n":1}`, "1", 0, false},
		{"last duplicate", `{"n":7,"n":1}`, "1", 0, false},
	}
	for _, tt := range tests {
		var got []string
		s, err := Scan(strings.NewReader(tt.in), int64(len(tt.in)), 1<<20, func(o Object) { got = append(got, fmt.Sprint(o.Count("n"))) })
		if err != nil || strings.Join(got, " ") != tt.objects || s.OtherLines != tt.noise || (s.CutAt >= 0) != tt.cut {
			t.Errorf("%s: objects %v, noise %d %q, cut at %d, %v", tt.name, got, s.OtherLines, s.Other, s.CutAt, err)
		}
	}
}

// A counted source counts what is read of it.
type counted struct {
	*strings.Reader
	bytes, calls int
}

func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.Reader.ReadAt(p, at)
	c.bytes, c.calls = c.bytes+n, c.calls+1
	return n, err
}

// Millions of short lines are read in blocks, each about once.
func TestLinesAreReadInBlocks(t *testing.T) {
	for _, line := range []string{"a line of a log\n", "[info] one\n", "{one}\n", "log {\"a\":1}\n", "{\"type\":\"x\"}\n", "\x1b[32m.\x1b[0m\n", "[1]\n"} {
		text := strings.Repeat(line, 1<<18/len(line))
		src := &counted{Reader: strings.NewReader(text)}
		if _, err := Scan(src, int64(len(text)), 1<<30, func(Object) {}); err != nil {
			t.Fatal(err)
		}
		if src.bytes > 2*len(text) || src.calls > 100 {
			t.Errorf("%q: %d bytes of %d in %d calls", line, src.bytes, len(text), src.calls)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add("[info] {\"a\":1}\n{\"type\":\"result\"}{")
	f.Add("{\n[[{}]]\n\"")
	f.Fuzz(func(t *testing.T, in string) {
		n := 0
		s, err := Scan(strings.NewReader(in), int64(len(in)), 64, func(Object) { n++ })
		if err != nil || s.Objects != n {
			t.Errorf("%q: %d objects, %d seen, %v", in, s.Objects, n, err)
		}
	})
}

func TestObject(t *testing.T) {
	o := Object{"s": []byte(`"x"`), "n": []byte(`5.9`), "neg": []byte(`-1`), "yes": []byte(`"true"`), "nul": []byte(`null`), "bad": []byte(`{`)}
	if o.Str("s") != "x" || o.Str("n") != "" || o.Count("n") != 5 || o.Count("neg") != 0 || !o.Yes("yes") || o.Yes("s") || o.Has("nul") || o.Has("none") || o.Object("bad") != nil {
		t.Error("fields are misread")
	}
}

// What the decoder passes over in silence.
func TestOddities(t *testing.T) {
	for raw, want := range map[string]Oddities{
		`{"a":1,"b":{"a":1}}`:                               {},
		`{"a":1,"b":2,"a":3}`:                               {twice: "a"},
		`{"a":{"x":[1],"y":{"z":1,"z":null}}}`:              {twice: "z"},
		`{"a":1,"A":2}`:                                     {},
		`{"a":"\ud83d\ude00 \\ud83d \\\\ \n\u00e9 \ufffd"}`: {},
		`{"a":"\ud83d"}`:                                    {lossy: true},
		`{"a":"\uDE00"}`:                                    {lossy: true},
		`{"a":"\ud83d\n\ude00"}`:                            {lossy: true},
		`{"a":"\ud83d\ud83d\ude00"}`:                        {lossy: true},
		`{"a":"\\\ud83d"}`:                                  {lossy: true},
		"{\"a\":\"\xff\"}":                                  {lossy: true},
		`[{"a":1,"a":2}]`:                                   {twice: "a"},
		`{"a":1,`:                                           {},
		``:                                                  {},
		strings.Repeat(`{"a":`, 5000) + `{"b":1,"b":2}` + strings.Repeat("}", 5000): {twice: "b"},
	} {
		var d Oddities
		if d.Look([]byte(raw)); d != want {
			t.Errorf("%.60q: %+v, want %+v", raw, d, want)
		}
	}
}

// A status may be a text.
func TestStatus(t *testing.T) {
	for raw, want := range map[string]int{`429`: 429, `"429"`: 429, `"x"`: 0, `{}`: 0, `1e9`: 0, `null`: 0} {
		if got := (Object{"s": json.RawMessage(raw)}).Status("s"); got != want {
			t.Errorf("status %s: %d, want %d", raw, got, want)
		}
	}
}

// A number is one that a double holds: no integer that would become another one, nothing that would become nothing.
func TestTypedNumber(t *testing.T) {
	for raw, want := range map[string]bool{
		"0": true, "-0": true, "0.0e-400": true, "1e308": true, "9007199254740992": true, "9007199254740993": false,
		"-9007199254740993": false, "1e400": false, "1e-400": false, "0.30000000000000004": true, "9007199254740993.0": true,
	} {
		if _, ok := Typed(json.Number(raw), "number"); ok != want {
			t.Errorf("%s: %v", raw, ok)
		}
	}
}
