package compile

import (
	"path"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
)

// localPath checks a path as it may stand in a plan: relative, clean, with slashes, not outside.
func (b *builder) localPath(v *tree.Value, where string) bool {
	s := v.Str
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
		b.fail(v.Pos, where, "the path is too long: want at most %d characters, and at most %d between slashes", longestPath, longestFile)
	case path.Clean(s) != s:
		b.fail(v.Pos, where, "want the path in its plain form, %s, got %s", strconv.Quote(path.Clean(s)), strconv.Quote(s))
	default:
		return true
	}
	return false
}

func (b *builder) duration(v *tree.Value, path, name string) dag.Duration {
	d, err := time.ParseDuration(v.Str)
	if err != nil || d < 0 {
		b.fail(v.Pos, tree.Join(path, name), "want a duration below 292 years, got %q", v.Str)
	}
	return dag.Duration(d)
}

func (b *builder) usd(v *tree.Value, path, name string) dag.USD {
	u, err := dag.Dollars(float(v))
	if err != nil || u < 0 {
		b.fail(v.Pos, tree.Join(path, name), "want an amount in US dollars, got %s", plain(v))
	}
	return u
}

func str(v *tree.Value) string {
	if v == nil || v.Kind != tree.String {
		return ""
	}
	return v.Str
}

func num(v *tree.Value) int { return int(whole(v)) }

func whole(v *tree.Value) int64 {
	if v == nil {
		return 0
	}
	return v.Int
}

// exactly reads a whole number that JSON can hold: a plan has a digest.
func (b *builder) exactly(v *tree.Value, path, name string) int64 {
	n := whole(v)
	if n > mostExact || n < -mostExact {
		b.fail(v.Pos, tree.Join(path, name), "%d is beyond 2^53 and cannot be kept exactly in JSON", n)
	}
	return n
}

const mostExact = 1 << 53

func float(v *tree.Value) float64 {
	switch {
	case v == nil:
		return 0
	case v.Kind == tree.Int:
		return float64(v.Int)
	}
	return v.Float
}

func strs(v *tree.Value) []string {
	if v == nil || len(v.Items) == 0 {
		return nil
	}
	out := make([]string, len(v.Items))
	for i, x := range v.Items {
		out[i] = x.Str
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
