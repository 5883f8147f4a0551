package dagtest

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/testing/schedule"
)

var dataFlag = flag.String("graphs", "", "folder with stg/: also schedule those graphs")

// B-9: the machine starts ready nodes as critical-path-first list scheduling does: its makespan is
// within 2 % of it on every graph, random or of recorded workflows, and on average below first come, first served. With
// -graphs, also on the Standard Task Graph Set.
func TestScheduleFollowsTheCriticalPath(t *testing.T) {
	sum := newSummary()
	for seed := range uint64(60) {
		tasks, err := schedule.New(taskGraph(seed))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []int{2, 4, 8, 16} {
			sum.add(t, tasks, m, 0)
		}
	}
	sum.report(t, "random")
	files, err := filepath.Glob("../../../testdata/workflows/*.txt")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d recorded workflows, %v", len(files), err)
	}
	for _, file := range files {
		sum = newSummary()
		tasks, err := schedule.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []int{2, 8, 32} {
			sum.add(t, tasks, m, 0)
		}
		sum.report(t, filepath.Base(file))
	}
	if *dataFlag == "" {
		return
	}
	sum = newSummary()
	for _, row := range optima(t, *dataFlag+"/stg/optimum.csv") {
		tasks, err := schedule.New(readSTG(t, *dataFlag+"/stg/"+row.file))
		if err != nil {
			t.Fatal(err)
		}
		sum.add(t, tasks, row.procs, row.optimum)
	}
	sum.report(t, "stg")
}

type summary struct {
	n                   int
	machine, list, fifo float64 // sums over the optimum, or over the lower bound
}

func newSummary() *summary { return new(summary) }

func (x *summary) add(t *testing.T, tasks *schedule.Tasks, slots int, optimum float64) {
	t.Helper()
	if optimum == 0 {
		optimum = tasks.Bound(slots)
	}
	got, err := makespan(tasks, slots)
	if err != nil {
		t.Fatal(err)
	}
	list := tasks.List(slots, tasks.Graph.Rank)
	if got > list*1.02 {
		t.Errorf("%s on %d slots: %.1f s, list scheduling %.1f s", tasks.Graph.Plan.Name, slots, got, list)
	}
	x.n++
	x.machine += got / optimum
	x.list += list / optimum
	x.fifo += tasks.List(slots, func(i int32) float64 { return -float64(i) }) / optimum
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

// makespan runs tasks through the machine in virtual time, the weights of their graph deciding what starts first, and
// returns how many seconds the run takes.
func makespan(x *schedule.Tasks, slots int) (clock float64, err error) {
	s := new(machine.State)
	apply := func(e machine.Event) { err = cmp.Or(err, s.Apply(&e)) }
	e := machine.New(Epoch, &machine.RunCreatedBody{RunID: "r", PlanDigest: "d"})
	e.Plan = x.Graph
	apply(e)
	ends := map[int32]float64{}
	for err == nil {
		at := Epoch.Add(time.Duration(clock * float64(time.Second)))
		s.Advance(at)
		cmds, _ := s.Decide(at, slots-len(ends))
		for _, c := range cmds {
			if c.Op == machine.Record {
				apply(machine.New(at, c.Body))
				continue
			}
			apply(machine.New(at, &machine.StartedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt}))
			i, _ := x.Graph.Index(c.Node)
			ends[i] = clock + x.Seconds[i]
		}
		if len(ends) == 0 {
			if s.Run().Status != machine.RunDone {
				return 0, fmt.Errorf("stands still: %+v", s.Run())
			}
			return clock, nil
		}
		first := slices.MinFunc(slices.Sorted(maps.Keys(ends)), func(a, b int32) int { return cmp.Compare(ends[a], ends[b]) })
		clock = ends[first]
		delete(ends, first)
		at = Epoch.Add(time.Duration(clock * float64(time.Second)))
		apply(s.Settle(x.Graph.Node(first).ID, machine.Outcome{Status: dag.StatusCompleted}, at))
	}
	return 0, err
}
