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
