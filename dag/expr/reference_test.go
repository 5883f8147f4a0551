package expr

import (
	"regexp"
	"slices"
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
