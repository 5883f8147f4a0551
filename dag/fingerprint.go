package dag

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Part is one part of a node's fingerprint: what a plan names when it differs.
type Part struct {
	Name   string // kind, with, files, reads, writes, appends, outputs, needs, when, foreach, params, secrets, seed
	Digest string // lower-case hex sha256
}

// Fingerprint says what node i of p would do: equal fingerprints and equal contents of what is
// read mean equal results. Labels, titles, groups, folders, priorities, breakers, pools,
// retries, time limits, reservations and compensation do not count (of a node that failed they do: see PolicyParts). What an attempt reads at
// run time (artifacts, accumulators, values) is not in it: see AttemptFingerprint.
func Fingerprint(p *Plan, i int32) string {
	b := make([]byte, 0, 512)
	f := parts{emit: func(name string, raw []byte) {
		b = append(append(b, name...), ' ')
		b = append(strconv.AppendInt(b, int64(len(raw)), 10), ' ')
		b = append(b, raw...)
	}}
	f.of(p, i)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// FingerprintParts returns the parts that Fingerprint is made of, in a fixed order. Parts that
// are empty are left out.
func FingerprintParts(p *Plan, i int32) []Part {
	out := make([]Part, 0, 8)
	f := parts{emit: func(name string, raw []byte) {
		sum := sha256.Sum256(raw)
		out = append(out, Part{name, hex.EncodeToString(sum[:])})
	}}
	f.of(p, i)
	return out
}

// A Reading is what an attempt could read under one name: the digest of an artifact, or those of
// the entries of an accumulator in their order. Nothing to read is no digest.
type Reading struct {
	Name    string
	Digests []string
}

// AttemptFingerprint says what an attempt of node i really read: the fingerprint of the node, its
// settings as they were resolved (nil: nothing in them was), and the contents of what it read. It is
// what WORK_ITEM_FINISHED records: a later attempt with the same fingerprint would be given the same.
// It is in the log and the snapshot for every node, and therefore short: 96 bits of a sha256, as 16
// characters of base64url.
func AttemptFingerprint(p *Plan, i int32, with json.RawMessage, read []Reading) string {
	b := append(make([]byte, 0, 512), Fingerprint(p, i)...)
	b = append(append(b, " with "...), with...)
	for _, r := range read {
		b = append(strconv.AppendQuote(append(b, '\n'), r.Name), ' ')
		b = append(b, strings.Join(r.Digests, " ")...)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// parts hands out the parts of a node's definition, one after the other: what a part is made of is
// valid until the next.
type parts struct {
	emit func(name string, raw []byte)
	buf  []byte
}

func (f *parts) of(p *Plan, i int32) {
	n := &p.Nodes[i]
	f.text("kind", n.Kind)
	if len(n.With) > 0 {
		f.json("with", n.With)
	}
	if len(n.Files) > 0 {
		f.part("files", fileDigests(p, n.Files))
	}
	if len(n.Reads) > 0 {
		f.part("reads", caps(p, n.Reads))
	}
	f.list("writes", n.Writes)
	f.list("appends", n.Appends)
	if len(n.Outputs) > 0 {
		f.part("outputs", n.Outputs)
	}
	if n.AtLeast > 0 || len(n.History) > 0 {
		f.part("needs", sorted(n.Needs), n.AtLeast, sorted(n.History))
	} else {
		f.list("needs", n.Needs)
	}
	f.text("when", n.When)
	if n.Foreach != nil {
		f.part("foreach", n.Foreach)
	}
	if params := ParamsRead(p, n); len(params) > 0 {
		f.part("params", params)
	}
	f.list("secrets", n.Secrets)
	if p.Seed != 0 {
		f.part("seed", p.Seed)
	}
}

func (f *parts) text(name, s string) {
	if s != "" {
		f.emit(name, append(f.buf[:0], s...))
	}
}

func (f *parts) json(name string, raw json.RawMessage) {
	var err error
	if f.buf, err = AppendCanonical(f.buf[:0], raw); err != nil { // not in a compiled plan
		f.buf = append(f.buf[:0], raw...)
	}
	f.emit(name, f.buf)
}

// part hands out the canonical JSON of values, a line each.
func (f *parts) part(name string, values ...any) {
	f.buf = f.buf[:0]
	for _, v := range values {
		b, err := AppendJSON(f.buf, v)
		if err != nil { // as above: told apart by why
			b = append(f.buf, err.Error()...)
		}
		f.buf = append(b, '\n')
	}
	f.emit(name, f.buf)
}

// list hands out names whose order means nothing, unless there are none.
func (f *parts) list(name string, names []string) {
	if len(names) == 0 {
		return
	}
	f.buf = appendNames(f.buf[:0], sorted(names))
	f.emit(name, f.buf)
}

func appendNames(b []byte, names []string) []byte {
	for _, s := range names {
		b = append(strconv.AppendQuote(b, s), '\n')
	}
	return b
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

// ParamsRead returns the parameters that expressions of n read when it runs. Those that were
// filled in when the plan was made are part of its settings already.
func ParamsRead(p *Plan, n *Node) []Param {
	if len(p.Params) == 0 {
		return nil
	}
	texts := []string{n.When, string(n.With)}
	if n.Foreach != nil {
		texts = append(texts, n.Foreach.In, n.Foreach.Key, string(n.Foreach.Template))
	}
	var read []string // dotted, each with a dot in front; "" is all of them
	for _, text := range texts {
		if !strings.Contains(text, "params") {
			continue
		}
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
