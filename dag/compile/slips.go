package compile

import (
	"slices"
	"sort"
	"strconv"
	"strings"

	"cuelang.org/go/cue"
	"cuelang.org/go/cue/literal"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// What CUE says of a slip in what a template is given, it says where the template uses it, once for
// each node that the template makes.
const (
	saysMissing   = "required field missing: "
	saysUndefined = "undefined field: "
)

// slips moves such diagnostics to where the user made the slip: the map that lacks the field, the text
// that names nothing. One that is nowhere to be found in the user's files stays where it is.
func (x explainer) slips(ds tree.Diagnostics, v cue.Value) tree.Diagnostics {
	found := map[string]tree.Diagnostics{}
	var out tree.Diagnostics
	for _, d := range ds {
		var at tree.Diagnostics
		name := ""
		for _, says := range []string{saysMissing, saysUndefined} {
			if _, after, ok := strings.Cut(d.Text, says); ok {
				name, _, _ = strings.Cut(after, " ")
				name = strings.TrimRight(name, ";:,")
				known := false
				if at, known = found[says+name]; !known {
					at = x.origin(says, name, v)
					found[says+name] = at
					out = append(out, at...)
				}
				break
			}
		}
		if name == "" || len(at) == 0 {
			out = append(out, d)
		}
	}
	return unrepeated(out)
}

// origin finds in the user's files where a field is missing, or where a text names an undefined one.
func (x explainer) origin(says, name string, v cue.Value) tree.Diagnostics {
	paths := make([]string, 0, len(x.index.entries))
	for k := range x.index.entries {
		paths = append(paths, k)
	}
	sort.Strings(paths) // for equal messages each time
	var out tree.Diagnostics
	for _, k := range paths {
		labels := strings.Split(k, "\x00")
		for _, e := range x.index.entries[k] {
			d := tree.Diagnostic{Pos: x.index.pos(e.value), Path: x.path(labels), Text: says + name}
			if says == saysUndefined && e.text != "" && unquoted(e.text) == name {
				if near := rules.Nearest(name, x.names()); near != "" {
					d.Text += "; did you mean " + strconv.Quote(near) + "?"
				}
				out = append(out, d)
			}
			if says == saysMissing && !e.constant && lacks(lookUp(v, labels), name) {
				out = append(out, d)
				break
			}
		}
	}
	return out
}

func unquoted(text string) string {
	s, err := literal.Unquote(text)
	if err != nil {
		return ""
	}
	return s
}

// names are the names of all fields in the user's files, sorted.
func (x explainer) names() []string {
	var out []string
	for _, list := range x.index.children {
		out = append(out, list...)
	}
	sort.Strings(out)
	return slices.Compact(out)
}

// lookUp follows labels; hidden fields are not found, nor what stands in definitions: those are templates
// themselves.
func lookUp(v cue.Value, labels []string) cue.Value {
	for _, l := range labels {
		sel := cue.Str(l)
		if n, err := strconv.Atoi(l); err == nil && v.IncompleteKind() == cue.ListKind {
			sel = cue.Index(n)
		}
		if strings.HasPrefix(l, "_") || strings.HasPrefix(l, "#") {
			return cue.Value{}
		}
		v = v.LookupPath(cue.MakePath(sel))
	}
	return v
}

// lacks reports whether a map has a required field of a name and no value for it.
func lacks(v cue.Value, name string) bool {
	if !v.Exists() || v.IncompleteKind() != cue.StructKind {
		return false
	}
	it, err := v.Fields(cue.Optional(true))
	if err != nil {
		return false
	}
	for it.Next() {
		if s := it.Selector(); s.ConstraintType() == cue.RequiredConstraint && s.Unquoted() == name {
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
