package rules

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"dagrun.dev/internal/tree"
)

// unknown words the mistake of a name that the map does not know.
func (r *Rule) unknown(name string) string {
	names := make([]string, len(r.Fields))
	for i, f := range r.Fields {
		names[i] = f.Name
	}
	if len(names) == 0 {
		return "unknown field; none are allowed here"
	}
	if near := DidYouMean(name, names); near != "" {
		return "unknown field" + near // of two that are as near the first in the schema's order
	}
	sort.Strings(names)
	return "unknown field" + OrKnown(name, names)
}

// misplaced is unknown, but for a field that belongs into a field of its sibling (settings of the kind, say, written
// beside the kind), or beside the map that it stands in: from is the step from there.
func (r *Rule) misplaced(v *tree.Value, name string, from step) string {
	for i := range r.Fields {
		f := &r.Fields[i]
		if of := v.Get(f.By); of != nil {
			if rule := f.Cases[of.Str]; rule != nil && rule.Field(name) != nil {
				return fmt.Sprintf("unknown field here; it belongs under %q", f.Name)
			}
			continue
		}
		var by []string
		for value, rule := range f.Cases {
			if rule != nil && rule.Field(name) != nil {
				by = append(by, value)
			}
		}
		if slices.Sort(by); len(by) > 0 {
			return fmt.Sprintf("unknown field here; where %s is %s it belongs under %q", f.By, strings.Join(by, " or "), f.Name)
		}
	}
	if from.in != nil && from.in.Field(name) != nil {
		return fmt.Sprintf("unknown field here; it belongs beside %q", from.name)
	}
	return r.unknown(name)
}

// mistake words why v is refused: what is wanted, what is there, the nearest valid value.
func (r *Rule) mistake(v *tree.Value) string {
	s := r.wanted() + ", got " + Show(v)
	boolNoText := r.Types&TypesOf(tree.Bool, tree.String) == TypesOf(tree.Bool)
	if v.Kind == tree.String && boolNoText && words11[strings.ToLower(v.Str)] {
		s += "; write true or false"
	}
	switch text, meant := v.Plain(), r.meant(v); {
	case meant == "":
	case meant == text:
		s += "; put it in quotes"
	default:
		s += fmt.Sprintf("; did you mean %q?", meant)
	}
	if v.Kind == tree.String {
		s += DidYouMean(v.Str, r.texts())
	}
	// A text of several words may be meant as several items.
	if one := r.listOf(); v.Kind == tree.String && one != nil && one.takes(v) && !strings.ContainsAny(v.Str, " ,\t\n") {
		s += "; write [" + strconv.Quote(v.Str) + "]"
	}
	if v.Kind == tree.Map && r.Types != 0 && !r.Types.Has(tree.Map) && r.Types.Has(tree.String) && braces(v) {
		s += "; put text with {{ }} in quotes"
	}
	return s
}

// meant returns the text that was meant by a number, a truth value or a number in quotes where r
// wants a text: the same as text, else so many seconds; "" where r takes neither.
func (r *Rule) meant(v *tree.Value) string {
	if v.Kind > tree.String || v.Kind == tree.Null {
		return ""
	}
	texts := []string{v.Plain()}
	if _, err := strconv.ParseFloat(texts[0], 64); err == nil {
		texts = append(texts, texts[0]+"s")
	}
	for _, s := range texts {
		if r.takes(&tree.Value{Kind: tree.String, Str: s}) {
			return s
		}
	}
	return ""
}

// listOf returns the rule of the items where r asks for a list, or for a list among others; else nil.
func (r *Rule) listOf() *Rule {
	if len(r.AnyOf) == 0 && r.Types.Has(tree.List) && len(r.Prefix) == 0 {
		return r.Items
	}
	for _, a := range r.AnyOf {
		if one := a.listOf(); one != nil {
			return one
		}
	}
	return nil
}

// takes says whether a text satisfies r. It words no mistake.
func (r *Rule) takes(text *tree.Value) bool {
	return r.Types.Has(tree.String) && r.scalar(text) &&
		(len(r.AnyOf) == 0 || slices.ContainsFunc(r.AnyOf, func(a *Rule) bool { return a.takes(text) }))
}

// texts returns the strings that a value may be.
func (r *Rule) texts() []string {
	var names []string
	for _, e := range r.Enum {
		if e.Kind == tree.String {
			names = append(names, e.Str)
		}
	}
	for _, a := range r.AnyOf {
		names = append(names, a.texts()...)
	}
	return names
}

// words11 are the booleans of YAML 1.1 that are strings since.
var words11 = map[string]bool{"yes": true, "no": true, "on": true, "off": true, "y": true, "n": true}

// braces tells a map that was a template without quotes: {{ .x }} is a map of a map in YAML.
func braces(v *tree.Value) bool { return len(v.Fields) == 1 && v.Fields[0].Value.Kind == tree.Null }

// Wanting words what the rule asks for where there is nothing: "want an int from 0 to 20". It is
// wanted without what that says of a value that is there.
func (r *Rule) Wanting() string {
	w := r.wanted()
	if i := strings.Index(w, "want "); i > 0 {
		return w[i:]
	}
	return w
}

// wanted words what the rule asks for.
func (r *Rule) wanted() string {
	switch {
	case r == nil:
		return "want any value"
	case r.Want != "":
		return r.Want
	case len(r.Enum) == 1:
		return "want " + Show(r.Enum[0])
	case len(r.Enum) > 0:
		var all []string
		for _, e := range r.Enum {
			all = append(all, e.Plain())
		}
		return "want one of " + strings.Join(all, ", ")
	case len(r.AnyOf) > 0:
		var all []string
		for _, a := range r.AnyOf {
			w := strings.TrimPrefix(a.wanted(), "want ")
			if a.Types == TypesOf(tree.Map) && len(a.Fields) > 0 && a.Want == "" {
				w = a.shape()
			}
			all = append(all, w)
		}
		return "want " + strings.Join(all, ", or ")
	}
	s := "want " + r.Types.String()
	switch {
	case r.Types == TypesOf(tree.List) && r.Items != nil && r.Items.Types == TypesOf(tree.Map) && len(r.Items.Fields) > 0:
		s += " of " + r.Items.shape()
	case r.Types != TypesOf(tree.Map):
	case len(r.Fields) > 0:
		s += " " + r.shape()
	case len(r.Patterns) > 0:
		s += " {name: ...}"
	}
	if r.Min != nil && r.Max != nil && !r.MinX && !r.MaxX {
		return fmt.Sprintf("%s from %s to %s", article(s), number(*r.Min), number(*r.Max))
	}
	if r.Min != nil {
		s += map[bool]string{true: " >", false: " >="}[r.MinX] + number(*r.Min)
	}
	if r.Max != nil {
		s += map[bool]string{true: " <", false: " <="}[r.MaxX] + number(*r.Max)
	}
	for _, re := range r.Match {
		s += " matching " + re
	}
	for _, re := range r.NotMatch {
		s += " not matching " + re
	}
	for _, no := range r.Not {
		s += " other than " + strconv.Quote(no)
	}
	return s
}

// shape names a map by its required fields, else by all of them.
func (r *Rule) shape() string {
	var must, all []string
	for _, f := range r.Fields {
		all = append(all, f.Name)
		if f.Required {
			must = append(must, f.Name)
		}
	}
	if len(must) == 0 {
		must = all
	}
	return "{" + strings.Join(must, ", ") + "}"
}

func article(s string) string {
	if w, ok := strings.CutPrefix(s, "want int"); ok {
		return "want an int" + w
	}
	return strings.Replace(s, "want ", "want a ", 1)
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Show prints a value for a message: its type, and what it is where that is short.
func Show(v *tree.Value) string {
	switch v.Kind {
	case tree.Null:
		return "nothing (null)"
	case tree.List:
		return "a list of " + count(len(v.Items), "item")
	case tree.Map:
		return "a map of " + count(len(v.Fields), "field")
	case tree.String:
		s := v.Str
		if r := []rune(s); len(r) > 40 {
			s = string(r[:37]) + "..."
		}
		return "string " + strconv.Quote(s)
	}
	return typeNames[v.Kind] + " " + v.Plain()
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
