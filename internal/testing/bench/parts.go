package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"dagrun.dev/internal/testing/schedule"
)

func (b *bench) apply(extra ...string) []string {
	return append([]string{b.bin, "apply", "spec.json"}, extra...)
}

// overhead runs /bin/true nodes, two at a time, beside a bare loop that only starts them, make and ninja.
func (b *bench) overhead() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, kind := range []string{"fan", "layered"} {
		dir := filepath.Join(b.dir, kind)
		if err := write(dir, shape(kind, b.n, "/bin/true")); err != nil {
			return err
		}
		rows := [][]string{{"", "wall", "CPU", "peak", "/ loop", "/ make", "/ ninja", "left a node", "files"}}
		wall := map[string]time.Duration{}
		for _, c := range []struct {
			name string
			argv []string
		}{
			{"os.StartProcess, two loops", []string{self, "-loop", strconv.Itoa(b.n)}},
			{"GNU make -j2", []string{"make", "-s", "-j2"}},
			{"ninja -j2", []string{"ninja", "-j2"}},
			{"dagrun --jobs 2", b.apply("--jobs", "2")},
			{"dagrun --jobs 2 --all-synced", b.apply("--jobs", "2", "--all-synced")},
		} {
			if _, err := exec.LookPath(c.argv[0]); err != nil {
				rows = append(rows, []string{c.name, "not installed"})
				continue
			}
			f, err := b.measure(dir, c.argv...)
			if err != nil {
				return err
			}
			wall[c.argv[0]] = f.wall
			rows = append(rows, []string{c.name, secs(f.wall), secs(f.cpu), mib(f.rss),
				ratio(f.wall, wall[self]), ratio(f.wall, wall["make"]), ratio(f.wall, wall["ninja"]),
				strconv.FormatInt(f.bytes/int64(b.n), 10) + " B", strconv.Itoa(f.files)})
		}
		table(fmt.Sprintf("%d nodes of /bin/true, %s, two at a time (best of %d)", b.n, kind, b.runs), rows)
	}
	return nil
}

// loop starts /bin/true n times, two at a time, and does nothing else: what any runner in Go takes at least.
func loop(n int) error {
	var left atomic.Int64
	left.Store(int64(n))
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			for left.Add(-1) >= 0 {
				p, err := os.StartProcess("/bin/true", []string{"/bin/true"}, &os.ProcAttr{Files: []*os.File{nil, nil, nil}})
				if err == nil {
					_, err = p.Wait()
				}
				if err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	return errors.Join(<-errs, <-errs)
}

// shapes runs what other tools break on: long chains, wide fans.
func (b *bench) shapes() error {
	rows := [][]string{{"", "1,000", "10,000", "growth"}}
	for _, kind := range []string{"chain", "fan", "layered"} {
		var wall [2]time.Duration
		for i, n := range []int{1000, 10000} {
			dir := filepath.Join(b.dir, kind+strconv.Itoa(n))
			if err := write(dir, shape(kind, n, "/bin/true")); err != nil {
				return err
			}
			f, err := once(dir, true, b.apply("--jobs", "2")...)
			if err != nil {
				return err
			}
			wall[i] = f.wall
		}
		rows = append(rows, []string{kind, secs(wall[0]), secs(wall[1]), ratio(wall[1], wall[0]) + "x"})
	}
	table("shapes, /bin/true, two at a time", rows)
	return nil
}

// noop plans and runs nodes that do nothing in process, from a foreach spec.
func (b *bench) noop() error {
	rows := [][]string{{"nodes", "plan", "apply", "nodes/s", "less planning", "resume", "peak", "left a node"}}
	for _, n := range []int{1000, 10000, 100000} {
		dir := filepath.Join(b.dir, "noop"+strconv.Itoa(n))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		spec := fmt.Sprintf("pipeline:\n  name: noop\n  foreach:\n"+
			"  - axes: [{as: a, in: '${lists.range(%d)}'}, {as: b, in: '${lists.range(100)}'}]\n"+
			"    id: 'g${a.n}/n${b.n}'\n    node: {kind: join}\n", n/100)
		if err := os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(spec), 0o644); err != nil {
			return err
		}
		plan, err := once(dir, true, "sh", "-c", b.bin+" plan spec.yaml >/dev/null; [ $? = 2 ]")
		if err != nil {
			return err
		}
		run, err := once(dir, true, b.bin, "apply", "spec.yaml")
		if err != nil {
			return err
		}
		again, err := once(dir, false, b.bin, "resume")
		if err != nil {
			return err
		}
		rows = append(rows, []string{strconv.Itoa(n), secs(plan.wall), secs(run.wall),
			perSecond(n, run.wall), perSecond(n, run.wall-plan.wall), secs(again.wall), mib(run.rss),
			strconv.FormatInt(run.bytes/int64(n), 10) + " B"})
	}
	table("nodes that do nothing, durable log on", rows)
	return nil
}

// makespan replays recorded workflows as sleeps, eight at a time, beside their lower bound and list scheduling.
func (b *bench) makespan() error {
	rows := [][]string{{"", "bound", "list scheduling", "dagrun", "/ bound", "/ list",
		"ninja", "/ bound", "make", "/ bound"}}
	for _, w := range []struct {
		file  string
		scale float64 // so that list scheduling takes six or seven seconds
	}{{"rnaseq-dirt02", 0.008}, {"atacseq-dirt02", 0.006},
		{"soykb-chameleon-10fastq-10ch", 0.002}, {"srasearch-chameleon-50a", 0.0008}} {
		x, err := schedule.Read("testdata/workflows/" + w.file + ".txt")
		if err != nil {
			return err
		}
		dir := filepath.Join(b.dir, w.file)
		if err := write(dir, asSleeps(x, w.scale)); err != nil {
			return err
		}
		scaled := func(seconds float64) time.Duration { return time.Duration(seconds * w.scale * float64(time.Second)) }
		bound, list := scaled(x.Bound(8)), scaled(x.List(8, x.Graph.Rank))
		row := []string{w.file, secs(bound), secs(list)}
		for _, argv := range [][]string{b.apply("--jobs", "8"), {"ninja", "-j8"}, {"make", "-s", "-j8"}} {
			if _, err := exec.LookPath(argv[0]); err != nil {
				row = append(row, "not installed", "")
				continue
			}
			f, err := b.measure(dir, argv...)
			if err != nil {
				return err
			}
			row = append(row, secs(f.wall), ratio(f.wall, bound))
			if argv[0] == b.bin {
				row = append(row, ratio(f.wall, list))
			}
		}
		rows = append(rows, row)
	}
	table(fmt.Sprintf("recorded workflows as sleeps, eight at a time (best of %d)", b.runs), rows)
	return nil
}

// perSecond is how many nodes a second are carried out in d; "-" when the machine was too noisy to tell.
func perSecond(n int, d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", float64(n)/d.Seconds())
}
