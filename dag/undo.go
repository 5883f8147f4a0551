package dag

import (
	"cmp"
	"encoding/json"
	"strings"
)

// Trigger is what a failure of the node undoes under FailCompensate. Plans of before Back had it in the node's own
// undo action, which then ran too: it went back to one node a bounded number of times, or went on without the failed
// one.
func (n *Node) Trigger() Back {
	switch u := n.Undo; {
	case n.Back != nil:
		return *n.Back
	case n.OnFail != FailCompensate: // for a category only
		return Back{All: true, Then: ThenStop}
	case u == nil:
		return Back{Then: ThenStop}
	case u.Rewind != "":
		return Back{To: []string{u.Rewind}, Own: u, Then: ThenAgain, Times: max(1, u.Most), On: u.On}
	default:
		return Back{Own: u, Then: ThenContinue, On: u.On}
	}
}

// Undoable reports whether a node, or the items that it makes, have an undo action.
func (n *Node) Undoable() bool {
	if n.Undo != nil || n.Foreach == nil {
		return n.Undo != nil
	}
	var item struct {
		Compensate json.RawMessage `json:"compensate"`
	}
	return json.Unmarshal(n.Foreach.Template, &item) == nil && item.Compensate != nil
}

// Above returns, by index, which nodes come before any of some.
func (g *Graph) Above(list ...int32) []bool { return g.beyond(list, g.Needs) }

// Below returns, by index, which nodes depend on any of some.
func (g *Graph) Below(list ...int32) []bool { return g.beyond(list, g.Dependents) }

func (g *Graph) beyond(list []int32, next func(int32) []int32) []bool {
	var first []int32
	for _, i := range list {
		first = append(first, next(i)...)
	}
	return g.Reach(first, next)
}

// UndoReach returns, by index, how far back the undo of a node's failure goes: all that comes before it, or the nodes
// that its Trigger names and what lies between them and the node.
func (g *Graph) UndoReach(failed int32) []bool {
	b := g.Node(failed).Trigger()
	above := g.Above(failed)
	if b.All {
		return above
	}
	in := make([]bool, g.Len())
	for _, id := range b.To {
		to, ok := g.Index(id)
		if !ok {
			continue
		}
		for i, below := range g.Below(to) {
			in[i] = in[i] || below && above[i]
		}
		in[to] = true
	}
	return in
}

// InShort says what an undo action does, in short: its kind and what of its settings says most.
func (u *Undo) InShort() string {
	var with struct {
		Run  string
		Argv []string
		URL  string
	}
	_ = json.Unmarshal(u.With, &with) // settings of another form say nothing here
	text := cmp.Or(with.Run, strings.Join(with.Argv, " "), with.URL)
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "$${", "${")), " ")
	if r := []rune(text); len(r) > 60 {
		text = string(r[:57]) + "..."
	}
	if text = strings.TrimSuffix(u.Kind+": "+text, ": "); u.Effect == Once {
		text += " (once: if it is cut off you are asked whether it took effect)"
	}
	return text
}
