package expr

import (
	"dagrun.dev/internal/tree"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The reference names every function and loop of the language, and what it says is so.
func TestReference(t *testing.T) {
	env, err := baseEnv()
	if err != nil {
		t.Fatal(err)
	}
	lang, err := NewLang(nil)
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for _, f := range Functions() {
		for _, w := range regexp.MustCompile(`[\w.]+`).FindAllString(f.Use, -1) {
			words[w] = true
			words[w[strings.LastIndexByte(w, '.')+1:]] = true
		}
		e, problems := lang.Parse(f.Example)
		if e == nil {
			t.Errorf("%s: %v", f.Example, problems)
			continue
		}
		p, problems := e.Check(Decls{}, "bool")
		if p == nil {
			t.Errorf("%s: %v", f.Example, problems)
			continue
		}
		if v, err := p.Eval(nil, nil); err != nil || !v.Bool {
			t.Errorf("%s is %v (%v), want true", f.Example, v, err)
		}
	}
	var names []string
	for name := range env.Functions() {
		if !strings.ContainsAny(name, "@_") && name != "in" {
			names = append(names, name)
		}
	}
	for _, m := range env.Macros() {
		names = append(names, m.Function())
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if !words[name] {
			t.Errorf("the reference does not name %s", name)
		}
	}
}

// What slug makes is a name that ids may have, its own slug, and another for another text. What sum adds up is exact,
// or the expression fails.
func TestNamesAndSums(t *testing.T) {
	lang, err := NewLang(nil)
	if err != nil {
		t.Fatal(err)
	}
	eval := func(src string) (*tree.Value, error) {
		e, problems := lang.Parse(src)
		if e == nil {
			t.Fatalf("%s: %v", src, problems)
		}
		p, problems := e.Check(Decls{}, "")
		if p == nil {
			return nil, fmt.Errorf("%v", problems)
		}
		return p.Eval(nil, nil)
	}
	of := map[string]string{}
	for _, text := range []string{
		"07.csv", "a-b_c.D", "", " ", "-", ".", "..", ".a", "_a", "a/b", "a b", "a-b ", "ä", "ö", "日本", "a'b\"c", "a\nb",
		strings.Repeat("x", 64), strings.Repeat("x", 65), strings.Repeat("x", 66), strings.Repeat("ä", 500),
	} {
		v, err := eval("slug(" + strconv.Quote(text) + ")")
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`).MatchString(v.Str) || len(v.Str) > 80 {
			t.Errorf("slug(%q) is %q", text, v.Str)
		}
		if other, taken := of[v.Str]; taken {
			t.Errorf("%q and %q are both %q", text, other, v.Str)
		}
		of[v.Str] = text
	}
	for _, same := range []string{"07.csv", "a-b_c.D", strings.Repeat("x", 64)} {
		if of[same] != same {
			t.Errorf("%q does not stay as it is", same)
		}
	}
	for src, want := range map[string]string{
		"[].sum()": "0", "[1, 2].sum()": "3", "[0.5, 1].sum()": "1.5", "[9007199254740993, 2].sum()": "9007199254740995",
	} {
		if v, err := eval(src); err != nil || string(v.AppendJSON(nil)) != want {
			t.Errorf("%s is %v (%v), want %s", src, v, err, want)
		}
	}
	for _, src := range []string{"[9223372036854775807, 1].sum()", "['1'].sum()", "[[1]].sum()"} {
		if v, err := eval(src); err == nil {
			t.Errorf("%s is %v", src, v)
		}
	}
}
