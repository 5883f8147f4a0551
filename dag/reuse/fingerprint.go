package reuse

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
)

// Fingerprint says what node i of p would do, as a lower-case hex sha256: equal fingerprints and equal contents of what
// is read mean equal results. It is made of the facets with consequence redo. What an attempt reads at run time
// (artifacts, accumulators, values) is not in it: see AttemptFingerprint.
func Fingerprint(p *dag.Plan, i int32) string {
	d := definition{plan: p, node: &p.Nodes[i]}
	b, said := make([]byte, 0, 512), []byte(nil)
	for k := range facets {
		f := &facets[k]
		if f.does != redo {
			continue
		}
		if said = f.write(said[:0], &d); len(said) == 0 {
			continue
		}
		b = append(append(b, f.name...), ' ')
		b = append(strconv.AppendInt(b, int64(len(said)), 10), ' ')
		b = append(b, said...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// A Reading is what an attempt could read under one name: the digest of an artifact, or those of the entries of an
// accumulator in their order. Nothing to read is no digest.
type Reading struct {
	Name    string
	Digests []string
}

// AttemptFingerprint says what an attempt of node i is given: the fingerprint of the node, its settings as they were
// resolved (nil: nothing in them was), what Above returned, and the contents of what it reads, which digests looks up.
// It is what WORK_ITEM_FINISHED records: a later attempt with the same fingerprint would be given the same.
// It is in the log and the snapshot for every node, and therefore short: 96 bits of a sha256, as 16 characters of
// base64url.
func AttemptFingerprint(p *dag.Plan, i int32, with json.RawMessage, above []Reading,
	digests func(name string) []string) string {
	b := append(make([]byte, 0, 512), Fingerprint(p, i)...)
	b = append(append(b, " with "...), with...)
	for _, r := range above {
		b = r.write(b)
	}
	for _, name := range sorted(p.Nodes[i].Reads) {
		r := Reading{Name: name, Digests: digests(name)}
		b = r.write(b)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

func (r *Reading) write(b []byte) []byte {
	b = append(strconv.AppendQuote(append(b, '\n'), r.Name), ' ')
	return append(b, strings.Join(r.Digests, " ")...)
}

// SeesNeeds reports whether what an attempt of n is given includes what its needs left, read or not: n sees more than
// it declares, or stands for its needs.
func SeesNeeds(n *dag.Node) bool { return n.Ambient || passive(n) }

// passive nodes leave nothing of their own: a node that needs one sees through it.
func passive(n *dag.Node) bool {
	return n.Foreach == nil && n.Role().Passive()
}

// Left is what a node that has ended left to one that sees its needs.
type Left struct {
	Status      dag.Status
	Values      map[string]json.RawMessage // recorded
	Digests     []string                   // of artifacts and entries
	Fingerprint string                     // recorded
}

// Above returns what the needs of node i left, for one that sees its needs; nil for others.
func Above(g *dag.Graph, i int32, left func(need int32) Left) (read []Reading) {
	if !SeesNeeds(g.Node(i)) {
		return nil
	}
	for _, j := range g.Needs(i) {
		if r, ok := reading(g.Node(j), left(j), int(j) >= g.Base()); ok {
			read = append(read, r)
		}
	}
	slices.SortFunc(read, func(a, b Reading) int { return strings.Compare(a.Name, b.Name) })
	return read
}

// reading returns what a node that sees its needs is given by one of them, n; ok is false when that is nothing. Items
// of an expansion always are something: there may be more or fewer of them.
func reading(n *dag.Node, l Left, item bool) (r Reading, ok bool) {
	r.Name = "needs " + n.ID
	if passive(n) {
		r.Digests = []string{l.Fingerprint}
		return r, true
	}
	if l.Status != dag.StatusCompleted {
		r.Digests = append(r.Digests, string(l.Status))
	}
	if len(l.Values) > 0 {
		raw, err := dag.AppendJSON(nil, l.Values)
		if err != nil { // recorded values have a canonical form
			raw = []byte(err.Error())
		}
		sum := sha256.Sum256(raw)
		r.Digests = append(r.Digests, hex.EncodeToString(sum[:]))
	}
	r.Digests = append(r.Digests, l.Digests...)
	return r, item || len(r.Digests) > 0
}
