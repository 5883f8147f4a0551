package manual

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/rules"
)

// A place is where an expression may stand in a specification, and what it may read there.
type place struct {
	where, gives string
	nodes, run   bool
	items        string // variables of its own
}

// places is held to what the compiler takes by a test.
var places = []place{
	{"`when` of a node", "bool", true, true, ""},
	{"`when` of a rule of a route", "bool", true, true, ""},
	{"`values` of a route", "any value", true, true, ""},
	{"`${...}` in the settings (`with`) of a kind that works", "as the text around it asks", true, false, ""},
	{"`${...}` in the settings of a control node (approval, route, ...)", "as above", true, true, ""},
	{"`${...}` in any other field of a node", "as above", false, false, ""},
	{"`foreach.in` of a node", "list", true, false, ""},
	{"`foreach.key` of a node", "text or number", true, false, "the item"},
	{"`${...}` in `foreach.node` of a node", "as above", true, false, "the item"},
	{"`in`, `key`, `if` and `vars` of a foreach block", "list, map or number; any", false, false, "the axes before"},
	{"`${...}` in `id` and `node` of a foreach block", "as above", false, false, "axes and vars"},
}

//go:embed expressions.txt
var expressionsDoc string

// expressions explains the language, or the functions whose row holds a word.
func (m *Manual) expressions(words []string) (Entry, error) {
	if len(words) == 0 {
		e := Entry{Name: "expressions", Is: "the language of conditions and ${...}"}
		e.Doc = expressionsDoc + "\nWhere it stands, and what it may read there:\n"
		for _, p := range places {
			e.Doc += "\n" + fmt.Sprintf("\t%-66s %s", strings.ReplaceAll(p.where, "`", ""), p.reads())
		}
		e.Doc += "\n\nFacts of the run:\n"
		for _, f := range expr.Facts {
			e.Doc += "\n" + fmt.Sprintf("\trun.%-16s %-7s %s", f.Name, f.Type, f.Doc)
		}
		group := ""
		for _, f := range expr.Functions() {
			if f.Group != group {
				group = f.Group
				e.Doc += "\n\n" + group + ":\n"
			}
			e.Doc += "\n\t" + f.Use
		}
		e.Doc += "\n\nOne of them: dagrun explain expressions split"
		return e, nil
	}
	word := strings.TrimSuffix(words[len(words)-1], "()") // math.floor
	var known []string
	e := Entry{Name: word, Is: "in expressions"}
	for _, f := range expr.Functions() {
		names := strings.FieldsFunc(f.Use, func(r rune) bool { return !isWord(r) })
		known = append(known, names...)
		if slices.Contains(names, word) {
			e.Doc += f.Use + "\n\t" + f.Gives + "\n\n"
			e.Example += f.Example + "\n"
		}
	}
	for _, f := range expr.Facts {
		if known = append(known, f.Name); f.Name == word {
			e.Doc += "run." + f.Name + " (" + f.Type + ")\n\t" + f.Doc + "\n\n"
		}
	}
	if e.Doc == "" {
		return Entry{}, fmt.Errorf("expressions have no %q%s", word, rules.OrKnown(word, known))
	}
	e.Doc, e.Example = strings.TrimSpace(e.Doc), strings.TrimSpace(e.Example)
	return e, nil
}

func isWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

func (p place) reads() string {
	reads := []string{"params"}
	if p.nodes {
		reads = append(reads, "nodes")
	}
	if p.run {
		reads = append(reads, "run")
	}
	if p.items != "" {
		reads = append(reads, p.items)
	}
	return strings.Join(reads, ", ")
}
