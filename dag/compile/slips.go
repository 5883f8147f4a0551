package compile

import (
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/literal"

	"dagrun.dev/internal/tree"
)

// What CUE says of a mistake in what a template is given, it says where the template uses it, once for
// each node that the template makes.
var inTemplates = regexp.MustCompile(`(required field missing|undefined field): ([^ ;:,]+)`)

// atOrigin moves such diagnostics to where the user made the mistake: the map that lacks the field, the text
// that names nothing. One that is nowhere to be found in the user's files stays where it is.
func (x explainer) atOrigin(ds tree.Diagnostics) tree.Diagnostics {
	origins := map[string]tree.Diagnostics{}
	var out tree.Diagnostics
	for _, d := range ds {
		m := inTemplates.FindStringSubmatch(d.Text)
		if m == nil {
			out = append(out, d)
			continue
		}
		at, known := origins[m[0]]
		if !known {
			at = x.origin(m[0], m[1], m[2])
			origins[m[0]] = at
			out = append(out, at...)
		}
		if len(at) == 0 {
			out = append(out, d)
		}
	}
	return unrepeated(out)
}

// origin finds in the user's files where a field is missing, or where a text names an undefined one.
func (x explainer) origin(text, says, name string) (out tree.Diagnostics) {
	for _, k := range keys(x.index.entries) { // sorted, for equal messages each time
		labels := strings.Split(k, "\x00")
		for _, e := range x.index.entries[k] {
			d := tree.Diagnostic{Pos: x.index.pos(e.value), Path: x.path(labels), Text: text}
			if says == "undefined field" {
				if s, err := literal.Unquote(e.text); e.text != "" && err == nil && s == name {
					d.Text += near(name, x.names())
					out = append(out, d)
				}
			} else if !e.constant && lacks(x.root, labels, name) {
				out = append(out, d)
				break
			}
		}
	}
	return out
}

// names are the names of all fields in the user's files, sorted.
func (x explainer) names() []string {
	var out []string
	for _, list := range x.index.children {
		out = append(out, list...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// lacks reports whether a map has a required field of a name and no value for it. What stands in definitions and hidden
// fields are templates themselves.
func lacks(v cue.Value, labels []string, name string) bool {
	for _, l := range labels {
		if strings.HasPrefix(l, "_") || strings.HasPrefix(l, "#") {
			return false
		}
		v = field(v, l)
	}
	for sel := range fields(v) {
		if sel.ConstraintType() == cue.RequiredConstraint && sel.Unquoted() == name {
			return true
		}
	}
	return false
}

// unrepeated leaves out what was said of a value before, where it is referred to from elsewhere.
func unrepeated(ds tree.Diagnostics) tree.Diagnostics {
	type said struct{ text, path string }
	all := make(map[said]bool, len(ds))
	for _, d := range ds {
		all[said{d.Text, d.Path}] = true
	}
	return slices.DeleteFunc(ds, func(d tree.Diagnostic) bool {
		for rest, found := d.Path, true; found; {
			if _, rest, found = strings.Cut(rest, "."); rest != "" && all[said{d.Text, rest}] {
				return true
			}
		}
		return false
	})
}
