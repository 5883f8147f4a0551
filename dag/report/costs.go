package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Costs sums up a run by properties of its nodes.
type Costs struct {
	By    string    `json:"by"`
	Rows  []CostRow `json:"rows"` // in plan order of their first node
	Total CostRow   `json:"total"`
}

// A CostRow is one group of nodes.
type CostRow struct {
	Name      string        `json:"name"`
	Nodes     int           `json:"nodes"`
	Completed int           `json:"completed"`
	Attempts  int           `json:"attempts"` // over all generations
	Failures  int           `json:"failures"` // attempts that failed or were lost
	Seconds   float64       `json:"seconds"`  // of all attempts, the ones under way included
	Usage     machine.Usage `json:"usage"`
	Cached    *float64      `json:"cached_share"` // of the tokens in, read from a cache; null = there were none
	CostUSD   dag.USD       `json:"cost_usd"`
	Checked   int           `json:"validations"` // answers that were checked
	Passed    int           `json:"validations_passed"`
}

// NewCosts sums up by a comma-separated list of kind, group, node and labels (NAME or label:NAME).
func NewCosts(st *machine.State, h *History, by string, now time.Time) (*Costs, error) {
	key, err := costKey(st.Graph(), by)
	if err != nil {
		return nil, err
	}
	c := &Costs{By: by, Total: CostRow{Name: "total"}}
	rowOf := map[string]int{}
	index := map[string]int{}
	for i := range int32(st.Graph().Len()) {
		v := st.NodeAt(i)
		name := key(v.Node)
		at, ok := index[name]
		if !ok {
			at = len(c.Rows)
			index[name] = at
			c.Rows = append(c.Rows, CostRow{Name: name})
		}
		rowOf[v.Node.ID] = at
		c.Rows[at].add(&v, h, now)
		c.Total.add(&v, h, now)
	}
	c.removed(st, h, rowOf)
	for i := range h.Errors {
		if at, ok := rowOf[h.Errors[i].Node]; ok {
			c.Rows[at].Failures++
			c.Total.Failures++
		}
	}
	for i := range h.Quality {
		if at, ok := rowOf[h.Quality[i].Node]; ok {
			c.Rows[at].check(&h.Quality[i])
			c.Total.check(&h.Quality[i])
		}
	}
	for i := range c.Rows {
		c.Rows[i].share()
	}
	c.Total.share()
	return c, nil
}

func (r *CostRow) in() int64 { return r.Usage.Input + r.Usage.CacheRead + r.Usage.CacheWrite }

func (r *CostRow) share() {
	if in := r.in(); in > 0 {
		cached := float64(r.Usage.CacheRead) / float64(in)
		r.Cached = &cached
	}
}

// removed adds what nodes took that have left the plan: the sums are those of the whole run.
func (c *Costs) removed(st *machine.State, h *History, rowOf map[string]int) {
	r := CostRow{Name: "(removed nodes)", CostUSD: st.Spent().USD - c.Total.CostUSD}
	for node, n := range h.Attempts { // sums
		if _, stays := rowOf[node]; !stays {
			r.Attempts += n
			r.Seconds += h.Took[node].Seconds()
		}
	}
	if r.CostUSD <= 0 && r.Attempts == 0 {
		return
	}
	u := st.Ledger().Usage
	r.Usage = u.Minus(c.Total.Usage)
	c.Rows = append(c.Rows, r)
	c.Total.Attempts, c.Total.Seconds = c.Total.Attempts+r.Attempts, c.Total.Seconds+r.Seconds
	c.Total.CostUSD, c.Total.Usage = st.Spent().USD, u
}

// costKey returns what names the group of a node.
func costKey(g *dag.Graph, by string) (func(*dag.Node) string, error) {
	var keys []func(*dag.Node) string
	for _, name := range strings.Split(by, ",") {
		key, err := oneKey(g, strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return func(n *dag.Node) string {
		parts := make([]string, len(keys))
		for i, key := range keys {
			if parts[i] = key(n); parts[i] == "" {
				parts[i] = "-"
			}
		}
		return strings.Join(parts, " ")
	}, nil
}

func oneKey(g *dag.Graph, name string) (func(*dag.Node) string, error) {
	switch name {
	case "kind":
		return func(n *dag.Node) string { return n.Kind }, nil
	case "group":
		return func(n *dag.Node) string { return n.Group }, nil
	case "node":
		return func(n *dag.Node) string { return n.ID }, nil
	}
	name = strings.TrimPrefix(name, "label:")
	known := map[string]bool{}
	for i := range g.Plan.Nodes {
		for label := range g.Plan.Nodes[i].Labels { // sorted below
			known[label] = true
		}
	}
	if !known[name] {
		choices := append([]string{"kind", "group", "node"}, sortedNames(known)...)
		return nil, fmt.Errorf("cannot group by %q; choose from %s", name, strings.Join(choices, ", "))
	}
	return func(n *dag.Node) string { return n.Labels[name] }, nil
}

func (r *CostRow) add(v *machine.NodeView, h *History, now time.Time) {
	r.Nodes++
	r.Attempts += h.Attempts[v.Node.ID]
	r.Seconds += h.Took[v.Node.ID].Seconds()
	r.CostUSD += v.Cost
	r.Usage = r.Usage.Plus(v.Usage)
	switch v.Status {
	case machine.Completed:
		r.Completed++
	case machine.Running:
		r.Seconds += max(0, now.Sub(v.Started).Seconds())
	}
}

func (r *CostRow) check(q *QualityEntry) {
	if q.Type != machine.NoteValidation {
		return
	}
	r.Checked++
	if Field(q.Fields, "result") == "pass" {
		r.Passed++
	}
}

// WriteText prints the sums as a table.
func (c *Costs) WriteText(w io.Writer) error {
	var table bytes.Buffer
	t := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	width := len("total")
	for _, r := range append(c.Rows, CostRow{Name: c.By}) {
		width = max(width, utf8.RuneCountInString(Plain(r.Name)))
	}
	fmt.Fprintf(t, "%-*s", width, Plain(c.By))
	fmt.Fprint(t, "\tnodes\tcompleted\tattempts\tfailures\ttime\ttokens in\tcached\ttokens out\tcost\tvalidated\t\n")
	for _, r := range append(c.Rows[:len(c.Rows):len(c.Rows)], c.Total) {
		valid, cached := "-", "-"
		if r.Cached != nil {
			cached = fmt.Sprintf("%.0f %%", 100**r.Cached)
		}
		if r.Checked > 0 {
			valid = fmt.Sprintf("%d/%d", r.Passed, r.Checked)
		}
		fmt.Fprintf(t, "%-*s\t%d\t%d\t%d\t%d\t%s\t%d\t%s\t%d\t$%s\t%s\t\n",
			width, Plain(r.Name), r.Nodes, r.Completed, r.Attempts,
			r.Failures, Duration(r.Seconds), r.in(), cached, r.Usage.Output, r.CostUSD, valid)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		line = strings.TrimPrefix(line, "  ") // the first column is padded already
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}
