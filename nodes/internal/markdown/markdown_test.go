package markdown

import (
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
	text := "intro\n# A\na\n## 1. Deeply integrated:\nd\n```\n# not\n```\n**Absent**\nx\n## B\nb"
	var got []string
	for _, s := range Sections(text) {
		got = append(got, s.Words+"="+strings.TrimSpace(text[s.Start:s.End]))
	}
	want := []string{
		"a=a\n## 1. Deeply integrated:\nd\n```\n# not\n```\n**Absent**\nx\n## B\nb",
		"deeply integrated=d\n```\n# not\n```\n**Absent**\nx",
		"absent=x",
		"b=b",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestIsHeading(t *testing.T) {
	for _, tt := range []struct {
		heading, want string
		ok            bool
	}{
		{"## Absent", "absent", true},
		{"### 3) ABSENT (2)", "Absent", true},
		{"**Absent: patterns**", "absent", true},
		{"## Absent minded", "absent", false},
		{"## Absent-minded", "absent", false},
		{"## ❌ Absent", "Absent", true},
		{"## Not absent", "absent", false},
		{"## Anything", "", false},
	} {
		_, words, ok := Heading(tt.heading)
		if !ok || IsHeading(words, tt.want) != tt.ok {
			t.Errorf("%q is %q: %v (words %q)", tt.heading, tt.want, !tt.ok, words)
		}
	}
}

func TestItem(t *testing.T) {
	for line, want := range map[string]string{"- a": "a", "  12. b ": "b", "3) c": "c", "• d": "d"} {
		if got, ok := Item(line); !ok || got != want {
			t.Errorf("%q: %q %v", line, got, ok)
		}
	}
	for _, line := range []string{"-a", "1234. a", "a", "", "3.5 a", "**a**"} {
		if got, ok := Item(line); ok {
			t.Errorf("%q is no item, got %q", line, got)
		}
	}
}

func TestThought(t *testing.T) {
	for line, want := range map[string]string{
		"<think>x": "</think>", " \u200b<THINKING>": "</thinking>", "[THINK] x": "[/THINK]", "<scratchpad>": "</scratchpad>",
		"<think": "", "<thinks>": "", "a <think>": "", "[think]": "", "": "",
	} {
		if end, n, ok := Thought(line); end != want || ok != (want != "") || ok && line[n-1] != '>' && line[n-1] != ']' {
			t.Errorf("%q: %q %d %v, want %q", line, end, n, ok, want)
		}
	}
	for line, want := range map[string]string{
		"</think>": "</think>", " </Think> a": " </Think>", "so be it.</think> ": "so be it.</think>", "a </think> b": "", "</thinker>": "", "": "",
	} {
		if n, ok := ThoughtEnd(line); line[:n] != want || ok != (want != "") {
			t.Errorf("%q: %q %v, want %q", line, line[:n], ok, want)
		}
	}
}

func TestSkipCode(t *testing.T) {
	for line, want := range map[string]int{"`a` b": 3, "``a`b`` c": 7, "`a": 1, "````a````": 4, "`": 1} {
		if got := SkipCode(line, 0); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

func TestBodyIsTheLastThatIsNotEmpty(t *testing.T) {
	text := "## A\n\n## B\nb\n## A\none\n## A\n \u200b\n"
	if body, ok := Body(text, Sections(text), "a"); body != "one\n" || !ok {
		t.Errorf("%q %v", body, ok)
	}
	if body, ok := Body(text, Sections(text), "c"); ok {
		t.Errorf("%q", body)
	}
}

// Lines cover a text without gaps, and sections, code and items stay within it.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"# A\na\r\n~~~\n# b\r```", "**x**\n- y\n> z", "\u200b```html\n</think>", "1. `a`\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := 0
		for _, l := range Lines(text) {
			if l.Start != at || l.End < l.Start || l.Next < l.End || strings.ContainsAny(l.Of(text), "\r\n") {
				t.Fatalf("line %+v at %d", l, at)
			}
			at = l.Next
			Item(l.Of(text))
			Thought(l.Of(text))
			if n, ok := ThoughtEnd(l.Of(text)); ok && (n == 0 || l.Of(text)[n-1] != '>') {
				t.Fatalf("end of thinking at %d of %q", n, l.Of(text))
			}
			for k := range l.Of(text) {
				if n := SkipCode(l.Of(text), k); n < k || n > len(l.Of(text)) {
					t.Fatalf("code from %d to %d of %q", k, n, l.Of(text))
				}
			}
		}
		if at != len(text) || len(Code(text)) != len(Lines(text)) {
			t.Fatalf("lines end at %d of %d", at, len(text))
		}
		for _, s := range Sections(text) {
			if s.Start > s.End || s.End > len(text) || s.Level < 1 || s.Level > 7 {
				t.Fatalf("section %+v", s)
			}
		}
	})
}
