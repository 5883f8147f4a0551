package runlog

import (
	"reflect"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// An entry is an event and what the lines of the logs need of the state as of it. It is taken on
// the goroutine that owns the state and turned into lines on another.
type entry struct {
	e       machine.Event // a copy: the run still sets the number in its own
	node    *dag.Node     // of the event; nil = none
	nodes   int           // of the plan
	began   time.Time     // of the attempt that ended
	tries   int           // failures recorded of the node
	pending string        // category of the last failure of a node that starts or completes
	why     string        // its message
	spent   dag.USD
}

// newEntry takes in an event; false when no log has a line for it. Nodes without labels, cost, notes or
// values leave no lines when they start, and nodes of kind join none at all.
func newEntry(e *machine.Event, st *machine.State) (entry, bool) {
	en := entry{e: *e}
	g := st.Graph()
	id := nodeOf(e.Body)
	if id != "" {
		if i, ok := g.Index(id); ok {
			en.node = g.Node(i)
		}
	}
	switch b := e.Body.(type) {
	case *machine.RunCreatedBody, *machine.PlanAdoptedBody:
		en.nodes = g.Len()
	case *machine.StartedBody:
		if b.Attempt <= 1 && silent(en.node) {
			return en, false
		}
		if b.Attempt > 1 {
			en.remember(st, id)
		}
	case *machine.FinishedBody:
		if en.node != nil && en.node.Kind == "join" && b.Status != dag.StatusFailed {
			return en, false
		}
		en.spent = st.Spent().USD
		if v, ok := st.NodeByID(id); ok {
			en.began, en.tries = v.Started, v.Failures
		}
		if b.Status == dag.StatusCompleted && en.tries > 0 {
			en.remember(st, id)
		}
	case *machine.RunPausedBody, *machine.RunEndedBody:
		en.spent = st.Spent().USD
	case *machine.QueuedBody, *machine.LLMCallStartedBody, *machine.LLMCallFinishedBody:
		return en, false // the log of events has them; what comes of them is logged
	}
	return en, true
}

// remember finds the last failure of a node among those that the state keeps.
func (en *entry) remember(st *machine.State, node string) {
	list := st.Errors()
	for i := len(list) - 1; i >= 0; i-- {
		if f := &list[i]; f.Node == node {
			en.pending, en.why = f.Category, f.Message
			return
		}
	}
}

// silent reports whether nothing but its end is worth telling of a node.
func silent(n *dag.Node) bool { return n == nil || len(n.Labels) == 0 && !n.Paid }

// nodeOf returns the node that an event is about: most bodies name it in a field of that name.
func nodeOf(b machine.Body) string {
	if b, ok := b.(*machine.RewoundBody); ok {
		return b.To
	}
	if f := reflect.ValueOf(b).Elem().FieldByName("Node"); f.IsValid() {
		return f.String()
	}
	return ""
}
