package dag

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// PolicyParts returns what decides how a failure of node i goes on and ends, where the failure was made of
// attempts that failed in certain categories. It is no part of a node's fingerprint: a success is good whatever
// would have been done about a failure. A node that failed is decided again when one of these parts changes. Parts
// that are empty are left out; their order is fixed.
func PolicyParts(p *Plan, i int32, categories []string) []Part {
	out := make([]Part, 0, 8)
	f := parts{emit: func(name string, raw []byte) {
		sum := sha256.Sum256(raw)
		out = append(out, Part{name, hex.EncodeToString(sum[:])})
	}}
	n := &p.Nodes[i]
	if n.OnFail != "fail" { // what none means
		f.text("onFail", n.OnFail)
	}
	f.part("retry", RetryFor(n, categories))
	if n.Timeout != (Timeout{}) {
		f.part("timeout", n.Timeout)
	}
	if b, ok := p.BreakerByName(n.Breaker); ok {
		f.part("breaker", b)
	}
	if n.Undo != nil {
		f.part("compensate", n.Undo)
	}
	if n.Again > 0 {
		f.part("again", n.Again)
	}
	if n.Reserve != (Amount{}) {
		f.part("reserve", n.Reserve)
	}
	f.text("effect", n.Effect)
	if table := categoriesOf(p, categories); len(table) > 0 {
		f.part("categories", table)
	}
	return out
}

// RetryFor is a node's retry policy without what it says of other categories.
func RetryFor(n *Node, categories []string) Retry {
	r := n.Retry
	r.On = slices.DeleteFunc(slices.Clone(r.On), func(c CategoryPolicy) bool { return !slices.Contains(categories, c.Category) })
	return r
}

func categoriesOf(p *Plan, names []string) (table []Category) {
	for _, name := range names {
		if c, ok := p.CategoryByName(name); ok {
			table = append(table, *c)
		}
	}
	return table
}
