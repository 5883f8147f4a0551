package tree

import (
	"strconv"
	"strings"
)

// longName is how much of a name a path shows.
const longName = 120

// Join returns the path of a field: nodes.a, with quotes around names that a dotted path could
// not tell apart. A name that is too long for a message is cut.
func Join(path, name string) string {
	if len(name) > longName {
		name = strings.ToValidUTF8(name[:longName], "") + "..."
	}
	if name == "" || strings.ContainsAny(name, ".[]\" ") || strings.ContainsFunc(name, unprintable) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

// unprintable tells characters that a terminal would obey or hide: a name in a message shows them escaped.
func unprintable(r rune) bool { return !strconv.IsPrint(r) }

// At returns the path of an item: nodes.a.needs[0].
func At(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// Within says whether one path is another or lies below it. Everything lies below the empty one.
func Within(path, around string) bool {
	rest, ok := strings.CutPrefix(path, around)
	return ok && (rest == "" || around == "" || rest[0] == '.' || rest[0] == '[')
}
