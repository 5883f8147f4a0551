package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
)

// partFlags say which part of a plan is to run, and which nodes run again.
type partFlags struct{ reuse.Part }

func (f *partFlags) add(c *cobra.Command) {
	for _, x := range []struct {
		to   *[]string
		name string
		help string
	}{
		{&f.Only, "only", "run this node and nothing else"},
		{&f.From, "from", "run this node and what depends on it"},
		{&f.Until, "until", "run this node and what it needs"},
		{&f.Rerun, "rerun", "run this node (or * for all) again, and what depends on it"},
	} {
		c.Flags().StringSliceVar(x.to, x.name, nil, x.help+" (a,b: several; group/ and patterns such as a/* too)")
	}
	c.Flags().BoolVar(&f.Repeat, "yes", false, "let --rerun repeat effects that must not happen twice (effect: once)")
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "restart" { // its name in earlier versions
			name = "rerun"
		}
		return pflag.NormalizedName(name)
	})
}

// chosenNow reports whether the command line says anything.
func (f *partFlags) chosenNow() bool { return !f.Everything() || f.Repeat }

// chosen reports whether the part is another one than that which a run has, or gives up results of it.
func (f *partFlags) chosen(st *machine.State) bool {
	was := st.Run().Part
	return !f.Equal(&was) || len(f.Rerun) > 0
}

// check refuses names that a graph does not have, all at once.
func (f *partFlags) check(g *dag.Graph) error {
	var problems []error
	for _, x := range []struct {
		flag  string
		names []string
	}{{"--only", f.Only}, {"--from", f.From}, {"--until", f.Until}, {"--rerun", f.Rerun}} {
		for _, name := range x.names {
			if len(g.Named(name)) == 0 {
				problems = append(problems, noNode(x.flag, name, g))
			}
		}
	}
	return errors.Join(problems...)
}

// take narrows the comparison of a run (nil: none yet) with a plan to the part.
func (f *partFlags) take(st *machine.State, d *reuse.Diff) error {
	if err := f.check(d.Graph); err != nil {
		return err
	}
	if st == nil {
		return f.Take(nil, d)
	}
	return f.Take(st, d)
}

// withoutBodies returns what is to be recorded so that nodes that have not ended are skipped.
func withoutBodies(st *machine.State, without []string) ([]machine.Body, error) {
	var out []machine.Body
	for _, id := range without {
		v, ok := st.NodeByID(id)
		switch {
		case !ok:
			return nil, noNode("--without", id, st.Graph())
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
	what, names := "node", nodeNames(g)
	switch {
	case strings.HasSuffix(id, "/"):
		what, names = "group", groupNames(g)
	case len(g.Named(id+"/")) > 0:
		names = []string{id + "/"}
	}
	return fmt.Errorf("%s: %w", flag, unknownName(what, id, names))
}

func nodeNames(g *dag.Graph) []string {
	names := make([]string, g.Len())
	for i := range names {
		names[i] = g.Node(int32(i)).ID
	}
	return names
}

// groupNames returns the groups of a graph, with a slash, sorted.
func groupNames(g *dag.Graph) (names []string) {
	for i := range int32(g.Len()) {
		n := g.Node(i)
		for _, path := range []string{n.Group + "/", n.ID} {
			for at, c := range path {
				if c == '/' && at > 0 {
					names = append(names, path[:at+1])
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
