package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// pieceFlags say what is to become of single nodes when a run goes on: all others simply go
// on, those that were stopped half-way from their beginning.
type pieceFlags struct{ restart, without []string }

func (f *pieceFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.restart, "restart", nil, "run a node again, and what depends on it (may be repeated)")
	c.Flags().StringArrayVar(&f.without, "without", nil, "skip a node that has not ended (may be repeated)")
}

// bodies returns what is to be recorded.
func (f *pieceFlags) bodies(st *machine.State) ([]machine.Body, error) {
	var out []machine.Body
	g := st.Graph()
	for _, id := range f.restart {
		at, ok := g.Index(id)
		if !ok {
			return nil, noNode("--restart", id, g)
		}
		b := &machine.RewoundBody{To: id, Reason: "restarted by the user"}
		for i := range int32(g.Len()) {
			v := st.NodeAt(i)
			begun := v.Attempt > 0 || v.Status.Ended() || v.Status == machine.Asking
			if begun && (i == at || g.Ancestor(at, i)) {
				b.Nodes = append(b.Nodes, v.Node.ID)
			}
		}
		if len(b.Nodes) == 0 {
			return nil, fmt.Errorf("--restart: %s has not started", id)
		}
		out = append(out, b)
	}
	for _, id := range f.without {
		v, ok := st.NodeByID(id)
		switch {
		case !ok:
			return nil, noNode("--without", id, g)
		case v.Status == machine.Asking:
			if !slices.ContainsFunc(st.Escalations(), func(q machine.EscalationOpenedBody) bool { return q.Node == id }) {
				return nil, fmt.Errorf("--without: attempt %d of %s was interrupted, and whether it took effect is not known: "+
					"resume without --without, which asks", v.Attempt, id)
			}
			return nil, fmt.Errorf("--without: %s waits for an answer, see dagrun escalations", id)
		case v.Status.Ended() && v.Status != machine.Failed:
			return nil, fmt.Errorf("--without: %s has already ended", id)
		}
		out = append(out, &machine.FinishedBody{Node: id, Generation: v.Generation, Status: dag.StatusSkipped, Final: true,
			Message: "skipped by the user"})
	}
	return out, nil
}

// noNode refuses a node that the run does not have.
func noNode(flag, id string, g *dag.Graph) error {
	return fmt.Errorf("%s: %w", flag, unknownName("node", id, nodeNames(g)))
}
