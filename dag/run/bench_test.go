package run

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// layers returns a plan of n silent nodes, each but the first hundred needing two of those before it.
func layers(t testing.TB, n int) *dag.Graph {
	t.Helper()
	p := &dag.Plan{Format: dag.Format, Name: "layers"}
	id := func(i int) string { return fmt.Sprintf("layer%03d/node%02d", i/100, i%100) }
	for i := range n {
		node := dag.Node{ID: id(i), Kind: "exec", Effect: "idempotent", With: []byte(`{"argv":["/bin/true"]}`),
			Retry: dag.Retry{Attempts: 3, Base: dag.Duration(5 * time.Second), Factor: 2, Cap: dag.Duration(2 * time.Minute), Jitter: 0.2}}
		if i >= 100 {
			node.Needs = []string{id(i - 100), id(i - 100 + 1 - 2*(i%2))}
			if node.Needs[1] == node.Needs[0] || i-99 >= n {
				node.Needs = node.Needs[:1]
			}
		}
		p.Nodes = append(p.Nodes, node)
	}
	g, err := dag.NewGraph(p)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// silent carries a run of nodes that do nothing to its end, group at a time.
func silent(t testing.TB, r *Run, group int) {
	t.Helper()
	now := start0
	for {
		cmds, _ := r.State().Decide(now, group)
		if len(cmds) == 0 {
			return
		}
		var bodies []machine.Body
		for _, c := range cmds {
			if c.Op == machine.Start {
				bodies = append(bodies, &machine.StartedBody{Node: c.Node, Generation: c.Generation, Attempt: c.Attempt, Reserve: c.Reserve})
			} else {
				bodies = append(bodies, c.Body)
			}
		}
		if _, err := r.Record(now, bodies...); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Millisecond)
		bodies = bodies[:0]
		for _, c := range cmds {
			if c.Op == machine.Start {
				o := machine.Outcome{Status: dag.StatusCompleted}
				bodies = append(bodies, r.State().Settle(c.Node, o, now).Body)
			}
		}
		if len(bodies) > 0 {
			if _, err := r.Record(now, bodies...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func diskUse(t testing.TB, dir string) (bytes int64, files int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		fi, err := e.Info()
		if err == nil {
			bytes += fi.Size()
			files++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes, files
}

// Nodes that do nothing, two events each, on the disk of the temporary directory: what the durable
// log, the state and the snapshots cost. group is how many nodes the loop finds ready or ended at
// once; "synced" makes every group durable before the next step.
func BenchmarkSilentNodes(b *testing.B) {
	for _, c := range []struct {
		nodes, group int
		synced       bool
	}{{10000, 1, false}, {10000, 8, false}, {10000, 64, false}, {100000, 64, false}, {1000, 1, true}, {10000, 8, true}, {10000, 64, true}} {
		b.Run(fmt.Sprintf("nodes=%d/group=%d/allsynced=%v", c.nodes, c.group, c.synced), func(b *testing.B) {
			g := layers(b, c.nodes)
			b.ResetTimer()
			for i := range b.N {
				dir := filepath.Join(b.TempDir(), strconv.Itoa(i))
				r, err := Create(Options{Dir: dir, Now: start0, AllSynced: c.synced}, New{Graph: g, RunID: "0a1b2c3d-0a1b-4c3d-8e9f-001122334455"})
				if err != nil {
					b.Fatal(err)
				}
				silent(b, r, c.group)
				if err := r.Close(); err != nil {
					b.Fatal(err)
				}
				if i == 0 {
					b.StopTimer()
					bytes, files := diskUse(b, dir)
					b.ReportMetric(float64(bytes)/float64(c.nodes), "B/node")
					b.ReportMetric(float64(files), "files")
					b.StartTimer()
				}
				os.RemoveAll(dir)
			}
			b.ReportMetric(float64(c.nodes)*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
		})
	}
}

// What one write of the snapshot and of state.json costs at the end of a run: taken on the owner's goroutine, written
// beside it.
func BenchmarkSaved(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			r, err := Create(Options{Dir: b.TempDir(), Now: start0}, New{Graph: layers(b, n), RunID: "0a1b2c3d-0a1b-4c3d-8e9f-001122334455"})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			silent(b, r, 64)
			var take, wrote time.Duration
			for b.Loop() {
				began := time.Now()
				_, write, err := r.saved()
				took := time.Since(began)
				if err == nil {
					err = write()
				}
				if err != nil {
					b.Fatal(err)
				}
				take, wrote = take+took, wrote+time.Since(began)-took
			}
			b.ReportMetric(float64(take.Microseconds())/float64(b.N)/1000, "take-ms/op")
			b.ReportMetric(float64(wrote.Microseconds())/float64(b.N)/1000, "write-ms/op")
		})
	}
}

// Opening a finished run of 100,000 nodes, by its snapshot and by its log alone.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	r, err := Create(Options{Dir: dir, Now: start0}, New{Graph: layers(b, 100000), RunID: "0a1b2c3d-0a1b-4c3d-8e9f-001122334455"})
	if err != nil {
		b.Fatal(err)
	}
	silent(b, r, 64)
	if err := r.Close(); err != nil {
		b.Fatal(err)
	}
	for _, from := range []string{"snapshot", "log"} {
		b.Run(from, func(b *testing.B) {
			for range b.N {
				if from == "log" {
					b.StopTimer()
					os.Remove(filepath.Join(dir, Dir, "snapshot.json"))
					os.Remove(filepath.Join(dir, Dir, "snapshot.json.bak"))
					b.StartTimer()
				}
				r, rep, err := Open(Options{Dir: dir, Now: start0})
				if err != nil || rep.Source != from {
					b.Fatal(rep, err)
				}
				b.StopTimer()
				r.Close()
				b.StartTimer()
			}
		})
	}
}

// A run of silent nodes leaves at most 1.8 KB a node, plan, snapshots and state.json included, and no file each.
func TestSilentNodesAreCheapOnDisk(t *testing.T) {
	const n = 5000
	dir := t.TempDir()
	r, err := Create(Options{Dir: dir, Now: start0}, New{Graph: layers(t, n), RunID: "0a1b2c3d-0a1b-4c3d-8e9f-001122334455"})
	if err != nil {
		t.Fatal(err)
	}
	silent(t, r, 16)
	if got := r.State().Run().Status; got != machine.RunDone {
		t.Fatal(got)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	bytes, files := diskUse(t, dir)
	if bytes > 1800*n || files > 10 {
		t.Errorf("%d bytes a node, %d files", bytes/n, files)
	}
}
