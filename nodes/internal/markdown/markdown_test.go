package markdown

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestOpenFence(t *testing.T) {
	tests := []struct {
		line string
		want Fence
		ok   bool
		lang string
	}{
		{"```html", Fence{Char: '`', Len: 3, Info: "html"}, true, "html"},
		{"``` HTML ", Fence{Char: '`', Len: 3, Info: "HTML"}, true, "html"},
		{"~~~~ x y", Fence{Char: '~', Len: 4, Info: "x y"}, true, "x"},
		{"  ```{.html .numberLines}\r", Fence{Char: '`', Len: 3, Indent: 2, Info: "{.html .numberLines}"}, true, "html"},
		{"\t```html:index.html", Fence{Char: '`', Len: 3, Indent: 4, Info: "html:index.html"}, true, "html"},
		{"\u00a0\u200b```", Fence{Char: '`', Len: 3, Odd: true}, true, ""},
		{"```a`b", Fence{}, false, ""},
		{"~~~a`b", Fence{Char: '~', Len: 3, Info: "a`b"}, true, "a`b"},
		{"``html", Fence{}, false, ""},
		{"x ```", Fence{}, false, ""},
		{"", Fence{}, false, ""},
		{"   ", Fence{}, false, ""},
	}
	for _, tt := range tests {
		got, ok := OpenFence(tt.line)
		if got != tt.want || ok != tt.ok || got.Language() != tt.lang {
			t.Errorf("%q: got %+v %v %q", tt.line, got, ok, got.Language())
		}
	}
}

func TestCloses(t *testing.T) {
	f := Fence{Char: '`', Len: 3}
	for line, want := range map[string]bool{"```": true, " ````\r": true, "``": false, "``` x": false, "~~~": false, "": false} {
		if f.Closes(line) != want {
			t.Errorf("%q closes: %v", line, !want)
		}
	}
}

func TestSections(t *testing.T) {
	d := Parse("intro\n# A\na\n## 1. Deeply integrated:\nd\n```\n# not\n```\n**Absent**\nx\n- **bold**\n## B\n\n# Under\n\nDrawn\n=====\nu\n\n## B\nb")
	for heading, want := range map[string]string{
		"a": "a\n## 1. Deeply integrated:\nd\n```\n# not\n```\n**Absent**\nx\n- **bold**\n## B\n\n", "Deeply integrated": "d\n```\n# not\n```\n**Absent**\nx\n- **bold**\n",
		"ABSENT": "x\n- **bold**\n", "B": "b", "Drawn": "u\n\n## B\nb", "Under": "-", "not": "-", "bold": "-", "Abs": "-", "": "-",
	} {
		got, ok := d.Section(heading)
		if !ok {
			got = "-"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", heading, got, want)
		}
	}
	for heading, want := range map[string]bool{
		"## Absent": true, "### 3) ABSENT (2)": true, "**Absent: patterns**": true, "## *Absent* — none": true, "## Absent minded": false, "## Absent-minded": false, "## Not absent": false, "Absent": false,
	} {
		if _, ok := Parse(heading + "\n\ntext").Section("absent"); ok != want {
			t.Errorf("%s: %v", heading, ok)
		}
	}
}

// Rows are what the author says: no code, quotes, comments, nor what is struck out.
func TestRows(t *testing.T) {
	const text = "# A *b*\n\n> quoted\n\none `c|d`\ntwo ~~gone~~ \\*x\\* <b>y</b> <!-- z -->\n\n    code\n\n- i\n  - **j**\n1. k\n\n| a | **b** |\n|---|---|\n| 1 | 2 |\n\n<!-- hidden -->\n" +
		"<div>\nhidden\n</div>\n\n**bold:**\nx | y\n"
	var got []string
	for _, r := range Parse(text).Rows {
		got = append(got, fmt.Sprint(r.Level, r.Item, r.Wrapped, " ", strings.Join(r.Cells, "; ")))
	}
	want := []string{"1 0 false A b", "0 0 false one `c/d`", "0 0 true two  *x* y <!---->", "0 1 false i", "0 2 false j", "0 1 false k", "0 0 false a; b", "0 0 false 1; 2",
		"7 0 false bold:", "0 0 true x; y"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if inner, ok := Parse("```\na\n```\n").Quoted(); !ok || len(inner.Rows) != 1 {
		t.Errorf("one block: %v %v", inner, ok)
	}
	if _, ok := Parse("```\na\n```\nb").Quoted(); ok {
		t.Error("a block and a text are one block")
	}
}

func TestThought(t *testing.T) {
	for line, want := range map[string]string{
		"<think>x": "</think>", " \u200b<THINKING>": "</thinking>", "[THINK] x": "[/THINK]", "<scratchpad>": "</scratchpad>",
		"<think": "", "<thinks>": "", "a <think>": "", "[think]": "", "": "",
	} {
		if end, ok := Thought(line); ok != (want != "") || ok && end != want {
			t.Errorf("%q: %q %v, want %q", line, end, ok, want)
		}
	}
	for line, want := range map[string]string{
		"</think>": "</think>", " </Think> a": " </Think>", "so be it.</think> ": "so be it.</think>", "a </think> b": "", "</thinker>": "", "": "",
	} {
		if n, ok := ThoughtEnd(line); line[:n] != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", line, line[:n], ok, want)
		}
	}
	for text, want := range map[string]string{
		"a\nb": "a\nb", "<think>\nx\n</think>\ny": "\ny", "x\n</think>y": "y", "a\n<think>b</think>c\n": "a\nc\n", "I <think> so": "I <think> so",
	} {
		if got, cut := Said(text); got != want || cut {
			t.Errorf("%q: %q %v, want %q", text, got, cut, want)
		}
	}
	if got, cut := Said("a\n<think>\nb"); got != "a\n" || !cut {
		t.Errorf("never closed: %q %v", got, cut)
	}
}

func TestSkipCode(t *testing.T) {
	for line, want := range map[string]int{"`a` b": 3, "``a`b`` c": 7, "`a": 1, "````a````": 4, "`": 1} {
		if got := SkipCode(line, 0); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

// Lines cover a text without gaps, and rows and sections stay within it.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"# A\na\r\n~~~\n# b\r```", "**x**\n- y\n> z", "\u200b```html\n</think>", "1. `a`\n\n", "| a |\n|---|\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, l := range Lines(text) {
			if l.Start != at || l.End < l.Start || l.Next < l.End || strings.ContainsAny(l.Of(text), "\r\n") {
				t.Fatalf("line %+v at %d", l, at)
			}
			at = l.Next
			if n, ok := ThoughtEnd(l.Of(text)); ok && (n == 0 || l.Of(text)[n-1] != '>') {
				t.Fatalf("end of thinking at %d of %q", n, l.Of(text))
			}
			for k := range l.Of(text) {
				if n := SkipCode(l.Of(text), k); n < k || n > len(l.Of(text)) {
					t.Fatalf("code from %d to %d of %q", k, n, l.Of(text))
				}
			}
		}
		if at != len(text) {
			t.Fatalf("lines end at %d of %d", at, len(text))
		}
		d := Parse(text)
		for _, r := range d.Rows {
			if r.At < 0 || r.At > len(d.Text) || len(r.Cells) == 0 {
				t.Fatalf("row %+v", r)
			}
			d.Section(r.Cells[0])
			r.After(r.Cells[0])
		}
		Said(text)
	})
}
