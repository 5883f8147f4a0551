package dag

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// A Part is one part of a node's fingerprint: what a plan names when it differs.
type Part struct {
	Name   string // kind, with, files, reads, writes, appends, outputs, needs, when, foreach, params, secrets, seed
	Digest string // lower-case hex sha256
}

// Fingerprint says what node i of p would do: equal fingerprints and equal contents of what is
// read mean equal results. Labels, titles, groups, folders, priorities, breakers, pools,
// retries, time limits, reservations and compensation do not count. What an attempt reads at
// run time (artifacts, accumulators, values) is not in it: whoever records the end of an
// attempt adds those digests.
func Fingerprint(p *Plan, i int32) string {
	h := sha256.New()
	for _, part := range FingerprintParts(p, i) {
		h.Write([]byte(part.Name + " " + part.Digest + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// FingerprintParts returns the parts that Fingerprint is made of, in a fixed order. Parts that
// are empty are left out.
func FingerprintParts(p *Plan, i int32) []Part {
	n := &p.Nodes[i]
	f := parts{out: make([]Part, 0, 8)}
	f.add("kind", n.Kind)
	f.add("with", n.With)
	f.add("files", fileDigests(p, n.Files))
	f.add("reads", caps(p, n.Reads))
	f.add("writes", sorted(n.Writes))
	f.add("appends", sorted(n.Appends))
	f.add("outputs", n.Outputs)
	f.add("needs", sorted(n.Needs), n.AtLeast, sorted(n.History))
	f.add("when", n.When)
	if n.Foreach != nil {
		f.add("foreach", n.Foreach)
	}
	f.add("params", paramsOf(p, n))
	f.add("secrets", sorted(n.Secrets))
	if p.Seed != 0 {
		f.add("seed", p.Seed)
	}
	return f.out
}

type parts struct {
	out []Part
	buf []byte
}

// add digests the canonical JSON of values. Empty texts and lists make no part.
func (f *parts) add(name string, values ...any) {
	f.buf = f.buf[:0]
	empty := true
	for _, v := range values {
		before := len(f.buf)
		b, err := AppendJSON(f.buf, v)
		if err != nil { // not in a compiled plan; any fixed text will do
			b = append(f.buf, err.Error()...)
		}
		f.buf = append(b, '\n')
		switch string(b[before:]) {
		case "", "null", `""`, "[]", "{}", "0":
		default:
			empty = false
		}
	}
	if !empty {
		sum := sha256.Sum256(f.buf)
		f.out = append(f.out, Part{name, hex.EncodeToString(sum[:])})
	}
}

// fileDigests pairs the paths with the digests of the contents.
func fileDigests(p *Plan, paths []string) []string {
	out := make([]string, 0, len(paths))
	for _, path := range sorted(paths) {
		digest := "?"
		if f, ok := p.FileByPath(path); ok {
			digest = f.Digest
		}
		out = append(out, path+" "+digest)
	}
	return out
}

// paramRef finds what expressions read of the parameters: params.a.b.
var paramRef = regexp.MustCompile(`\bparams((?:\.[A-Za-z_][A-Za-z0-9_]*)*)`)

// paramsOf returns the parameters that expressions of n read when it runs. Those that were
// filled in when the plan was made are part of its settings already.
func paramsOf(p *Plan, n *Node) []Param {
	if len(p.Params) == 0 {
		return nil
	}
	texts := []string{n.When, string(n.With)}
	if n.Foreach != nil {
		texts = append(texts, n.Foreach.In, n.Foreach.Key, string(n.Foreach.Template))
	}
	var read []string // dotted, each with a dot in front; "" is all of them
	for _, text := range texts {
		for _, m := range paramRef.FindAllStringSubmatch(text, -1) {
			read = append(read, m[1])
		}
	}
	var out []Param
	for _, param := range p.Params {
		name := "." + param.Name + "."
		if slices.ContainsFunc(read, func(r string) bool {
			return strings.HasPrefix(name, r+".") || strings.HasPrefix(r+".", name)
		}) {
			out = append(out, param)
		}
	}
	return out
}

// capped is an accumulator with its cap, which changes what a reader sees. An artifact has none.
type capped struct {
	Name string `json:"name"`
	Cap  int    `json:"cap"`
}

func caps(p *Plan, names []string) []capped {
	out := make([]capped, 0, len(names))
	for _, name := range sorted(names) {
		c := capped{Name: name}
		for k := range p.Accumulators {
			if p.Accumulators[k].Name == name {
				c.Cap = p.Accumulators[k].Cap
			}
		}
		out = append(out, c)
	}
	return out
}

func sorted(s []string) []string {
	if slices.IsSorted(s) {
		return s
	}
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

// FileByPath returns a declared input file.
func (p *Plan) FileByPath(path string) (*File, bool) {
	i, ok := slices.BinarySearchFunc(p.Files, path, func(f File, path string) int { return strings.Compare(f.Path, path) })
	if !ok {
		return nil, false
	}
	return &p.Files[i], true
}
