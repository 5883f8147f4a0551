package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/testing/disktest"
	"dagrun.dev/internal/testing/night"
)

// Views show instants in the local zone.
func init() { time.Local = time.UTC }

func text(t testing.TB, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	if bytes.ContainsAny(b.Bytes(), "\x1b\x07") {
		t.Error("a control character reached the display")
	}
	return b.Bytes()
}

// of writes a view by the template of a name.
func of(name string, view any) func(io.Writer) error {
	return func(w io.Writer) error { return write(w, name, view) }
}

// An errorList is a view of errors.
type errorList struct{ Errors []ErrorEntry }

// T-4: status of the night after each event that changes what an operator sees.
func TestStatus(t *testing.T) {
	var all bytes.Buffer
	for _, at := range []int64{3, 9, 15, 0} {
		x := night.Begin(t, night.Options(disktest.NewMem()))
		x.Until = at
		if err := x.Work(); err != nil && err != night.ErrStop {
			t.Fatal(err)
		}
		s := NewStatus(x.R, "out", x.Now.Add(2*time.Second))
		all.Write(text(t, of("status", s)))
		all.WriteByte('\n')
		if at == 9 {
			b, err := json.MarshalIndent(s, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "night.status.json", append(b, '\n'))
		}
		x.R.Abandon()
	}
	golden(t, "night.status.txt", all.Bytes())
}

// T-2: the picture of the night after each event that changes what an operator sees, half a minute later, by the clock
// alone, and on terminals of several sizes: each line and the whole fit.
func TestLive(t *testing.T) {
	var all bytes.Buffer
	for _, at := range []int64{3, 9, 15, 20, 27, 0} {
		x := night.Begin(t, night.Options(disktest.NewMem()))
		x.Until = at
		if err := x.Work(); err != nil && err != night.ErrStop {
			t.Fatal(err)
		}
		s := NewStatus(x.R, "out", x.Now.Add(2*time.Second))
		for _, size := range [][2]int{{100, 23}, {60, 9}, {30, 4}, {4, 1}, {1, 0}, {0, -1}} {
			lines := s.Later(x.Now.Add(32*time.Second)).Live(size[0], size[1])
			if len(lines) > max(size[1], 0) {
				t.Errorf("%d lines on %d rows:\n%s", len(lines), size[1], strings.Join(lines, "\n"))
			}
			if size[0] >= 60 {
				fmt.Fprintf(&all, "== after event %d, %d x %d\n%s\n", at, size[0], size[1], strings.Join(lines, "\n"))
			}
		}
		x.R.Abandon()
	}
	golden(t, "night.live.txt", all.Bytes())
}

// T-4: reports of cost, quality, budget and errors, and the account at the end (L-6).
func TestReports(t *testing.T) {
	m := disktest.NewMem()
	x := night.Whole(t, m)
	r, _, err := run.OpenReadOnly(night.Options(m))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	h, err := ReadHistory(night.Options(m))
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, by := range []string{"kind", "role", "label:role,group", "node"} {
		c, err := NewCosts(r.State(), h, by, x.Now)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text(t, c.WriteText))
	}
	all.Write(text(t, of("quality", NewQuality(r.State(), h))))
	all.Write(text(t, of("budget", NewBudget(r.State(), h))))
	all.Write(text(t, of("errors", errorList{h.Errors})))
	sum, err := NewSummary(r, night.Options(m), NewStatus(r, "out", x.Now))
	if err != nil {
		t.Fatal(err)
	}
	all.Write(text(t, of("summary", sum)))
	golden(t, "night.reports.txt", all.Bytes())
	if _, err := NewCosts(r.State(), h, "nothing", x.Now); err == nil || !strings.Contains(err.Error(), "pass, role, round") {
		t.Errorf("an unknown label: %v", err)
	}
}

// The graph of the plan and of the run: equal bytes each time, and graphviz takes them.
func TestGraph(t *testing.T) {
	g := night.Plan(t)
	plan := text(t, func(w io.Writer) error { return WriteDOT(w, g, nil) })
	golden(t, "night.dot", plan)
	for range 5 {
		if !bytes.Equal(plan, text(t, func(w io.Writer) error { return WriteDOT(w, night.Plan(t), nil) })) {
			t.Fatal("the same plan gives other bytes")
		}
	}
	x := night.Begin(t, night.Options(disktest.NewMem()))
	x.Until = 10
	if err := x.Work(); err != night.ErrStop {
		t.Fatal(err)
	}
	coloured := text(t, func(w io.Writer) error { return WriteRunDOT(w, x.R.State(), nil) })
	x.R.Abandon()
	golden(t, "night.run.dot", coloured)
	odd := &dag.Plan{Format: dag.Format, Name: `a"b\`, Title: "\x1b]0;x\x07 <b>&amp;", Nodes: []dag.Node{
		{ID: "a", Kind: "exec", Title: "two\nlines \\N \"quoted\"", Group: `g"/h\`}, {ID: "b", Kind: "exec", Needs: []string{"a"}, When: `x == "\n"`, Always: true}}}
	og, err := dag.NewGraph(odd)
	if err != nil {
		t.Fatal(err)
	}
	dot, err := exec.LookPath("dot")
	if err != nil {
		t.Log("graphviz is not installed: the graphs were compared, not drawn")
		return
	}
	for _, in := range [][]byte{plan, coloured, text(t, func(w io.Writer) error { return WriteDOT(w, og, nil) })} {
		cmd := exec.Command(dot, "-Tsvg")
		cmd.Stdin = bytes.NewReader(in)
		out, err := cmd.CombinedOutput()
		if err != nil || !bytes.Contains(out, []byte("</svg>")) || bytes.Contains(out, []byte("Warning")) {
			t.Errorf("dot: %v\n%s\nof\n%s", err, out, in)
		}
	}
}

// A plan of 10,000 nodes is drawn with one line for each node and edge.
func TestGraphOfManyNodes(t *testing.T) {
	p := &dag.Plan{Format: dag.Format, Name: "many"}
	for i := range 10000 {
		n := dag.Node{ID: fmt.Sprint("n", i), Kind: "exec", Effect: "pure"}
		for need := i / 2; need < i && len(n.Needs) < i%4; need++ {
			n.Needs = append(n.Needs, fmt.Sprint("n", need))
		}
		p.Nodes = append(p.Nodes, n)
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	edges := 0
	for i := range int32(g.Len()) {
		edges += len(g.Needs(i))
	}
	out := string(text(t, func(w io.Writer) error { return WriteDOT(w, g, nil) }))
	if n := strings.Count(out, " -> "); n < edges {
		t.Errorf("%d edges drawn, want %d", n, edges)
	}
}

// chain is a plan of n nodes of one kind, each needing the one before.
func chain(t testing.TB, n int) *dag.Graph {
	t.Helper()
	p := &dag.Plan{Format: dag.Format, Name: "chain"}
	for i := range n {
		node := dag.Node{ID: string(rune('a' + i)), Kind: "exec", Effect: "pure"}
		if i > 0 {
			node.Needs = []string{p.Nodes[i-1].ID}
		}
		p.Nodes = append(p.Nodes, node)
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// T-3: the weighted moving average of the last eight nodes of the kind, newest weighing most; nothing
// under three; a chain takes as long as its nodes together, however many may run at once.
func TestETA(t *testing.T) {
	g := chain(t, 13)
	st := &machine.State{}
	now := night.Start
	apply := func(b machine.Body) {
		e := machine.New(now, b)
		e.Seq = st.Run().Seq + 1
		e.Plan = g
		if err := st.Apply(&e); err != nil {
			t.Fatal(err)
		}
	}
	apply(&machine.RunCreatedBody{RunID: "r", Name: "chain", PlanDigest: "d", Schema: machine.Schema})
	took := []int{100, 2, 2, 10, 10, 10, 10, 10, 10, 10, 28}
	for i, sec := range took {
		id := g.Node(int32(i)).ID
		if eta, _, ok := Forecast(st, now, 8); ok != (i >= 3) {
			t.Errorf("after %d nodes the estimate is %v, %v", i, eta, ok)
		}
		apply(&machine.StartedBody{Node: id, Generation: 1, Attempt: 1})
		now = now.Add(time.Duration(sec) * time.Second)
		apply(&machine.FinishedBody{Node: id, Generation: 1, Attempt: 1, Status: dag.StatusCompleted, Final: true, CostUSD: dag.USD(sec) * 1e4})
	}
	// The last eight: 10 x 7 with weights 1..7, 28 with weight 8.
	want := (10.0*28 + 28*8) / 36
	eta, usd, ok := Forecast(st, now, 8)
	if !ok || eta != time.Duration(2*want*float64(time.Second)) {
		t.Errorf("two nodes of a chain take %v, want twice %v s", eta, want)
	}
	if spent := st.Ledger().Spent.USD; !ok || usd != spent+2*dag.USD(want*1e4) {
		t.Errorf("projected %v, spent %v", usd, spent)
	}
}

// T-2, T-3: what a plan says that its nodes take is what the display says before the first has ended; what they took
// replaces it.
func TestEstimatesUntilMeasured(t *testing.T) {
	p := &dag.Plan{Format: dag.Format, Name: "guessed"}
	for i := range 5 {
		n := dag.Node{ID: string(rune('a' + i)), Kind: "agent", Paid: true, Effect: "idempotent", Estimate: dag.Estimate{Seconds: 600, USD: 5e5}}
		if i > 0 {
			n.Needs = []string{p.Nodes[i-1].ID}
		}
		p.Nodes = append(p.Nodes, n)
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	totals := BuildPlan(PlanInput{Graph: g}).Totals
	if totals.Longest != 3000 || totals.USD[1] != 25e5 {
		t.Errorf("the plan says %v s, $%v", totals.Longest, totals.USD[1])
	}
	r, err := run.Create(night.Options(disktest.NewMem()), run.New{Graph: g, RunID: "run-1", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Abandon()
	now := night.Start
	shows := func(after string, want ...string) {
		t.Helper()
		got := strings.Join(NewStatus(r, "out", now).Live(100, 24), "\n")
		for _, want := range want {
			if !strings.Contains(got, want) {
				t.Errorf("%s %q is not in\n%s", after, want, got)
			}
		}
	}
	shows("at first", "Remaining:   about 50m00s", "Cost:        $0.00, about $2.50 in the end")
	for i := range 3 {
		id := g.Node(int32(i)).ID
		_, err := r.Record(now, &machine.StartedBody{Node: id, Generation: 1, Attempt: 1})
		if now = now.Add(60 * time.Second); err == nil && i == 0 {
			shows("at work", "Remaining:   about 49m00s", "about $2.50 in the end")
		}
		if err == nil {
			_, err = r.Record(now, &machine.FinishedBody{Node: id, Generation: 1, Attempt: 1, Status: dag.StatusCompleted, Final: true, CostUSD: 1e6})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	shows("measured", "Remaining:   about 2m00s", "Cost:        $3.00, about $5.00 in the end")
}

// What a program prints for programs is no line for people; the JSON view has all of it. R-1
func TestErrorsForPeople(t *testing.T) {
	got := string(text(t, of("errors", errorList{[]ErrorEntry{{
		Seq: 3, Node: "ask", Status: "failed", Category: "auth", Class: "hard", Message: "OAuth token has expired",
		Diagnostics: "stderr: no keychain\nstdout: {\"type\":\"result\",\"is_error\":true}\n...\"usage\":{\"input_tokens\":3}}\n",
	}}})))
	if !strings.Contains(got, "auth (hard): OAuth token has expired") || !strings.Contains(got, "stderr: no keychain") || strings.ContainsAny(got, "{}") {
		t.Errorf("printed\n%s", got)
	}
}
