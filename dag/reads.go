package dag

import (
	"slices"
	"strings"

	"dagrun.dev/internal/glob"
)

// IsPattern reports whether an entry of Node.Reads stands for all artifacts that match it: part/*.tsv. See Matches.
func IsPattern(read string) bool { return glob.Is(read) }

// Matches reports whether an entry of Node.Reads stands for an artifact: it is its name, or a pattern that the name
// matches, as a folder does without the slash at its end.
func Matches(read, artifact string) bool {
	switch {
	case read == artifact:
		return true
	case !IsPattern(read):
		return false
	case !IsFolder(read):
		artifact = strings.TrimSuffix(artifact, "/")
	}
	return glob.Match(read, artifact)
}

// IsFolder reports whether an artifact is a folder with all that is in it: site/.
func IsFolder(artifact string) bool { return strings.HasSuffix(artifact, "/") }

// ReadsArtifact reports whether a node reads an artifact, by its name or by a pattern.
func (n *Node) ReadsArtifact(name string) bool {
	return slices.ContainsFunc(n.Reads, func(read string) bool { return Matches(read, name) })
}

// A pattern is an entry of Node.Reads that is one, and the nodes that have it, in index order.
type pattern struct {
	text  string
	reads []int32
}

// readPattern enters a node that reads a pattern.
func (us *uses) readPattern(text string, i int32) {
	k := slices.IndexFunc(us.patterns, func(p pattern) bool { return p.text == text })
	if k < 0 {
		k = len(us.patterns)
		us.patterns = append(us.patterns, pattern{text: text})
	}
	us.patterns[k].reads = appendOnce(us.patterns[k].reads, i)
}

// matched returns the nodes that read an artifact by a pattern, or a file in a folder that is one, in index order.
func (us *uses) matched(name string) (reads []int32) {
	if strings.HasPrefix(name, besideSpec) { // no artifact
		return nil
	}
	if IsFolder(name) {
		for _, n := range us.names {
			if n != name && strings.HasPrefix(n, name) {
				reads = merged(reads, us.byName[n].reads)
			}
		}
	}
	for _, p := range us.patterns {
		if Matches(p.text, name) {
			reads = merged(reads, p.reads)
		}
	}
	return reads
}

// merged returns the union of two sorted lists, sorted.
func merged(a, b []int32) []int32 {
	if len(b) == 0 {
		return a
	}
	out := slices.Concat(a, b)
	slices.Sort(out)
	return slices.Compact(out)
}
