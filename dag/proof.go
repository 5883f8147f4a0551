package dag

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// A Proof is what shows that the result of a finished node still holds although something above it
// has run again. A node whose result is not proved runs again, too.
type Proof uint8

const (
	// ByReads: what it would read is equal (AttemptFingerprint).
	ByReads Proof = iota
	// ByQuiet: also, nothing above it has run again that may have changed more than it leaves.
	ByQuiet
	// Unproved: nothing does. It speaks of all that was done before it.
	Unproved
)

// Proof returns what proves a result of n.
func (n *Node) Proof() Proof {
	switch {
	case n.Always, n.Foreach != nil, n.Kind == "approval", n.Kind == "checkpoint", n.Kind == "milestone":
		return Unproved
	case n.Ambient:
		return ByQuiet
	}
	return ByReads
}

// SeesNeeds reports whether what an attempt of n is given includes what its needs left, read or not:
// n sees more than it declares, or stands for its needs.
func (n *Node) SeesNeeds() bool { return n.Ambient || n.passive() }

// passive nodes leave nothing of their own: a node that needs one sees through it.
func (n *Node) passive() bool {
	return n.Foreach == nil && (n.Kind == "join" || n.Kind == "checkpoint" || n.Kind == "milestone")
}

// Left is what a node that has ended left to one that sees its needs.
type Left struct {
	Status      Status
	Values      map[string]json.RawMessage // recorded
	Digests     []string                   // of artifacts and entries
	Fingerprint string                     // recorded
}

// ReadingOf returns what a node that sees its needs is given by one of them, n; ok is false when that is
// nothing. Items of an expansion always are something: there may be more or fewer of them.
func (n *Node) ReadingOf(l Left, item bool) (r Reading, ok bool) {
	r.Name = "needs " + n.ID
	if n.passive() {
		r.Digests = []string{l.Fingerprint}
		return r, true
	}
	if l.Status != StatusCompleted {
		r.Digests = append(r.Digests, string(l.Status))
	}
	if len(l.Values) > 0 {
		raw, err := AppendJSON(nil, l.Values)
		if err != nil { // recorded values have a canonical form
			raw = []byte(err.Error())
		}
		sum := sha256.Sum256(raw)
		r.Digests = append(r.Digests, hex.EncodeToString(sum[:]))
	}
	r.Digests = append(r.Digests, l.Digests...)
	return r, item || len(r.Digests) > 0
}

// Loud reports whether running n may change what others see of the world without leaving anything
// by which it could be told: a command that has no outputs, writes and appends, or an effect on
// the world by declaration.
func (n *Node) Loud() bool {
	return !n.Effect.Repeatable() || n.Ambient && len(n.Outputs)+len(n.Writes)+len(n.Appends) == 0
}
