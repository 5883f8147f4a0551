package dag

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Types of questions that no specification declares. The built-in table of categories and specifications name others.
const (
	AskFailure      = "failure" // about a node that has failed, where its category names no type
	AskTimeout      = "timeout" // about one that needed longer than it may
	AskBreaker      = "breaker"
	AskCompensation = "compensation"
	AskLost         = "lost"
	AskApproval     = "approval"
)

// TextRequired is Text of an option that asks for a text and is refused without one.
const TextRequired = "required"

// UnmarshalJSON implements json.Unmarshaler.
func (o *Option) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &o.Name)
	}
	type plain Option
	return DecodeJSON(raw, (*plain)(o))
}

// Escalation returns what is done about questions of a type; nothing but waiting, where the plan says nothing.
func (p *Plan) Escalation(typ string) Escalation {
	for _, e := range p.Escalations {
		if e.Type == typ {
			return e
		}
	}
	return Escalation{Type: typ}
}

// Stage is where in the pipeline a node stands, for people: its phase, else its group, else its title.
func (p *Plan) Stage(n *Node) string {
	for _, x := range p.Phases {
		if n.Group == x.Group || strings.HasPrefix(n.Group, x.Group+"/") {
			return x.Name
		}
	}
	return cmp.Or(n.Group, n.Title)
}
