package dagtest

import (
	"bufio"
	"encoding/csv"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"dagrun.dev/dag"
)

var dataFlag = flag.String("graphs", "", "folder with stg/: also schedule those graphs")

// B-9: the machine starts ready nodes as critical-path-first list scheduling does: its makespan is
// within 2 % of it on every graph, random or of recorded workflows, and on average below first come, first served. With
// -graphs, also on the Standard Task Graph Set.
func TestScheduleFollowsTheCriticalPath(t *testing.T) {
	sum := newSummary()
	for seed := range uint64(60) {
		p, seconds := taskGraph(seed)
		for _, m := range []int{2, 4, 8, 16} {
			sum.add(t, p, seconds, m, 0)
		}
	}
	sum.report(t, "random")
	files, err := filepath.Glob("../../../testdata/workflows/*.txt")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d recorded workflows, %v", len(files), err)
	}
	for _, file := range files {
		sum = newSummary()
		p, seconds := readWorkflow(t, file)
		for _, m := range []int{2, 8, 32} {
			sum.add(t, p, seconds, m, 0)
		}
		sum.report(t, filepath.Base(file))
	}
	if *dataFlag == "" {
		return
	}
	sum = newSummary()
	for _, row := range optima(t, *dataFlag+"/stg/optimum.csv") {
		p, seconds := readSTG(t, *dataFlag+"/stg/"+row.file)
		sum.add(t, p, seconds, row.procs, row.optimum)
	}
	sum.report(t, "stg")
}

type summary struct {
	n                   int
	machine, list, fifo float64 // sums over the optimum, or over the lower bound
}

func newSummary() *summary { return new(summary) }

func (x *summary) add(t *testing.T, p *dag.Plan, seconds map[string]float64, slots int, optimum float64) {
	t.Helper()
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	durations := make([]float64, g.Len())
	work := 0.0
	for i := range durations {
		durations[i] = seconds[g.Node(int32(i)).ID]
		work += durations[i]
	}
	g = g.Reweigh(func(i int32) (float64, bool) { return durations[i], true })
	rank, fifo := make([]float64, g.Len()), make([]float64, g.Len())
	bound := work / float64(slots)
	for i := range rank {
		rank[i], fifo[i] = g.Rank(int32(i)), -float64(i)
		bound = max(bound, rank[i])
	}
	if optimum == 0 {
		optimum = bound
	}
	got, err := Makespan(g, slots, durations)
	if err != nil {
		t.Fatal(err)
	}
	list := ListMakespan(g, slots, durations, rank)
	if got > list*1.02 {
		t.Errorf("%s on %d slots: %.1f s, list scheduling %.1f s", p.Name, slots, got, list)
	}
	x.n++
	x.machine += got / optimum
	x.list += list / optimum
	x.fifo += ListMakespan(g, slots, durations, fifo) / optimum
}

func (x *summary) report(t *testing.T, name string) {
	t.Helper()
	n := float64(x.n)
	t.Logf("%-40s %3d cases: %.4f of the optimum or bound; list scheduling %.4f, first come first served %.4f", name, x.n, x.machine/n, x.list/n, x.fifo/n)
	if x.machine > x.fifo*1.02 {
		t.Errorf("%s: worse than first come, first served", name)
	}
}

// taskGraph is a random graph of about a hundred tasks in the manner of the Standard Task Graph Set.
func taskGraph(seed uint64) (*dag.Plan, map[string]float64) {
	r := rand.New(rand.NewPCG(seed, 99))
	p := &dag.Plan{Format: dag.Format, Name: fmt.Sprint("tasks-", seed)}
	seconds := map[string]float64{}
	for i := range 50 + r.IntN(80) {
		n := dag.Node{ID: fmt.Sprint("t", i), Kind: "task"}
		for range r.IntN(4) {
			if i > 0 {
				n.Needs = append(n.Needs, fmt.Sprint("t", max(0, i-1-r.IntN(15))))
			}
		}
		seconds[n.ID] = float64(1 + r.IntN(20))
		p.Nodes = append(p.Nodes, n)
	}
	return p, seconds
}

type optimum struct {
	file    string
	procs   int
	optimum float64
}

func optima(t *testing.T, path string) (list []optimum) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows[1:] {
		procs, _ := strconv.Atoi(r[1])
		best, _ := strconv.ParseFloat(r[2], 64)
		list = append(list, optimum{r[0], procs, best})
	}
	return list
}

func readSTG(t *testing.T, path string) (*dag.Plan, map[string]float64) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := &dag.Plan{Format: dag.Format, Name: filepath.Base(path)}
	seconds := map[string]float64{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(strings.SplitN(lines.Text(), "#", 2)[0])
		if len(words) < 3 {
			continue
		}
		n := dag.Node{ID: "t" + words[0], Kind: "task"}
		seconds[n.ID], _ = strconv.ParseFloat(words[1], 64)
		for _, need := range words[3:] {
			n.Needs = append(n.Needs, "t"+need)
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p, seconds
}

func readWorkflow(t *testing.T, path string) (*dag.Plan, map[string]float64) {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &dag.Plan{Format: dag.Format, Name: filepath.Base(path)}
	seconds := map[string]float64{}
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line) // the run time, then the numbers of the parents
		n := dag.Node{ID: strconv.Itoa(len(p.Nodes)), Kind: "task", Needs: fields[1:]}
		if seconds[n.ID], err = strconv.ParseFloat(fields[0], 64); err != nil {
			t.Fatal(err)
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p, seconds
}
