package rules

import (
	"strings"

	"dagrun.dev/internal/tree"
)

// Types is a set of types: bit k is set for tree.Kind k. Empty means any.
type Types uint8

// TypesOf returns the set of kinds.
func TypesOf(kinds ...tree.Kind) Types {
	var t Types
	for _, k := range kinds {
		t |= 1 << k
	}
	return t
}

// Number is int or float.
const Number = Types(1<<tree.Int | 1<<tree.Float)

// Has says whether a value of kind k is allowed.
func (t Types) Has(k tree.Kind) bool { return t == 0 || t&(1<<k) != 0 }

var typeNames = [...]string{"null", "bool", "int", "float", "string", "list", "map"}

// Names lists the set; int and float together are "number".
func (t Types) Names() []string {
	var out []string
	for k, name := range typeNames {
		bit := Types(1 << k)
		switch {
		case t&bit == 0:
		case t&Number == Number && tree.Kind(k) == tree.Int:
			out = append(out, "number")
		case t&Number == Number && tree.Kind(k) == tree.Float:
		default:
			out = append(out, name)
		}
	}
	return out
}

// String prints the set for messages: "int or string".
func (t Types) String() string {
	if t == 0 {
		return "any value"
	}
	return strings.Join(t.Names(), " or ")
}
