package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// Costs sums up a run by a property of its nodes.
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
	Failures  int           `json:"failures"`
	Seconds   float64       `json:"seconds"` // of the last attempts
	Usage     machine.Usage `json:"usage"`
	CostUSD   dag.USD       `json:"cost_usd"`
}

// NewCosts sums up by kind, group, node, or label:NAME.
func NewCosts(st *machine.State, by string, now time.Time) (*Costs, error) {
	key, err := costKey(by)
	if err != nil {
		return nil, err
	}
	c := &Costs{By: by, Total: CostRow{Name: "total"}}
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
		c.Rows[at].add(&v, now)
		c.Total.add(&v, now)
	}
	return c, nil
}

func costKey(by string) (func(*dag.Node) string, error) {
	or := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	if name, ok := strings.CutPrefix(by, "label:"); ok && name != "" {
		return func(n *dag.Node) string { return or(n.Labels[name]) }, nil
	}
	switch by {
	case "kind":
		return func(n *dag.Node) string { return n.Kind }, nil
	case "group":
		return func(n *dag.Node) string { return or(n.Group) }, nil
	case "node":
		return func(n *dag.Node) string { return n.ID }, nil
	}
	return nil, fmt.Errorf("cannot sum up by %q; want kind, group, node or label:NAME", by)
}

func (r *CostRow) add(v *machine.NodeView, now time.Time) {
	r.Nodes++
	r.Failures += v.Failures
	r.CostUSD += v.Cost
	r.Usage.Input += v.Usage.Input
	r.Usage.CacheRead += v.Usage.CacheRead
	r.Usage.CacheWrite += v.Usage.CacheWrite
	r.Usage.Output += v.Usage.Output
	switch {
	case v.Status == machine.Completed:
		r.Completed++
		r.Seconds += max(0, v.Finished.Sub(v.Started).Seconds())
	case v.Status == machine.Running:
		r.Seconds += max(0, now.Sub(v.Started).Seconds())
	}
}

// WriteText prints the sums as a table.
func (c *Costs) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	width := len("total")
	for _, r := range c.Rows {
		width = min(40, max(width, len(r.Name)))
	}
	fmt.Fprintf(out, "%-*s  %6s %9s %8s %9s %12s %12s %10s\n", width, c.By, "nodes", "completed", "failures", "time", "tokens in", "tokens out", "cost")
	for _, r := range append(c.Rows[:len(c.Rows):len(c.Rows)], c.Total) {
		in := r.Usage.Input + r.Usage.CacheRead + r.Usage.CacheWrite
		fmt.Fprintf(out, "%-*s  %6d %9d %8d %9s %12d %12d %10s\n", width, r.Name, r.Nodes, r.Completed, r.Failures, Duration(r.Seconds), in, r.Usage.Output, "$"+r.CostUSD.String())
	}
	return out.Flush()
}
