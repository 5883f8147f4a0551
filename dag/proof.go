package dag

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

// Loud reports whether running n may change what others see of the world without leaving anything
// by which it could be told: a command that has no outputs, writes and appends, or an effect on
// the world by declaration.
func (n *Node) Loud() bool {
	return n.Effect == "once" || n.Effect == "probe" || n.Ambient && len(n.Outputs)+len(n.Writes)+len(n.Appends) == 0
}
