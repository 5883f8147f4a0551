package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/report"
	"dagrun.dev/internal/crashmatrix"
)

func makeSelftest(c *cobra.Command) {
	var specs specFlags
	var faults, paid bool
	var jobs, most int
	c.RunE = func(c *cobra.Command, args []string) error {
		if !faults {
			return errors.New("missing flag --faults")
		}
		res, err := specs.compileSimulated(args, paid)
		if err != nil {
			return err
		}
		m, err := specs.matrix(res)
		if err != nil {
			return err
		}
		m.Jobs, m.Most = jobs, most
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		rep, err := m.Run(ctx, func(t crashmatrix.Trial) {
			for _, p := range t.Problems {
				fmt.Fprintf(c.ErrOrStderr(), "event %d (%s): %s\n", t.At, t.Type, report.Plain(p))
			}
		})
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s: %d nodes, %d events, %d runs killed\n%s",
			res.Plan.Name, rep.Nodes, rep.Events, len(rep.Trials), rep.Table())
		for _, l := range rep.Loose {
			text += "not compared, it differs without a kill: " + report.Plain(l) + "\n"
		}
		err = showText(c, rep, text)
		if err == nil && rep.Failed > 0 {
			return exitWith(exitBad)
		}
		return err
	}
	specs.add(c)
	c.Flags().BoolVar(&faults, "faults", false, "kill the program after every event")
	c.Flags().IntVarP(&jobs, "jobs", "j", 1, "attempts that run at once")
	c.Flags().IntVar(&most, "most", 0, "kill at this many events at most, spread over the run (default: at every event)")
	c.Flags().BoolVar(&paid, "paid", false, "also run nodes that call a real model, many times")
}

// simulated is the parameter that says who answers the questions to a model, and its value here.
const simulatedParam, simulated = "agent.provider", "sim"

// compileSimulated compiles a specification with the simulated agent, and refuses one that would
// ask a real model.
func (f *specFlags) compileSimulated(args []string, paid bool) (*compile.Result, error) {
	res, _, err := f.compile(args)
	if err != nil {
		return nil, err
	}
	for _, p := range res.Plan.Params {
		if p.Name == simulatedParam && string(p.Value) != `"`+simulated+`"` && !paid {
			f.set = append(f.set, simulatedParam+"="+simulated)
			if res, _, err = f.compile(args); err != nil {
				return nil, err
			}
			break
		}
	}
	for i := range res.Plan.Nodes {
		if n := &res.Plan.Nodes[i]; !paid && asksModel(n, res.Plan) {
			return nil, fmt.Errorf("node %s calls a real model: declare a parameter %s for its provider, or use --paid",
				n.ID, simulatedParam)
		}
	}
	return res, nil
}

// asksModel reports whether a node, or an item of it, asks a real model.
func asksModel(n *dag.Node, p *dag.Plan) bool {
	asked := struct {
		Kind string
		With struct{ Provider string }
	}{Kind: n.Kind}
	if n.Foreach != nil { // whose template is not filled in yet
		_ = json.Unmarshal(n.Foreach.Template, &asked)
	} else {
		_ = json.Unmarshal(n.With, &asked.With) // settings of other kinds may be anything
	}
	for _, v := range p.Params {
		if v.Name == simulatedParam && asked.With.Provider == "${params."+simulatedParam+"}" {
			asked.With.Provider = strings.Trim(string(v.Value), `"`)
		}
	}
	return asked.Kind == "agent" && asked.With.Provider != simulated
}

// matrix says how to run a compiled specification in copies of its folder.
func (f *specFlags) matrix(res *compile.Result) (crashmatrix.Matrix, error) {
	m := crashmatrix.Matrix{Dir: res.Dir}
	var err error
	if m.Binary, err = os.Executable(); err != nil {
		return m, err
	}
	if st, err := os.Stat(res.Source.Path); err == nil && !st.IsDir() {
		m.Spec = filepath.Base(res.Source.Path)
	}
	if root := schema.ModuleRoot(res.Dir); root != "" && res.Source.Language == "cue" { // it may import its neighbours
		rel, err := filepath.Rel(root, res.Dir)
		if err != nil {
			return m, err
		}
		m.Dir, m.Spec = root, filepath.Join(rel, m.Spec)
	}
	if f.pipeline != "" {
		m.Args = append(m.Args, "--pipeline", f.pipeline)
	}
	for _, v := range f.values {
		abs, err := filepath.Abs(v)
		if err != nil {
			return m, err
		}
		m.Args = append(m.Args, "--values", abs)
	}
	for _, s := range f.set {
		m.Args = append(m.Args, "--set", s)
	}
	if f.untrusted {
		m.Args = append(m.Args, "--untrusted")
	}
	return m, nil
}
