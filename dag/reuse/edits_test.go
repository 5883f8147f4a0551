package reuse

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"dagrun.dev/dag"
)

var update = flag.Bool("update", false, "rewrite testdata/edits.txt")

// endedPlan is the plan of the run that the table of edits starts from.
func endedPlan() *dag.Plan {
	p := &dag.Plan{Format: dag.Format, Name: "p", Seed: 1, Params: []dag.Param{{Name: "least", Value: json.RawMessage("3")}},
		Accumulators: []dag.Accumulator{{Name: "journal", Path: "journal.md", Cap: 9}}, Files: []dag.File{{Path: "brief.md", Digest: "b1"}},
		Breakers: []dag.Breaker{{Name: "api", Failures: 3}}, Categories: []dag.Category{{Name: "stalled", Class: dag.Transient}}}
	add := func(n dag.Node, needs ...string) {
		n.Needs, n.Effect = needs, dag.Idempotent
		if n.Kind == "" {
			n.Kind = "agent"
		}
		n.With = json.RawMessage(`{"prompt":"` + n.ID + `"}`)
		p.Nodes = append(p.Nodes, n)
	}
	add(dag.Node{ID: "page", Files: []string{"brief.md"}, Writes: []string{"page.html"}})
	add(dag.Node{ID: "review", Reads: []string{"page.html"}, Writes: []string{"review.md"}}, "page")
	add(dag.Node{ID: "blind", Writes: []string{"blind.md"}}, "page") // reads nothing of what it needs
	add(dag.Node{ID: "tell", Reads: []string{"review.md"}, Appends: []string{"journal"}}, "review")
	add(dag.Node{ID: "retell", Reads: []string{"journal"}, Writes: []string{"end.md"}}, "tell")
	add(dag.Node{ID: "gate", When: "nodes['review'].out.score > params.least", Writes: []string{"gate.md"}}, "review") // skipped
	add(dag.Node{ID: "flop", Reads: []string{"page.html"}, OnFail: dag.FailContinue, Retry: dag.Retry{Attempts: 2}}, "page")
	add(dag.Node{ID: "mourn", WaitAll: true, AtLeast: 1, Writes: []string{"mourn.md"}}, "flop", "blind")
	add(dag.Node{ID: "each", Kind: "join", Foreach: &dag.Foreach{In: "page", Var: "x", Key: "x", Template: json.RawMessage(`{}`), Most: 9}}, "page")
	add(dag.Node{ID: "sum", Kind: "join"}, "each")
	add(dag.Node{ID: "shell", Kind: "exec", Ambient: true}, "page") // leaves nothing by which its effect could be told
	add(dag.Node{ID: "look", Kind: "exec", Ambient: true, Writes: []string{"look.txt"}}, "shell")
	add(dag.Node{ID: "ask", Kind: "approval"}, "review")
	add(dag.Node{ID: "clean", Kind: "exec", Always: true}, "review")
	return p
}

// items are those of each.
func items() []dag.Node {
	item := func(id string) dag.Node {
		return dag.Node{ID: "each/" + id, Kind: "agent", Effect: dag.Idempotent, Needs: []string{"each"}, Reads: []string{"page.html"}, Writes: []string{id + ".md"}}
	}
	return []dag.Node{item("x"), item("y")}
}

// A story is the run: all nodes have ended, and later some run again.
type story struct {
	g     *dag.Graph
	recs  []Record
	made  map[string]string // versions of artifacts and accumulators
	other string            // node whose new result is another one; "all"
}

func (s *story) Graph() *dag.Graph     { return s.g }
func (s *story) PlanDigest() string    { return s.g.Plan.Digest() }
func (s *story) Record(i int32) Record { return s.recs[i] }
func (s *story) Failure(i int32) ([]string, bool) {
	if r := s.recs[i]; r.End == Failed {
		return []string{r.Category}, true
	}
	return nil, false
}

func (s *story) fingerprint(i int32) string {
	above := Above(s.g, i, func(j int32) Left {
		l := Left{Status: dag.StatusCompleted, Fingerprint: s.recs[j].Fingerprint}
		for _, name := range s.g.Node(j).Writes {
			l.Digests = append(l.Digests, cmp.Or(s.made[name], "as before"))
		}
		return l
	})
	return AttemptFingerprint(s.g.Plan, i, nil, above, func(name string) []string { return []string{s.made[name]} })
}

func newStory(t *testing.T) *story {
	g, err := dag.NewGraph(endedPlan())
	if err == nil {
		g, err = g.Extend("each", items())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &story{g: g, made: map[string]string{}, recs: make([]Record, g.Len())}
	for _, i := range needsFirst(g) {
		s.recs[i] = Record{Ended: true, Settled: true, Begun: true, Attempts: 1, Generation: 1, EndSeq: int64(i) + 1, Fingerprint: s.fingerprint(i)}
		switch r := &s.recs[i]; g.Node(i).ID {
		case "gate":
			r.End, r.Attempts = Skipped, 0
		case "flop":
			r.End, r.Category = Failed, "stalled"
		}
	}
	return s
}

// A guess answers what is asked about a stale node.
type guess struct {
	s      *story
	i      int32
	intact bool
}

func (a guess) Condition() (bool, error) {
	return a.s.g.Node(a.i).ID != "gate" || a.s.other == "review", nil
}
func (a guess) Fingerprint() (string, error) { return a.s.fingerprint(a.i), nil }
func (a guess) Intact() (intact, known bool) { return a.intact, true }

// An edit is a row of the table: a change of the plan, and which nodes that run again give another result than before.
type edit struct {
	name   string
	change func(p *dag.Plan)
	other  string // node, or "all"; what it wrote before is not what it writes now
	lost   string // node whose file is not as it left it
}

func of(id string, change func(n *dag.Node)) func(*dag.Plan) {
	return func(p *dag.Plan) {
		change(&p.Nodes[slices.IndexFunc(p.Nodes, func(n dag.Node) bool { return n.ID == id })])
	}
}

func prompt(n *dag.Node) { n.With = json.RawMessage(`{"prompt":"another"}`) }

func drop(p *dag.Plan, id string) {
	p.Nodes = slices.DeleteFunc(p.Nodes, func(n dag.Node) bool { return n.ID == id })
}

var edits = []edit{
	{name: "nothing"},
	{name: "the nodes stand in another order", change: func(p *dag.Plan) { p.Nodes[1], p.Nodes[2] = p.Nodes[2], p.Nodes[1] }},
	{name: "needs are written in another order", change: of("mourn", func(n *dag.Node) {
		n.Needs = []string{"blind", "flop"}
	})},
	{name: "title, labels, group and folder of page", change: of("page", func(n *dag.Node) {
		n.Title, n.Labels, n.Group, n.Dir = "t", map[string]string{"a": "b"}, "g", "d"
	})},
	{name: "the budget, a pool, a price", change: func(p *dag.Plan) {
		p.Budget.CapUSD, p.Pools, p.Prices = 5, []dag.Pool{{Name: "llm", Size: 1}}, []dag.Price{{Model: "m"}}
	}},
	{name: "the prompt of page; it gives what it gave", change: of("page", prompt)},
	{name: "the prompt of page; it gives something else", change: of("page", prompt), other: "page"},
	{name: "the prompt of page; review gives something else too", change: of("page", prompt), other: "all"},
	{name: "the prompt of page; a user has changed review.md", change: of("page", prompt), lost: "review"},
	{name: "an input file that page reads; it gives what it gave", change: func(p *dag.Plan) { p.Files[0].Digest = "b2" }},
	{name: "the prompt of review; its score lets gate start", change: of("review", prompt), other: "review"},
	{name: "the prompt of a node that nobody needs", change: of("retell", prompt)},
	{name: "blind is renamed", change: func(p *dag.Plan) {
		of("blind", func(n *dag.Node) { n.ID = "blinder" })(p)
		of("mourn", func(n *dag.Node) { n.Needs = []string{"flop", "blinder"} })(p)
	}},
	{name: "retell is removed", change: func(p *dag.Plan) { drop(p, "retell") }},
	{name: "a node is added", change: func(p *dag.Plan) {
		p.Nodes = append(p.Nodes, dag.Node{ID: "more", Kind: "agent", Effect: dag.Pure, Needs: []string{"page"}})
	}},
	{name: "review also needs blind", change: of("review", func(n *dag.Node) { n.Needs = append(n.Needs, "blind") })},
	{name: "attempts of page, which succeeded", change: of("page", func(n *dag.Node) { n.Retry.Attempts = 5 })},
	{name: "attempts of flop, which failed", change: of("flop", func(n *dag.Node) { n.Retry.Attempts = 5 })},
	{name: "onFail of flop", change: of("flop", func(n *dag.Node) { n.OnFail = dag.FailSkip })},
	{name: "the category in which flop failed", change: func(p *dag.Plan) { p.Categories[0].Attempts = 9 }},
	{name: "the condition of gate, which was skipped", change: of("gate", func(n *dag.Node) { n.When = "true" })},
	{name: "a parameter that the condition of gate reads", change: func(p *dag.Plan) { p.Params[0].Value = json.RawMessage("2") }},
	{name: "blind becomes always; it succeeded", change: of("blind", func(n *dag.Node) { n.Always = true })},
	{name: "gate becomes always; it was skipped", change: of("gate", func(n *dag.Node) { n.Always = true })},
	{name: "clean is not always any more", change: of("clean", func(n *dag.Node) { n.Always = false })},
	{name: "mourn does not wait for all any more", change: of("mourn", func(n *dag.Node) { n.WaitAll = false })},
	{name: "the foreach of each, which makes the same items", change: of("each", func(n *dag.Node) {
		n.Foreach = &dag.Foreach{In: "page", Var: "x", Key: "x", Template: json.RawMessage(`{"kind":"exec"}`), Most: 9}
	})},
	{name: "the command of shell, which leaves nothing", change: of("shell", prompt)},
	{name: "blind sees the folder of the specification now", change: of("blind", func(n *dag.Node) { n.Ambient = true })},
	{name: "the cap of the journal", change: func(p *dag.Plan) { p.Accumulators[0].Cap = 3 }},
	{name: "the seed", change: func(p *dag.Plan) { p.Seed = 2 }},
}

// S-6: what each edit does to each node of a run that has ended, from the comparison to the verdict about what was stale.
// Nodes that are kept are not shown.
func TestEdits(t *testing.T) {
	var out bytes.Buffer
	tab := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "edit\tnode\tverdict\twhy")
	for _, e := range edits {
		rows := tell(t, e)
		if len(rows) == 0 {
			rows = []string{"-\tkept\t"}
		}
		for k, row := range rows {
			fmt.Fprintln(tab, map[bool]string{true: e.name}[k == 0]+"\t"+row)
		}
	}
	tab.Flush()
	table := regexp.MustCompile(` +\n`).ReplaceAllString(out.String(), "\n")
	const file = "testdata/edits.txt"
	if *update {
		if err := os.WriteFile(file, []byte(table), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || table != string(want) {
		t.Errorf("%s differs (%v); run the test with -update and read the diff:\n%s", file, err, table)
	}
}

// tell carries an edit through: the plan is adopted, what has to run runs, and what is stale is judged, needs first.
func tell(t *testing.T, e edit) (rows []string) {
	s := newStory(t)
	p := endedPlan()
	if e.change != nil {
		e.change(p)
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(e.name, err)
	}
	d := Compare(s, g)
	diffs := map[string]*NodeDiff{}
	for k := range d.Nodes {
		diffs[d.Nodes[k].ID] = &d.Nodes[k]
	}
	now := &story{g: d.Graph, recs: make([]Record, d.Graph.Len()), made: maps.Clone(s.made), other: e.other}
	said := make([]string, d.Graph.Len())
	var effects Effects
	for _, i := range needsFirst(d.Graph) {
		n := d.Graph.Node(i)
		diff := diffs[n.ID]
		if o, ok := s.g.Index(n.ID); ok {
			now.recs[i] = s.recs[o]
		}
		r := &now.recs[i]
		why := strings.Join(diff.Why, ", ")
		switch {
		case diff.Do == DoReuse:
			continue
		case diff.Stale:
			r.Stale, r.Ended = true, false
			verdict := ByNeeds(n, r, false, "", effects.Quiet(now, i))
			if verdict == Unknown {
				verdict = ByInputs(n, r, guess{now, i, n.ID != e.lost})
			}
			r.Stale, r.Ended = false, true
			word := "kept"
			if verdict != StillValid {
				word = "again"
				now.run(i)
			}
			said[i] = fmt.Sprintf("%s\tstale, then %s\t%s: %s", n.ID, word, why, verdict)
		case diff.Do == DoRemoved:
			said[i] = fmt.Sprintf("%s\tremoved\t%s", n.ID, why)
		default:
			now.run(i)
			word := map[string]string{DoAdded: "new"}[diff.Do]
			said[i] = strings.TrimRight(fmt.Sprintf("%s\t%s\t%s", n.ID, cmp.Or(word, "again"), why), "\t") + "\t"
		}
	}
	for _, text := range said {
		if text != "" {
			rows = append(rows, strings.TrimRight(text, "\t"))
		}
	}
	for k := range d.Nodes {
		if _, there := d.Graph.Index(d.Nodes[k].ID); !there {
			rows = append(rows, d.Nodes[k].ID+"\tremoved\tnot in the plan")
		}
	}
	return rows
}

// run has a node run again, after everything that ended before.
func (s *story) run(i int32) {
	n := s.g.Node(i)
	if s.other == "all" || s.other == n.ID {
		for _, name := range append(slices.Clone(n.Writes), n.Appends...) {
			s.made[name] = "other"
		}
	}
	r := &s.recs[i]
	*r = Record{Ended: true, Settled: true, Begun: true, Attempts: 1, Generation: r.Generation + 1, EndSeq: 1000 + int64(i), Fingerprint: s.fingerprint(i)}
}
