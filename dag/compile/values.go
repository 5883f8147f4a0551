package compile

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/internal/tree"
)

// localPath checks a path as it may stand in a plan: relative, clean, with slashes, not outside.
func (b *builder) localPath(v *tree.Value, where string) bool {
	s := v.Str
	if len(s) > 1 {
		s = strings.TrimSuffix(s, "/") // a folder
	}
	switch {
	case strings.Contains(s, "${"):
		b.fail(v.Pos, where, "a path may not depend on recorded values: %s", s)
	case s == "" || strings.HasPrefix(s, "/") || strings.ContainsAny(s, "\\\x00"):
		b.fail(v.Pos, where, "want a relative path with slashes, got %s", strconv.Quote(s))
	case path.Clean(s) == ".." || strings.HasPrefix(path.Clean(s), "../"):
		b.fail(v.Pos, where, "the path %s leads out of its folder", strconv.Quote(s))
	case path.Clean(s) == ".":
		b.fail(v.Pos, where, "want the path of a file, got the folder itself, %s", strconv.Quote(s))
	case longPart(s) > longestFile || len(s) > longestPath:
		b.fail(v.Pos, where,
			"the path is too long: want at most %d characters, and at most %d between slashes", longestPath, longestFile)
	case path.Clean(s) != s:
		b.fail(v.Pos, where, "want the path in its plain form, %s, got %s", strconv.Quote(path.Clean(s)), strconv.Quote(s))
	default:
		return true
	}
	return false
}

func strs(v *tree.Value) (out []string) {
	for _, x := range v.List() {
		out = append(out, x.Str)
	}
	return out
}

// Names become files and folders, whose names file systems bound.
const (
	longestPart = 200  // characters of a name, or of a part of an id
	longestID   = 600  // characters of an id
	longestFile = 255  // bytes between the slashes of a path
	longestPath = 2000 // bytes of a path
)

// longPart is the length of the longest part between slashes.
func longPart(s string) int {
	n := 0
	for part := range strings.SplitSeq(s, "/") {
		n = max(n, len(part))
	}
	return n
}

// fold is how ids compare: case does not count.
func fold(s string) string { return strings.ToLower(s) }

func isIdent(s string) bool {
	return s != "" && identifier.FindString(s) == s
}

// union appends what is new, keeping order.
func union(a, more []string) []string {
	for _, s := range more {
		if !slices.Contains(a, s) {
			a = append(a[:len(a):len(a)], s)
		}
	}
	return a
}

// sortedMap returns the fields of a map by name.
func sortedMap(v *tree.Value) []tree.Field {
	if len(v.Map()) < 2 {
		return v.Map()
	}
	byName := func(a, b tree.Field) int { return strings.Compare(a.Name, b.Name) }
	return slices.SortedStableFunc(slices.Values(v.Map()), byName)
}

// whereIs returns a text that the kind found in the settings v, with the place and path of the first string there that
// equals it, else those of v.
func whereIs(s string, v *tree.Value, path string) (*tree.Value, string) {
	out := &tree.Value{Kind: tree.String, Str: s, Pos: v.Pos}
	if at, steps := locate(s, v); at != nil {
		out.Pos, path = at.Pos, path+steps
	}
	return out, path
}

// locate returns the first string of v that equals s, or nil, and the end of its path.
func locate(s string, v *tree.Value) (*tree.Value, string) {
	if v.Kind == tree.String && v.Str == s {
		return v, ""
	}
	for i, x := range v.Items {
		if at, steps := locate(s, x); at != nil {
			return at, tree.At("", i) + steps
		}
	}
	for _, f := range v.Fields {
		if at, steps := locate(s, f.Value); at != nil {
			return at, "." + tree.Join("", f.Name) + steps
		}
	}
	return nil, ""
}

// at returns the value at a path within settings, or the nearest one around it.
func at(v *tree.Value, path string) *tree.Value {
	for _, step := range strings.FieldsFunc(path, isStep) {
		next := child(v, step)
		if next == nil {
			break
		}
		v = next
	}
	return v
}

// child returns the field or item of v that a label names, or nil.
func child(v *tree.Value, label string) *tree.Value {
	if v.Kind != tree.List {
		return v.Get(label)
	}
	if i, err := strconv.Atoi(label); err == nil && i >= 0 && i < len(v.Items) {
		return v.Items[i]
	}
	return nil
}
