package dag

import (
	"slices"
	"strings"

	"dagrun.dev/internal/glob"
)

// A Selection names a part of a plan; the zero value is all of it. A name is the id of a node, a pattern of ids, or a
// group: what ends in a slash is every node whose group, or whose id, begins with it. Items of a run-time foreach go
// with their foreach node, unless some of them are named.
type Selection struct {
	Only  []string `json:"only,omitempty"`  // these and nothing else; not together with the others
	From  []string `json:"from,omitempty"`  // these and what depends on them
	Until []string `json:"until,omitempty"` // these and what they need; with From: what lies between
}

// All reports whether nothing is left out.
func (s *Selection) All() bool { return len(s.Only)+len(s.From)+len(s.Until) == 0 }

// Equal reports whether two selections say the same.
func (s *Selection) Equal(o *Selection) bool {
	return slices.Equal(s.Only, o.Only) && slices.Equal(s.From, o.From) && slices.Equal(s.Until, o.Until)
}

// String is the selection in the words of the command line: "--from a --until b".
func (s Selection) String() string {
	var words []string
	for _, part := range []struct {
		flag  string
		names []string
	}{{"--only ", s.Only}, {"--from ", s.From}, {"--until ", s.Until}} {
		for _, name := range part.names {
			words = append(words, part.flag+name)
		}
	}
	return strings.Join(words, " ")
}

// LeftOut returns which nodes of g a selection leaves out, by index; nil = none. Unknown names name nothing.
func (s *Selection) LeftOut(g *Graph) []bool {
	if s.All() {
		return nil
	}
	in := slices.Repeat([]bool{true}, g.Len())
	for _, part := range []struct {
		names []string
		next  func(int32) []int32
	}{{s.Only, nowhere}, {s.From, g.Dependents}, {s.Until, g.Needs}} {
		if len(part.names) == 0 {
			continue
		}
		reached := g.Reach(g.Named(part.names...), part.next)
		for i := range in {
			in[i] = in[i] && reached[i]
		}
	}
	s.takeItems(g, in)
	for i := range in {
		in[i] = !in[i]
	}
	return in
}

func nowhere(int32) []int32 { return nil }

// takeItems has items go with their foreach node, but for one of which items are named.
func (s *Selection) takeItems(g *Graph, in []bool) {
	apart := map[int32]bool{}
	for _, i := range g.Named(slices.Concat(s.Only, s.From, s.Until)...) {
		if of, ok := g.Origin(i); ok {
			apart[of] = true
		}
	}
	for i := int32(g.Base()); int(i) < g.Len(); i++ { // an expansion stands behind its foreach node
		if of, _ := g.Origin(i); in[of] && !apart[of] {
			in[i] = true
		}
	}
}

// All is the name of all nodes. Of those that are to run again it means all but what costs money or must not be
// repeated unasked: that is looked at again, and runs where it would be given something else.
const All = "*"

// Named returns the nodes that names say, as in a Selection, in index order and each once.
func (g *Graph) Named(names ...string) (list []int32) {
	for i, in := range g.named(names) {
		if in {
			list = append(list, int32(i))
		}
	}
	return list
}

func (g *Graph) named(names []string) []bool {
	in := make([]bool, g.Len())
	for _, name := range names {
		if i, ok := g.Index(name); ok {
			in[i] = true
		}
		if name == All {
			for i := range in {
				in[i] = true
			}
		}
		folder, pattern := strings.HasSuffix(name, "/"), glob.Is(name)
		if !folder && !pattern {
			continue
		}
		for i := range g.Plan.Nodes {
			n := &g.Plan.Nodes[i]
			in[i] = in[i] || pattern && glob.Match(name, n.ID) ||
				folder && (strings.HasPrefix(n.Group+"/", name) || strings.HasPrefix(n.ID, name))
		}
	}
	return in
}

// Reach returns the nodes at the indexes of list, and all to which next leads from them: g.Dependents or g.Needs.
func (g *Graph) Reach(list []int32, next func(int32) []int32) []bool {
	seen := make([]bool, g.Len())
	for todo := slices.Clone(list); len(todo) > 0; {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[i] {
			seen[i] = true
			todo = append(todo, next(i)...)
		}
	}
	return seen
}

// Redone returns the nodes at the indexes of list and what runs again when they do: all that depends on them but for
// one (-1 = no such), and foreach nodes whose items need items that go, with what depends on those.
func (g *Graph) Redone(list []int32, without int32) []bool {
	for {
		in := g.Reach(list, func(i int32) []int32 {
			if i == without {
				return nil
			}
			return g.Dependents(i)
		})
		n := len(list)
		for i := int32(g.base); int(i) < g.Len(); i++ {
			root, _ := g.Origin(i)
			if _, yes := g.Follows(i, func(of int32) bool { return in[of] && of != without }); yes && !in[root] {
				list = append(slices.Clip(list), root)
			}
		}
		if len(list) == n {
			if without >= 0 && !slices.Contains(list, without) {
				in[without] = false
			}
			return in
		}
	}
}
