package manual

import (
	"strings"
	"testing"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/internal/yamltree"
	"dagrun.dev/nodes/all"
)

func theManual(t *testing.T) *Manual {
	t.Helper()
	s, err := schema.For(all.Registry())
	if err != nil {
		t.Fatal(err)
	}
	return New(s)
}

// each calls f for every definition that users may write, and every field of it.
func (m *Manual) each(f func(path, doc string, r *rules.Rule)) {
	for _, d := range m.s.Definitions() {
		r := m.s.Rule(d)
		if strings.HasSuffix(d, "Kinds") || d == "Kind" || d == "Undo" {
			continue
		}
		f(d, r.Doc, r)
		for i := range r.Fields {
			e := m.field(d, member{&r.Fields[i], d})
			doc := e.Doc
			if e.Example != "" {
				doc += "\nExample:\n" + e.Example
			}
			f(e.Name, doc, r.Fields[i].Rule)
		}
	}
}

// Every field is explained, and every kind and category with an example or what to do.
func TestEverythingIsExplained(t *testing.T) {
	m := theManual(t)
	m.each(func(path, doc string, r *rules.Rule) {
		if len(doc) < 10 && (strings.Contains(path, ".") || len(r.Fields) > 0) {
			t.Errorf("%s is not explained: write a comment above it, a sentence", path)
		}
	})
	for _, k := range m.s.Kinds {
		if _, example := split(m.s.Settings(k).Doc); example == "" {
			t.Errorf("kind %s has no example", k)
		}
	}
	for _, c := range m.categories() {
		if what, todo := m.meaning(c); what == "" || todo == "" {
			t.Errorf("category %s: say in the comment of its row what happened and, behind \"To do:\", what to type", c)
		}
	}
}

// What a mistake says is wanted is for people: a pattern has words of its own in the schema, error("want ...").
func TestNoPatternIsShown(t *testing.T) {
	theManual(t).each(func(path, _ string, r *rules.Rule) {
		if w := r.Wanting(); strings.Contains(w, " matching ") {
			t.Errorf("%s: %s", path, w)
		}
	})
}

// Examples in comments are right: a kind's is a node, any other the field or definition that it stands at.
func TestExamplesAreValid(t *testing.T) {
	m := theManual(t)
	n := 0
	m.each(func(path, doc string, r *rules.Rule) {
		_, example := split(doc)
		if example == "" {
			return
		}
		n++
		v, _, err := yamltree.Parse("example", []byte(example), tree.Limits{})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return
		}
		rule := r
		if owner, _, ok := strings.Cut(path, "."); ok { // the field, alone or with others of its definition
			rule = &rules.Rule{}
			for _, f := range m.s.Rule(owner).Fields {
				f.Required = false
				rule.Fields = append(rule.Fields, f)
			}
		} else if kind := strings.ToLower(path); m.s.Settings(kind) != nil { // id: {kind: ...}
			rule = &rules.Rule{Patterns: []rules.Pattern{{Key: &rules.Rule{}, Rule: m.s.Rule("Node")}}}
		}
		if mistakes, _ := rule.CheckTemplates(v, path); len(mistakes) > 0 {
			t.Errorf("%s: the example is wrong: %v", path, mistakes)
		}
	})
	if n < len(m.s.Kinds) {
		t.Errorf("%d examples found", n)
	}
}
