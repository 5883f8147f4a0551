package dag

import (
	"slices"
	"strings"

	"dagrun.dev/internal/glob"
)

// InputsOf returns the input files of a node that stand beside the specification, by path: those of the plan that its
// Inputs name.
func (p *Plan) InputsOf(n *Node) (list []File) {
	for _, name := range n.Inputs {
		pattern, literal := inputPattern(name)
		byPath := func(f File, path string) int { return strings.Compare(f.Path, path) }
		k, _ := slices.BinarySearchFunc(p.Inputs, literal, byPath)
		for ; k < len(p.Inputs) && strings.HasPrefix(p.Inputs[k].Path, literal); k++ {
			if MatchesInput(name, p.Inputs[k].Path) {
				list = append(list, p.Inputs[k])
			}
			if pattern == literal {
				break
			}
		}
	}
	if len(n.Inputs) > 1 {
		slices.SortFunc(list, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
		list = slices.Compact(list)
	}
	return list
}

// MatchesInput reports whether an entry of Node.Inputs stands for a file: it is its path, whatever characters that has,
// a pattern that the path matches, or with a slash at its end a folder that it lies in.
func MatchesInput(name, path string) bool {
	pattern, literal := inputPattern(name)
	return path == name || pattern != literal && glob.Match(pattern, path)
}

// inputPattern returns an entry of Node.Inputs as a pattern, and what all that matches it begins with.
func inputPattern(name string) (pattern, literal string) {
	if strings.HasSuffix(name, "/") {
		name += "**"
	}
	return name, glob.Literal(name)
}
