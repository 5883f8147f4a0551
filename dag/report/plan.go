package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/dag/run/statedir"
	"dagrun.dev/nodes"
)

// planFormat is the version of a saved plan.
const planFormat = 2

// A Plan says what applying a specification would do: node by node, with reasons, costs and
// times. It is also the file that `plan -o` saves.
type Plan struct {
	Format   int         `json:"dagrun_plan"`
	ID       string      `json:"id,omitempty"` // of a saved plan, random: it is applied once
	Name     string      `json:"name"`
	Title    string      `json:"title,omitempty"`
	Digest   string      `json:"plan_digest"`
	Run      RunRef      `json:"run"`
	Source   PlanSource  `json:"source,omitzero"`
	Part     reuse.Part  `json:"part,omitzero"` // that is to run, as the command line said it
	Nodes    []PlanNode  `json:"nodes"`
	Limits   []string    `json:"limits,omitempty"` // changes of the whole plan that make no node run again
	Params   []dag.Param `json:"params,omitempty"`
	Budget   dag.Budget  `json:"budget,omitzero"`
	SpentUSD dag.USD     `json:"spent_usd,omitzero"`
	Totals   PlanTotals  `json:"totals"`
	Warnings []string    `json:"warnings,omitempty"`
	// Undo says what failures undo, WhenFailed what others do to the run: pause (empty) | end.
	Undo       []string       `json:"undo,omitempty"`
	WhenFailed dag.WhenFailed `json:"when_failed,omitempty"`
	// Check says what the nodes need of this machine and whether it is there; nil = nobody looked.
	Check *nodes.Readiness `json:"check,omitempty"`

	Breakers []BreakerStatus `json:"breakers,omitempty"` // that hold nodes back, of this run or left by an earlier one
}

// A RunRef names a run at a moment: a plan that was saved for it is stale once it has moved on.
type RunRef struct {
	Dir  string `json:"dir"`
	ID   string `json:"id,omitempty"` // empty: no run yet
	Seq  int64  `json:"seq,omitempty"`
	Hash string `json:"hash,omitempty"` // of the last event
	// Ended: a tick that has ended; the plan is for the next one.
	Ended bool `json:"ended,omitempty"`
}

// PlanSource is what the plan was compiled from: apply compiles it again and compares digests.
type PlanSource struct {
	Spec     string   `json:"spec"`
	Pipeline string   `json:"pipeline,omitempty"`
	Set      []string `json:"set,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// A PlanNode is what happens to one node and what is known of it.
type PlanNode struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Title string `json:"title,omitempty"`
	Group string `json:"group,omitempty"`
	Do    string `json:"do"` // run | reuse | changed | blocked | removed | left out
	// Why lists the parts of the definition that changed, or the node that causes it; Changes what of them changed.
	Why   []string `json:"why,omitempty"`
	Begun string   `json:"begun,omitempty"` // what becomes of an attempt that has not ended
	// Maybe: it runs only if what comes before it gives something else than it gave.
	Maybe   bool           `json:"only_if_changed,omitempty"`
	Changes []reuse.Change `json:"changes,omitempty"`
	Needs   []string       `json:"needs,omitempty"`
	AtLeast int            `json:"at_least,omitempty"` // of the needs must succeed; 0 = all
	Again   int            `json:"again,omitempty"`    // how often needs that failed run again before that is too few
	When    string         `json:"when,omitempty"`
	// RunsWith, of a node without a condition of its own: it is skipped unless one of these runs.
	RunsWith []string   `json:"runs_with,omitempty"`
	Items    string     `json:"foreach,omitempty"` // run-time expansion: where its items come from
	Inputs   []string   `json:"inputs,omitempty"`  // files beside the specification, as it names them
	Each     *PlanItem  `json:"each,omitempty"`    // of a run-time expansion that is still to be made
	Reads    []string   `json:"reads,omitempty"`
	Writes   []string   `json:"writes,omitempty"`
	Publish  []string   `json:"publishes,omitempty"` // what it puts beside the specification, for people
	Leaves   []string   `json:"leaves,omitempty"`    // of a removed node: files that stay and are no artifacts any more
	Appends  []string   `json:"appends,omitempty"`
	Effect   dag.Effect `json:"effect"`
	UndoneBy string     `json:"undone_by,omitempty"` // its undo action, for people
	Undoes   string     `json:"undoes,omitempty"`    // what its failure undoes and what follows, for people
	Notes    []string   `json:"notes,omitempty"`
	Does     string     `json:"does,omitempty"`     // what an attempt does, on one line
	Policies []string   `json:"policies,omitempty"` // retries, time limits and gates, as resolved
	Reserve  dag.Amount `json:"reserve,omitzero"`
	USD      [3]dag.USD `json:"usd"`     // low, expected, high
	Seconds  [3]float64 `json:"seconds"` // low, expected, high; 0 = unknown
	Tokens   [3]int64   `json:"tokens"`
	// CostFrom says where the cost comes from: history | similar (what similar nodes took) | priced (tokens by the price
	// of the model) | estimate | reserve | free.
	CostFrom string `json:"cost_from,omitempty"`
	Unknown  bool   `json:"cost_unknown,omitempty"`
}

// PlanItem is what one item of a run-time expansion is expected to take. The amounts of the node that makes the items
// are those of all of them: none, as many as are expected, and as many as there may be.
type PlanItem struct {
	Expect  int        `json:"expect,omitempty"` // items; 0 = nobody says how many
	Most    int        `json:"most"`
	USD     [3]dag.USD `json:"usd"`     // low, expected, high
	Seconds [3]float64 `json:"seconds"` // low, expected, high; 0 = unknown
	Tokens  [3]int64   `json:"tokens"`
	Unknown bool       `json:"cost_unknown,omitempty"`
}

// PlanTotals sums up what is going to run.
type PlanTotals struct {
	Run     int `json:"run"` // run, changed, blocked and added nodes
	Reuse   int `json:"reuse"`
	Removed int `json:"removed"`
	Left    int `json:"left_out,omitempty"` // by the part: neither runs nor has a result
	Maybe   int `json:"conditional"`        // of those that run: only if a condition holds
	// IfNew, of those that run: only if something before them gives another result.
	IfNew   int        `json:"only_if_changed,omitempty"`
	USD     [3]dag.USD `json:"usd"`
	Seconds [3]float64 `json:"seconds"`      // work of all nodes, one after the other
	Longest float64    `json:"longest_path"` // seconds; no number of jobs makes it shorter
	Unknown int        `json:"cost_unknown,omitempty"`
	// Missing, of those whose cost is unknown: they reserve nothing either, so that USD lacks them.
	Missing int `json:"cost_missing,omitempty"`
	// Cached is the share of the prompts that a service should have read shortly before; 0 = nobody can say.
	Cached float64 `json:"cached_share,omitempty"`
}

// Changes reports whether applying the plan would do anything.
func (p *Plan) Changes() bool { return p.Totals.Run+p.Totals.Removed+len(p.Limits) > 0 }

// PlanInput is what BuildPlan reads. State and History may be nil: no run yet, no history. Diff may be, too: all run.
type PlanInput struct {
	Graph   *dag.Graph
	Notes   [][]string // per node
	Diff    *reuse.Diff
	State   *machine.State // of the run; nil = none yet
	Held    bool           // a process carries the run on
	History map[string][]statedir.Sample
	Does    func(kind string, with json.RawMessage) string // what settings do, on one line; nil = nobody can say

	renewed []string // nodes that begin anew because something was undone
}

// BuildPlan computes what applying a plan would do.
func BuildPlan(in PlanInput) *Plan {
	g := in.Graph
	p := &Plan{
		Format: planFormat, Name: g.Plan.Name, Title: g.Plan.Title, Digest: g.Plan.Digest(),
		Params: g.Plan.Params, Budget: g.Plan.Budget, WhenFailed: g.Plan.WhenFailed,
	}
	if in.State != nil && in.State.Graph().Plan.Budget == p.Budget { // it may have been raised for this run
		p.Budget = in.State.Ledger().Budget
	}
	diff := map[string]reuse.NodeDiff{}
	if in.Diff != nil {
		p.Limits = in.Diff.Limits
		if in.Diff.Graph != nil { // items of the run are known
			g = in.Diff.Graph
			in.Graph = g
		}
		for _, d := range in.Diff.Nodes {
			diff[d.ID] = d
		}
	}
	p.Undo = undoLines(g)
	if in.State != nil {
		in.renewed = in.State.Renewed()
	}
	asks := make([]bool, g.Len())
	finish := make([]float64, g.Len()) // of the longest path of running nodes down to each
	conds, past := newConditions(g), newPast(g, in.History)
	estimates := dag.NewEstimator(g.Plan)
	for i := range int32(g.Len()) {
		n := planNode(in, past, estimates, i, diff)
		if diff[n.ID].Returns {
			n.Do, n.Maybe = reuse.DoBlocked, true
			if len(n.Changes) > 0 {
				n.Do, n.Maybe = reuse.DoChanged, false
			}
		}
		n.RunsWith = conds.inherited(i)
		own := 0.0
		switch n.Do {
		case reuse.DoReuse:
			p.Totals.Reuse++
		case reuse.DoLeft:
			p.Totals.Left++
		default:
			p.Totals.add(&n)
			own, asks[i] = n.path(), true
		}
		finish[i] = own
		for _, need := range g.Needs(i) {
			finish[i] = max(finish[i], finish[need]+own)
		}
		p.Totals.Longest = max(p.Totals.Longest, finish[i])
		p.Nodes = append(p.Nodes, n)
	}
	p.Totals.Cached = dag.CachedShare(g, func(i int32) bool { return asks[i] })
	if in.Diff != nil {
		for _, d := range in.Diff.Nodes {
			if d.Do == reuse.DoRemoved && !d.Returns {
				p.Totals.Removed++
				n := PlanNode{ID: d.ID, Do: d.Do, Why: d.Why, Leaves: d.Leaves, Effect: d.Effect}
				if d.Asks {
					n.Begun = "its last attempt was interrupted: this plan cannot be adopted until it is known whether " +
						"that took effect"
				}
				p.Nodes = append(p.Nodes, n)
			}
		}
	}
	return p
}

// path is what a node adds to the paths that lead over it: items run side by side.
func (n *PlanNode) path() float64 {
	if n.Each != nil {
		return n.Each.Seconds[1]
	}
	return n.Seconds[1]
}

func (t *PlanTotals) add(n *PlanNode) {
	t.Run++
	from := 0
	if n.When != "" || len(n.RunsWith) > 0 {
		t.Maybe++
		from = 1 // the least is that it does not run
	}
	if n.Unknown {
		t.Unknown++
		if n.USD[2] == 0 {
			t.Missing++
		}
	}
	if n.Maybe {
		t.IfNew++
		from = 1
	}
	for k := from; k < len(t.USD); k++ {
		t.USD[k] += n.USD[k]
		t.Seconds[k] += n.Seconds[k]
	}
}

func planNode(in PlanInput, p *past, estimates *dag.Estimator, i int32, diff map[string]reuse.NodeDiff) PlanNode {
	n := in.Graph.Node(i)
	out := PlanNode{
		ID: n.ID, Kind: n.Kind, Title: n.Title, Group: n.Group, Do: reuse.DoRun,
		Needs: n.Needs, AtLeast: n.AtLeast, Again: n.Again, When: n.When,
		Inputs: n.Inputs, Reads: n.Reads, Writes: n.Writes, Appends: n.Appends, Effect: n.Effect, Reserve: n.Reserve,
	}
	for _, p := range n.Publish {
		over := ""
		if p.Over != "" {
			over = " (over another file: " + string(p.Over) + ")"
		}
		out.Publish = append(out.Publish, p.File+" at "+p.To+over)
	}
	if d, ok := diff[n.ID]; ok {
		out.Do, out.Why, out.Maybe, out.Changes = d.Do, d.Why, d.Maybe, d.Changes
		if d.Do == reuse.DoAdded {
			out.Do, out.Why = reuse.DoRun, []string{"new in the specification"}
		}
	}
	if out.Do == reuse.DoReuse && in.failedSoftly(n.ID) {
		out.Why = []string{"it has failed, which the run allows; --rerun " + n.ID + " runs it again"}
	}
	blocked := out.Do == reuse.DoBlocked && !out.Maybe
	if how := in.triesAgain(n.ID); how != "" && (out.Do == reuse.DoReuse || out.Do == reuse.DoRun || blocked) {
		out.Do, out.Why = reuse.DoRun, []string{how + ", runs again"}
	}
	out.Begun = in.begun(n)
	if out.Undoes = undoesText(in.Graph, i); n.Undo != nil {
		out.UndoneBy = n.Undo.InShort()
	}
	if n.Foreach != nil {
		out.Items = n.Foreach.In
		out.Each = in.each(estimates, i)
	}
	if int(i) < len(in.Notes) {
		out.Notes = in.Notes[i]
	}
	if out.Do != reuse.DoReuse {
		if in.Does != nil && !IsControl(n.Kind) {
			out.Does = in.Does(n.Kind, n.With)
		}
		out.Policies = planPolicies(in.Graph.Plan, n)
	}
	r := estimates.Node(n)
	out.USD, out.Seconds, out.Tokens, out.CostFrom, out.Unknown = r.USD, r.Seconds, r.Tokens, r.From, !r.Known
	p.apply(n, &out, r.Attempts)
	if x := out.Each; x != nil {
		for k, times := range [3]int{0, x.Expect, x.Most} {
			out.USD[k], out.Seconds[k] = dag.USD(times)*x.USD[k], float64(times)*x.Seconds[k]
			out.Tokens[k] = int64(times) * x.Tokens[k]
		}
		paid := x.USD[2] > 0 || x.Unknown
		out.CostFrom, out.Unknown = "estimate", x.Unknown || paid && x.Expect == 0
	}
	return out
}

// each estimates an item of a foreach that has none yet; nil for one whose items are known.
func (in *PlanInput) each(estimates *dag.Estimator, i int32) *PlanItem {
	f := in.Graph.Node(i).Foreach
	for k := int32(in.Graph.Base()); int(k) < in.Graph.Len(); k++ {
		if of, _ := in.Graph.Origin(k); of == i {
			return nil
		}
	}
	if in.State != nil && in.State.Expanded(in.Graph.Node(i).ID) || f.Item == nil {
		return nil
	}
	r := estimates.Node(f.Item)
	return &PlanItem{Expect: f.Expect, Most: f.Most, USD: r.USD, Seconds: r.Seconds, Tokens: r.Tokens, Unknown: !r.Known}
}

// triesAgain says why going on with a run gives a node a fresh start; empty when it does not.
func (in *PlanInput) triesAgain(node string) string {
	if in.State == nil {
		return ""
	}
	switch v, _ := in.State.NodeByID(node); {
	case v.Status == machine.Failed && !v.Soft:
		return "failed"
	case v.Status == machine.Cancelled:
		return "was stopped"
	case v.Status == machine.Undone:
		return "was undone"
	case v.Status == machine.Stopped:
		return "waits for the user"
	case slices.Contains(in.renewed, node):
		return "was ended before an undo"
	}
	return ""
}

// failedSoftly reports whether a node has failed and did not hold the run.
func (in *PlanInput) failedSoftly(node string) bool {
	if in.State == nil {
		return false
	}
	v, _ := in.State.NodeByID(node)
	return v.Status == machine.Failed && v.Soft
}

// begun says what becomes of an attempt that has not ended; empty when there is none.
func (in *PlanInput) begun(n *dag.Node) string {
	if in.State == nil {
		return ""
	}
	v, _ := in.State.NodeByID(n.ID)
	switch {
	case v.Status == machine.Running && in.Held:
		return "runs now"
	case v.Status != machine.Running && !v.Unresolved:
		return ""
	case n.Effect == dag.Once:
		return "its last attempt was interrupted: you are asked whether it took effect"
	case n.Effect == dag.Probe:
		return "its last attempt was interrupted: a probe says whether it took effect"
	}
	return "its last attempt was interrupted"
}

// A past is what earlier runs say of how much nodes take.
type past struct {
	own     map[string][]statedir.Sample
	similar map[dag.Similarity][]statedir.Sample // of nodes with an estimate: it is what says that they are similar
}

func newPast(g *dag.Graph, history map[string][]statedir.Sample) *past {
	p := &past{own: history, similar: map[dag.Similarity][]statedir.Sample{}}
	if len(history) == 0 {
		return p
	}
	for i := range int32(g.Len()) {
		n := g.Node(i)
		if n.Estimate != (dag.Estimate{}) {
			p.similar[n.Similarity()] = append(p.similar[n.Similarity()], history[n.HistoryKey()]...)
		}
	}
	return p
}

// apply replaces what a node is expected to take by what it took before, or what similar nodes took. The
// samples are of single attempts.
func (p *past) apply(n *dag.Node, out *PlanNode, attempts int) {
	samples, from := p.own[n.HistoryKey()], "history"
	if len(samples) == 0 && n.Estimate != (dag.Estimate{}) {
		samples, from = p.similar[n.Similarity()], "similar"
	}
	if len(samples) == 0 || free(samples) && n.Estimate.USD > 0 { // something else bore its name
		return
	}
	out.USD = spread(samples, func(s statedir.Sample) dag.USD { return s.USD })
	out.Seconds = spread(samples, func(s statedir.Sample) float64 { return s.Seconds })
	out.Tokens = spread(samples, func(s statedir.Sample) int64 { return s.Tokens })
	out.USD[2] *= dag.USD(attempts)
	out.Seconds[2] *= float64(attempts)
	out.Tokens[2] *= int64(attempts)
	out.CostFrom, out.Unknown = from, false
}

func free(samples []statedir.Sample) bool {
	return !slices.ContainsFunc(samples, func(s statedir.Sample) bool { return s.USD > 0 })
}

// spread is the least, the mean and the most of what attempts took.
func spread[N dag.USD | float64 | int64](past []statedir.Sample, of func(statedir.Sample) N) (r [3]N) {
	r[0] = of(past[0])
	for _, s := range past {
		v := of(s)
		r[0], r[1], r[2] = min(r[0], v), r[1]+v, max(r[2], v)
	}
	r[1] /= N(len(past))
	return r
}

// ErrNotAPlan says that a file holds something else than a saved plan.
var ErrNotAPlan = errors.New("not a saved plan")

// ReadPlan reads a saved plan. Its name may end as it likes; a file that neither ends in .json nor
// begins as plan -o writes is not read whole.
func ReadPlan(name string) (*Plan, error) {
	if st, err := os.Stat(name); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, ErrNotAPlan
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	if start, _ := r.Peek(64); filepath.Ext(name) != ".json" && !bytes.Contains(start, []byte(`"dagrun_plan"`)) {
		return nil, ErrNotAPlan
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var mark struct {
		Format *int `json:"dagrun_plan"`
	}
	if !bytes.Contains(data, []byte(`"dagrun_plan"`)) || json.Unmarshal(data, &mark) != nil || mark.Format == nil {
		return nil, ErrNotAPlan
	}
	if *mark.Format > planFormat {
		return nil, fmt.Errorf("%s: a newer version of the program saved this plan", name)
	}
	p := &Plan{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}
