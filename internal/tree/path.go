package tree

import (
	"strconv"
	"strings"
)

// Join returns the path of a field: nodes.a, with quotes around names that a dotted path could
// not tell apart.
func Join(path, name string) string {
	if name == "" || strings.ContainsAny(name, ".[]\" \t\n\r") {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// At returns the path of an item: nodes.a.needs[0].
func At(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
