package dag

import (
	"encoding/json"
	"slices"
	"strings"
)

// A Role is what a node of a control kind is to the run. Such a node is carried out by the host from the state of the
// run, without a kind of work of its own. This table is the one place that knows control kinds by name.
type Role struct {
	Asks     bool // a user completes it
	Decides  bool // its result is which way the run goes
	Declares bool // it says where the run stands: a state that is reached, what was found
	Joins    bool // it stands for the nodes that it needs
	Saves    bool // it keeps what there is so far
}

var roles = map[string]Role{
	"approval":   {Asks: true},
	"checkpoint": {Saves: true},
	"join":       {Joins: true},
	"milestone":  {Declares: true},
	"route":      {Decides: true},
}

// Role returns what n is to the run; zero for a node that does work.
func (n *Node) Role() Role { return roles[n.Kind] }

// Passive reports whether a node leaves nothing of its own: what needs it sees through it.
func (r Role) Passive() bool { return r.Joins || r.Saves || r.Declares }

// OfAll reports whether a node speaks of all that was done before it, so that nothing it reads proves its result.
func (r Role) OfAll() bool { return r.Asks || r.Saves || r.Declares }

// Refusing returns the options of an approval after which it has failed: those that it names, or reject where it names
// none and that is an option.
func Refusing(options []string, named *[]string) []string {
	if named != nil {
		return *named
	}
	if slices.Contains(options, "reject") {
		return []string{"reject"}
	}
	return nil
}

// Declares reports whether a node declares a state, by its kind or beside its work.
func (n *Node) Declares() bool { return n.Milestone != nil || n.Role().Declares }

// Declaration returns the state that a node declares, which a milestone of other facts leaves empty; false where it is
// made up when the node runs.
func (n *Node) Declaration() (d Declaration, ok bool) {
	if n.Milestone != nil {
		return *n.Milestone, true
	}
	d.Stable = true
	err := json.Unmarshal(n.With, &d)
	return d, err == nil && !(n.Dynamic && strings.Contains(d.State+d.Section, "${"))
}
