package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	work "dagrun.dev/dag/attempt"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/run/statedir"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/all"
)

func makePlan(c *cobra.Command) {
	var runs runFlags
	var specs specFlags
	var out string
	var check bool
	var part partFlags
	var long bool
	c.RunE = func(c *cobra.Command, args []string) error {
		res, kinds, err := specs.compile(args)
		if err != nil {
			return err
		}
		p, d, err := planOf(res, &runs, &part)
		if err != nil {
			return err
		}
		if err := foresee(c.Context(), p, res, kinds, &runs); err != nil {
			return err
		}
		if check {
			state, err := runs.stateDir()
			if err != nil {
				return err
			}
			p.Check = executor.Preflight(c.Context(), d, kinds, nodes.Machine{SpecDir: res.Dir, Secret: secret},
				p.Run.Dir, state.Path())
		}
		if len(args) > 0 {
			p.Source.Spec = fromHere(args[0])
		}
		p.Source.Pipeline, p.Source.Set, p.Source.Values = specs.pipeline, specs.set, specs.values
		if out != "" {
			p.ID = rand.Text()
			var file bytes.Buffer
			if err := printJSON(&file, p); err != nil {
				return err
			}
			if err := savePlan(out, file.Bytes()); err != nil {
				return err
			}
		}
		text := p.WriteShort
		if long {
			text = p.WriteText
		}
		err = showBy(c, p, text)
		if err == nil && p.Check != nil && len(p.Check.Problems) > 0 {
			return exitWith(exitBad)
		}
		if err == nil && p.Changes() {
			return exitWith(exitChanges)
		}
		return err
	}
	runs.addState(c)
	specs.add(c)
	part.add(c)
	c.Flags().BoolVar(&long, "long", false, "print every node (default: what fits a screen, the rest by groups)")
	c.Flags().StringVarP(&out, "out", "o", "", "save the plan to a file for apply")
	c.Flags().BoolVar(&check, "check", false, "also look for what the nodes need of this machine, as apply does; "+
		"status 1 when something is missing")
}

// fromHere returns an absolute path below the current folder as one from there: a saved plan that is copied with its
// project is about the copy.
func fromHere(path string) string {
	here, err := os.Getwd()
	if err != nil || !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(here, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// savePlan writes a saved plan. Of what exists only another saved plan is replaced: a slip would cost a specification.
func savePlan(name string, data []byte) error {
	if _, err := report.ReadPlan(name); errors.Is(err, report.ErrNotAPlan) {
		return fmt.Errorf("%s exists and is not a saved plan, so it was not overwritten: choose another file", name)
	}
	return os.WriteFile(name, data, 0o600)
}

// planOf compares a compiled specification with the run in its directory, if there is one.
func planOf(res *compile.Result, runs *runFlags, part *partFlags) (*report.Plan, *reuse.Diff, error) {
	in := report.PlanInput{Graph: res.Graph, Notes: res.Notes, Diff: reuse.Fresh(res.Graph),
		Does: all.Registry().Does}
	dir := runs.forPipeline(res.Plan.Name)
	ref := report.RunRef{Dir: dir}
	var warnings []string
	for _, w := range res.Warnings {
		warnings = append(warnings, w.Error())
	}
	warnings = append(warnings, inTheWay(dir, res.Plan)...)
	var st *machine.State
	if run.Exists(dir) {
		r, rep, err := run.OpenReadOnly(runs.options(dir, "plan"))
		if err != nil {
			return nil, nil, err
		}
		defer r.Close()
		warnings = append(warnings, rep.Warnings...)
		ref.ID, ref.Seq, ref.Hash = r.ID(), r.Head().Seq, r.Head().Hash
		ref.Ended = res.Plan.Ticks != nil && r.State().Run().Status.Ended()
		if !ref.Ended { // else apply puts it away and begins the next tick
			more, err := standing(r)
			if err != nil {
				return nil, nil, err
			}
			warnings = append(warnings, more...)
			if in.Diff = r.Compare(res.Graph); !in.Diff.Same {
				warnings = append(warnings, takesOver(dir, res)...)
			}
			st = r.State()
			in.State, in.Held = st, r.Held()
		}
	}
	var breakers []report.BreakerStatus
	if state, err := runs.stateDir(); err == nil { // history only makes estimates better
		if breakers, err = openBreakers(st, res.Plan, state); err != nil {
			warnings = append(warnings, fmt.Sprintf("cannot read the state of breakers: %v", err))
		}
		if in.History, err = state.History(res.Plan.Name); err != nil {
			warnings = append(warnings, fmt.Sprintf("cannot read the history, estimates do without it: %v", err))
		}
	}
	if err := part.take(st, in.Diff); err != nil {
		return nil, nil, err
	}
	p := report.BuildPlan(in)
	p.Part = part.Part
	p.Run, p.Warnings, p.Breakers = ref, warnings, breakers
	if st != nil {
		p.SpentUSD = st.Spent().USD
	}
	return p, in.Diff, nil
}

// foresee notes at nodes that only look, and are to run, what they would find now.
func foresee(ctx context.Context, p *report.Plan, res *compile.Result, kinds *nodes.Registry, runs *runFlags) error {
	state, err := runs.stateDir()
	if err != nil {
		return err
	}
	w := work.Worker{Kinds: kinds, Cache: filepath.Join(state.Path(), "cache")}
	for i := range p.Nodes {
		at, ok := res.Graph.Index(p.Nodes[i].ID)
		if !ok || p.Nodes[i].Do == reuse.DoReuse || res.Graph.Node(at).Dynamic {
			continue
		}
		n := res.Graph.Node(at)
		j := &work.Job{Node: n, Kind: n.Kind, With: n.With, SpecDir: res.Dir, Params: res.Plan.Params}
		lines, err := w.Preview(ctx, j, time.Now())
		if err != nil {
			lines = []string{"now: fails: " + w.Line(err.Error())}
		}
		p.Nodes[i].Notes = slices.Concat(p.Nodes[i].Notes, lines)
	}
	return nil
}

// standing says what of a run the reader of a plan must know before applying it.
func standing(r *run.Run) (warnings []string, err error) {
	if v := r.State().Run(); v.Status == machine.RunBroken {
		warnings = append(warnings,
			fmt.Sprintf("the run has failed (%s): apply --again resumes it, apply --fresh starts over", v.Failed))
	}
	if r.Held() {
		return append(warnings, "a process is running this run: what it does from now on is not in this plan"), nil
	}
	list, err := r.Drift()
	for _, d := range list {
		warnings = append(warnings, report.DriftText(d))
	}
	return warnings, err
}

// openBreakers returns the breakers that hold nodes of a plan back: by the facts of its run, nil for
// none yet, else as an earlier run has left them.
func openBreakers(
	st *machine.State, plan *dag.Plan, store *statedir.Dir,
) (list []report.BreakerStatus, err error) {
	if st == nil {
		st = new(machine.State)
	}
	list = report.OpenBreakers(st, time.Now())
	for _, spec := range plan.Breakers {
		if _, _, known := st.BreakerRecord(spec.Name); known {
			continue
		}
		b, _, ok, e := executor.LeftOpen(store, spec)
		if e != nil {
			err = e
		}
		if ok {
			list = append(list, report.NewBreakerStatus(&b, time.Now()))
		}
	}
	return list, err
}

// takesOver warns where the run in dir is of another specification than res, and that still stands where it did.
func takesOver(dir string, res *compile.Result) []string {
	was, err := readOrigin(dir)
	now, wrong := newOrigin(dir, res)
	if err != nil || wrong != nil || was.File == "" {
		return nil
	}
	if was.Up != "" {
		was.Dir = filepath.Join(now.Run, was.Up)
	}
	before := filepath.Join(was.Dir, was.File)
	same := func(file string) bool { return realPath(file) == realPath(before) }
	if slices.ContainsFunc(res.Source.Files, same) || !was.in(was.Dir) {
		return nil
	}
	return []string{fmt.Sprintf("the run in %s is of %s, whose nodes this plan replaces; --output-dir names another "+
		"folder", dir, fromHere(before))}
}

// inTheWay warns of files that stand where a first run is to be and that its nodes will replace.
func inTheWay(dir string, p *dag.Plan) (warnings []string) {
	if list, err := os.ReadDir(dir); err != nil || len(list) == 0 {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, run.Dir)); err == nil {
		return nil // a run before has made them
	}
	for i := range p.Nodes {
		for _, name := range p.Nodes[i].Writes {
			at := filepath.Join(dir, name)
			if _, err := os.Lstat(at); err == nil {
				warnings = append(warnings, fmt.Sprintf("%s is there already, and of no run: node %s replaces it, and a copy is "+
					"kept in its folder below %s", at, p.Nodes[i].ID, filepath.Join(dir, run.Dir)))
			}
		}
	}
	return warnings
}
