package compile

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"

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

// sorted orders diagnostics by place, then path. One mistake in a template or behind an alias
// shows at many paths: it is shown once, with their number.
func sorted(ds tree.Diagnostics) tree.Diagnostics {
	sort.SliceStable(ds, func(i, j int) bool {
		a, b := ds[i], ds[j]
		return cmp.Or(cmp.Compare(a.Pos.File.String(), b.Pos.File.String()), cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Col, b.Pos.Col), cmp.Compare(a.Text, b.Text), cmp.Compare(len(a.Path), len(b.Path)),
			cmp.Compare(a.Path, b.Path)) < 0
	})
	var out tree.Diagnostics
	for i := 0; i < len(ds); {
		j := i + 1
		for j < len(ds) && ds[j].Pos == ds[i].Pos && ds[j].Text == ds[i].Text && (ds[i].Pos.Line > 0 || ds[j].Path == ds[i].Path) {
			j++
		}
		out = append(out, ds[i])
		if more := len(slices.Compact(ds[i:j])) - 1; more > 0 {
			times := "once"
			if more > 1 {
				times = strconv.Itoa(more) + " times"
			}
			out[len(out)-1].Text += " (" + times + " more from here)"
		}
		i = j
	}
	return out
}

// covered says whether one of ds is about path or something around it.
func covered(path string, ds tree.Diagnostics) bool {
	return slices.ContainsFunc(ds, func(d tree.Diagnostic) bool { return d.Path != "" && tree.Within(path, d.Path) })
}

// located gives a mistake without a path one.
func located(err error, path string) error {
	var d tree.Diagnostic
	if errors.As(err, &d) && d.Path == "" {
		d.Path = path
		return d
	}
	return err
}
