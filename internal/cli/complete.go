package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/run"
)

// A completer gives what may stand next on a command line: names that the specification or the run declares. It reads
// and changes nothing, and gives nothing where something is wrong: a shell has no place for a message.
type completer func(c *cobra.Command, args []string, begun string) []string

func (f completer) forShell(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return f(c, args, begun), cobra.ShellCompDirectiveNoFileComp
}

// addCompletions tells the shell's completion what the commands below root take.
func addCompletions(root *cobra.Command) {
	flags := map[string]completer{
		"only": nodesAndGroups, "from": nodesAndGroups, "until": nodesAndGroups, "rerun": nodesAndGroups,
		"without": nodesAndGroups, "checkpoint": checkpointNames, "set": parameterNames,
	}
	arguments := map[string]completer{
		"show": oneOf(nodesAndGroups), "logs": oneOf(nodesAndGroups), "revert": oneOf(checkpointNames), "respond": answers,
	}
	for _, c := range root.Commands() {
		if f := arguments[c.Name()]; f != nil {
			c.ValidArgsFunction = f.forShell
		}
		for name, f := range flags {
			if c.Flags().Lookup(name) != nil {
				_ = c.RegisterFlagCompletionFunc(name, f.forShell) // fails for a flag that is not there
			}
		}
	}
}

// oneOf gives nothing behind the first argument.
func oneOf(f completer) completer {
	return func(c *cobra.Command, args []string, begun string) []string {
		if len(args) > 0 {
			return nil
		}
		return f(c, args, begun)
	}
}

// thatRun hands the run that a command line means to use.
func thatRun(c *cobra.Command, use func(r *run.Run)) {
	dir, _ := c.Flags().GetString("output-dir")
	f := &runFlags{dir: dir}
	_ = f.read(c, func(r *run.Run, _ string) error { // without a run there is nothing to give
		use(r)
		return nil
	})
}

// thatGraph is the graph of the specification that a command line means, or else that of the run.
func thatGraph(c *cobra.Command, args []string) (g *dag.Graph) {
	if c.Flags().Lookup("set") != nil {
		var f specFlags
		f.pipeline, _ = c.Flags().GetString("pipeline")
		f.values, _ = c.Flags().GetStringArray("values")
		if res, _, err := f.compile(args); err == nil {
			return res.Graph
		}
	}
	thatRun(c, func(r *run.Run) { g = r.Graph() })
	return g
}

func nodesAndGroups(c *cobra.Command, args []string, _ string) []string {
	if c.Name() == "show" || c.Name() == "logs" {
		args = nil
	}
	g := thatGraph(c, args)
	if g == nil {
		return nil
	}
	names := nodeNames(g)
	if c.Name() != "show" && c.Name() != "logs" {
		names = append(names, groupNames(g)...)
	}
	return names
}

// parameterNames are the declared parameters, and the values of those that are true or false.
func parameterNames(c *cobra.Command, args []string, begun string) (list []string) {
	g := thatGraph(c, args)
	if g == nil {
		return nil
	}
	name, _, given := strings.Cut(begun, "=")
	for _, p := range g.Plan.Params {
		switch {
		case !given:
			list = append(list, p.Name+"=")
		case p.Name == name && p.Type == "bool":
			list = append(list, name+"=true", name+"=false")
		case p.Name == name:
			list = append(list, name+"="+strings.Trim(string(p.Value), `"`))
		}
	}
	return list
}

func checkpointNames(c *cobra.Command, _ []string, _ string) (list []string) {
	thatRun(c, func(r *run.Run) {
		for _, k := range r.Checkpoints() {
			list = append(list, k.ID)
		}
	})
	return list
}

// answers are the open questions, behind one its answers, and where one question alone is open both.
func answers(c *cobra.Command, args []string, _ string) (list []string) {
	thatRun(c, func(r *run.Run) {
		open := r.State().Escalations()
		for _, q := range open {
			if len(args) == 0 {
				list = append(list, q.ID)
			}
			if len(args) == 1 && q.ID == args[0] || len(args) == 0 && len(open) == 1 {
				list = append(list, q.Options...)
			}
		}
	})
	return list
}
