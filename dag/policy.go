package dag

import (
	"cmp"
	"time"
)

// DefaultRetry is the policy of nodes for which nobody says another.
var DefaultRetry = Retry{Attempts: 3, Base: Duration(5 * time.Second), Factor: 2, Cap: Duration(2 * time.Minute),
	Jitter: 0.2}

// A RetryChange is what one place of a specification says of retries. What is nil is not said there; zero is a
// value. Attempts has no zero to say.
type RetryChange struct {
	Attempts int        `json:"attempts,omitempty"`
	Base     *Duration  `json:"base,omitempty"`
	Factor   *float64   `json:"factor,omitempty"`
	Cap      *Duration  `json:"cap,omitempty"`
	Jitter   *float64   `json:"jitter,omitempty"`
	Delays   []Duration `json:"delays,omitempty"`
}

// delaying says whether c speaks of how long to wait, and not of jitter or attempts alone.
func (c *RetryChange) delaying() bool {
	return c != nil && (c.Base != nil || c.Factor != nil || c.Cap != nil || len(c.Delays) > 0)
}

// Over lays c over a policy: a list of delays replaces a formula, and a formula a list. A longest delay of zero is no
// delay.
func (c *RetryChange) Over(r Retry) Retry {
	if c == nil {
		return r
	}
	r.Attempts = cmp.Or(c.Attempts, r.Attempts)
	if c.delaying() {
		r.Delays = c.Delays
	}
	set(&r.Base, c.Base)
	set(&r.Factor, c.Factor)
	set(&r.Cap, c.Cap)
	set(&r.Jitter, c.Jitter)
	if c.Cap != nil && *c.Cap == 0 {
		r.Base = 0 // a policy whose Cap is zero has none
	}
	return r
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// A Policy is what follows a failure of one category of one node.
type Policy struct {
	Class   Class
	Then    Action
	OnFail  OnFail
	Retry   Retry // attempts and delays
	Own     bool  // the delays are those of the category, not of the node
	Account bool  // the failure says something of the account that was asked
}

// PolicyFor resolves what follows when a node fails in a category. It is the one place that says what goes before
// what: what the node says of the category, what the table says of it, what the node says of all failures, the default.
// Attempts that the node states bound those of the table.
func (p *Plan) PolicyFor(n *Node, category string) Policy {
	c, _ := p.CategoryByName(category)
	return n.policy(category, c)
}

// policy is PolicyFor with the row of the category; nil where the table has none.
func (n *Node) policy(category string, c *Category) Policy {
	out := Policy{Class: Transient, Then: Try, OnFail: n.OnFailFor(category), Retry: n.Retry}
	if n.Retry.Attempts == 0 { // a plan that was not compiled
		out.Retry = n.Retry.change().Over(DefaultRetry)
	}
	out.Retry.On = nil
	if c != nil {
		most := out.Retry.Attempts
		out.Class, out.Then, out.Account = c.Class, cmp.Or(c.Then, out.Then), c.Account
		out.Retry.Attempts = cmp.Or(c.Attempts, out.Retry.Attempts)
		out.Retry, out.Own = c.Retry.Over(out.Retry), c.Retry.delaying()
		if n.Retry.Stated {
			out.Retry.Attempts = min(most, out.Retry.Attempts)
		}
	}
	for i := range n.Retry.On {
		if on := &n.Retry.On[i]; on.Category == category {
			out.Then = cmp.Or(on.Then, out.Then)
			out.Retry, out.Own = on.Retry.Over(out.Retry), out.Own || on.Retry.delaying()
		}
	}
	return out
}

// mostAttempts is how many attempts of a node may fail, whatever the categories of the failures.
func (p *Plan) mostAttempts(n *Node) int {
	most := n.policy("", nil).Retry.Attempts
	for k := range p.Categories {
		if f := n.policy(p.Categories[k].Name, &p.Categories[k]); f.Then == Try {
			most = max(most, f.Retry.Attempts)
		}
	}
	return max(1, most)
}

// OnFailFor is what follows when the node has failed for good in a category.
func (n *Node) OnFailFor(category string) OnFail {
	for i := range n.Retry.On {
		if on := &n.Retry.On[i]; on.Category == category && on.OnFail != "" {
			return on.OnFail
		}
	}
	return n.OnFail
}

// change is what a policy says where zero is not a value.
func (r *Retry) change() *RetryChange {
	c := &RetryChange{Attempts: r.Attempts, Delays: r.Delays}
	say(&c.Base, r.Base)
	say(&c.Factor, r.Factor)
	say(&c.Cap, r.Cap)
	say(&c.Jitter, r.Jitter)
	return c
}

func say[T comparable](to **T, v T) {
	if v != *new(T) {
		*to = &v
	}
}
