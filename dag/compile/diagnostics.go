package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dagrun.dev/internal/tree"
)

// mostShown is how many mistakes are shown: a generated specification may hold one of them
// ten thousand times.
const mostShown = 100

// firstOf sorts diagnostics and leaves the number in the place of those beyond the first hundred.
func firstOf(ds tree.Diagnostics, what string) tree.Diagnostics {
	ds = sorted(ds)
	if more := len(ds) - mostShown; more > 0 {
		ds = append(ds[:mostShown:mostShown], tree.Diagnostic{Text: fmt.Sprintf("and %d more %s", more, what)})
	}
	return ds
}

// samePlace is how many different mistakes are shown at one place: a template that is wrong is wrong
// in every node made from it.
const samePlace = 3

// sorted orders diagnostics by place, then path. One mistake in a template or behind an alias
// shows at many paths: it is shown once, with their number.
func sorted(ds tree.Diagnostics) tree.Diagnostics {
	slices.SortStableFunc(ds, func(a, b tree.Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Pos.File.String(), b.Pos.File.String()), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Col, b.Pos.Col), cmp.Compare(a.Text, b.Text), cmp.Compare(len(a.Path), len(b.Path)),
			cmp.Compare(a.Path, b.Path))
	})
	var out tree.Diagnostics
	shown, more := 0, 0 // at the place at hand
	for i := 0; i < len(ds); {
		same := 1
		for _, d := range ds[i+1:] {
			if d.Pos != ds[i].Pos || d.Text != ds[i].Text || d.Pos.Line == 0 && d.Path != ds[i].Path {
				break
			}
			same++
		}
		d := ds[i]
		if times := len(slices.Compact(ds[i:i+same:i+same])) - 1; times == 1 {
			d.Text += " (once more from here)"
		} else if times > 1 {
			d.Text += fmt.Sprintf(" (%d times more from here)", times)
		}
		i += same
		if shown < samePlace || d.Pos.Line == 0 {
			out = append(out, d)
			shown++
		} else {
			more += same
		}
		if i == len(ds) || ds[i].Pos != d.Pos {
			if more > 0 {
				out[len(out)-1].Text += fmt.Sprintf(" (and %d more here)", more)
			}
			shown, more = 0, 0
		}
	}
	return out
}

// paths are the paths of values that something is said of already.
type paths map[string]bool

func pathsOf(ds tree.Diagnostics) paths {
	out := paths{}
	for _, d := range ds {
		out[d.Path] = true
	}
	return out
}

// cover says whether a path is among them or lies below one of them.
func (ps paths) cover(path string) bool {
	for path != "" && !ps[path] {
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return path != ""
}
