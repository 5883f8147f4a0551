package reuse

import "dagrun.dev/dag"

// A Proof is what shows that the result of a finished node is valid although something above it has run again. A node
// whose result is not proved runs again, too.
type Proof uint8

const (
	// ByReads: what it would be given is equal (AttemptFingerprint).
	ByReads Proof = iota
	// ByQuiet: also, nothing above it has run again that may have changed more than it leaves (UndeclaredEffect).
	ByQuiet
	// Unproved: nothing does. It speaks of all that was done before it.
	Unproved
)

// ProofOf returns what proves a result of n.
func ProofOf(n *dag.Node) Proof {
	switch {
	case n.Always, n.Foreach != nil, n.Role().OfAll():
		return Unproved
	case n.Ambient: // it sees more than it declares
		return ByQuiet
	}
	return ByReads
}

// A Verdict is what is decided about a stale result, and why.
type Verdict uint8

// The verdicts. All that follow StillValid send the node back.
const (
	Unknown          Verdict = iota // there is more to find out
	StillValid                      // as it had ended
	NeedsDiffer                     // its needs do not let it start any more, or now they do
	ConditionDiffers                // its condition is false now, or it was; or it cannot be evaluated
	EffectAbove                     // something above it ran again whose effects nothing declares
	InputsDiffer                    // an attempt now would be given something else, or nobody knows what it was given
	OutputsDiffer                   // what it made is not as it left it
)

func (v Verdict) String() string {
	return [...]string{"unknown", "still valid", "needs differ", "condition differs", "an undeclared effect above",
		"inputs differ", "outputs differ"}[v]
}

// ByNeeds decides about the result of a stale node, all of whose needs have ended again, by what the run knows.
// unstarted is whether the node would end now without a start because of how its needs have ended, and category that of
// such an end. quiet is what Effects.Quiet says of it.
func ByNeeds(n *dag.Node, r *Record, unstarted bool, category string, quiet bool) Verdict {
	skipped := r.End == Skipped
	switch {
	case skipped && !n.Always && unstarted && r.Category == category && (category != "" || n.When == ""):
		return StillValid // skipped because of its needs, and would be so again
	case !n.Always && unstarted, skipped && n.When == "", skipped && n.Always:
		return NeedsDiffer
	case skipped: // whether its condition holds is asked in any case
		return Unknown
	case ProofOf(n) == Unproved, ProofOf(n) == ByQuiet && !quiet:
		return EffectAbove
	}
	return Unknown
}

// Inputs is what a host finds out about a stale node whose needs have ended again. Each is asked at most once.
type Inputs interface {
	// Condition evaluates the node's When.
	Condition() (bool, error)
	// Fingerprint is that of an attempt made now.
	Fingerprint() (string, error)
	// Intact reports whether what the node made is there, as it left it; known is false while that is being found out.
	Intact() (intact, known bool)
}

// ByInputs decides about the result of a stale node of which ByNeeds knows nothing against. Unknown means: ask again
// once Intact knows.
func ByInputs(n *dag.Node, r *Record, in Inputs) Verdict {
	if n.When != "" {
		holds, err := in.Condition()
		switch {
		case err == nil && !holds && r.End == Skipped:
			return StillValid
		case err != nil || !holds:
			return ConditionDiffers
		}
	}
	if r.End == Skipped {
		return ConditionDiffers
	}
	now, err := in.Fingerprint()
	if err != nil || now == "" || now != r.Fingerprint {
		return InputsDiffer // an error: its next attempt says what is wrong
	}
	switch intact, known := in.Intact(); {
	case !known:
		return Unknown
	case !intact:
		return OutputsDiffer
	}
	return StillValid
}
