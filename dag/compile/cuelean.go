package compile

import (
	"fmt"
	"strconv"
	"strings"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// Evaluating a specification against the whole schema takes most of the time of loading it,
// and the rules report better what the schema forbids. The evaluator is therefore given
// the library with package spec written anew, from the rules: every definition is open and keeps only its defaults, so
// that a specification sees the values it would see with the schema (those of a node's settings where it names the
// kind's definition; else they are filled in afterwards). What it evaluates to is checked by
// the rules, which a differential test holds to the schema.

// lean returns the library with definitions that hold defaults and forbid nothing.
func (s *Schema) lean() map[string][]byte {
	w := leanWriter{s: s, known: map[string]bool{}}
	var b strings.Builder
	for _, name := range keys(s.rules) {
		text, _ := w.body(s.rules[name])
		if name == "Kinds" {
			text = s.kindsByName()
		}
		fmt.Fprintf(&b, "#%s: %s\n", name, text)
	}
	return s.withSpec(b.String())
}

// kindsByName writes #Kinds with the name of each kind's definition.
func (s *Schema) kindsByName() string {
	var b strings.Builder
	b.WriteString("{\n")
	for _, k := range s.names {
		fmt.Fprintf(&b, "\t%q: #%s\n", k, s.rules["Node"].Field("with").Cases[k].Name)
	}
	return b.String() + "}"
}

// withSpec returns the library with another package spec.
func (s *Schema) withSpec(body string) map[string][]byte {
	lib := map[string][]byte{}
	for path, src := range s.lib {
		if !strings.HasPrefix(path, "spec/") {
			lib[path] = src
		}
	}
	lib["spec/spec.cue"] = []byte("package spec\n\n" + body)
	return lib
}

// A leanWriter writes rules as CUE that fills in defaults and forbids nothing.
type leanWriter struct {
	s     *Schema
	known map[string]bool // definitions by name: whether they hold a default
}

// rule returns CUE for r, and whether it fills anything in.
func (w *leanWriter) rule(r *rules.Rule) (text string, fills bool) {
	if r == nil || r.Name == "" || w.s.rules[r.Name] != r {
		return w.body(r)
	}
	fills, ok := w.known[r.Name]
	if !ok {
		_, fills = w.body(r)
		w.known[r.Name] = fills
	}
	return "#" + r.Name, fills
}

func (w *leanWriter) body(r *rules.Rule) (text string, fills bool) {
	switch {
	case r == nil || len(r.AnyOf) > 0:
	case r.Types == rules.TypesOf(tree.Map):
		return w.fields(r)
	case r.Types == rules.TypesOf(tree.List) && r.Items != nil && len(r.Prefix) == 0:
		if item, fills := w.rule(r.Items); fills {
			return "[..." + item + "]", true
		}
	}
	return "_", false
}

func (w *leanWriter) fields(r *rules.Rule) (text string, fills bool) {
	var b strings.Builder
	b.WriteString("{\n")
	add := func(format string, args ...any) {
		fills = true
		fmt.Fprintf(&b, format, args...)
	}
	for i := range r.Fields {
		f := &r.Fields[i]
		name := strconv.Quote(f.Name)
		sub, inside := w.rule(f.Rule)
		switch {
		case f.By != "": // picking the kind's definition for each node costs more than all the rest
		case f.Default != nil && f.Default.Kind == tree.Map:
			add("\t%s: %s\n", name, map[bool]string{true: sub, false: "{...}"}[inside])
		case f.Default != nil:
			add("\t%s: *%s | _\n", name, f.Default.AppendJSON(nil))
		case inside:
			add("\t%s?: %s\n", name, sub)
		}
	}
	for _, p := range r.Patterns {
		if sub, inside := w.rule(p.Rule); inside {
			key := "string"
			if len(p.Key.Match) == 1 {
				key = "=~" + strconv.Quote(p.Key.Match[0])
			}
			add("\t[%s]: %s\n", key, sub)
		}
	}
	b.WriteString("\t...\n}")
	return b.String(), fills
}
