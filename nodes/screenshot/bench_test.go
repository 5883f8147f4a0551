package screenshot

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dagrun.dev/nodes/internal/nodetest"
)

// BenchmarkCapture takes the 27 scroll pictures of a page of 6,000 px in three viewports: with one browser and a
// tab for each viewport, as the kind does, and with a browser for each viewport, one after the other and side
// by side. MB/peak is the proportional share of memory of all browser processes.
func BenchmarkCapture(b *testing.B) {
	one := func(b *testing.B, views []m) (folder string, run func()) {
		task, h := nodetest.New(b, "screenshot", m{"page": m{"artifact": "p.html"}, "viewports": views, "shots": []string{"scroll"}})
		h.Artifacts["p.html"] = page(6000)
		return task.Scratch, func() {
			res, err := Kind{}.Run(b.Context(), task)
			if err != nil {
				b.Fatal(err)
			}
			shots.Lock()
			defer shots.Unlock()
			shots.n += res.Values["shots"].(int)
		}
	}
	measured := func(b *testing.B, jobs [][]m, together bool) {
		for b.Loop() {
			var folders []string
			var runs []func()
			for _, views := range jobs {
				folder, run := one(b, views)
				folders, runs = append(folders, folder), append(runs, run)
			}
			shots.n = 0
			begin := time.Now()
			peak := peakWhile(folders, func() {
				var wg sync.WaitGroup
				for _, run := range runs {
					wg.Go(run)
					if !together {
						wg.Wait()
					}
				}
				wg.Wait()
			})
			b.ReportMetric(time.Since(begin).Seconds(), "s/27-pictures")
			b.ReportMetric(float64(peak>>10), "MB/peak")
			if shots.n != 27 {
				b.Fatalf("%d pictures, want 27", shots.n)
			}
		}
	}
	split := [][]m{threeViews[:1], threeViews[1:2], threeViews[2:]}
	b.Run("one-browser-three-tabs", func(b *testing.B) { measured(b, [][]m{threeViews}, false) })
	b.Run("three-browsers-in-turn", func(b *testing.B) { measured(b, split, false) })
	b.Run("three-browsers-at-once", func(b *testing.B) { measured(b, split, true) })
}

var shots struct {
	sync.Mutex
	n int
}

// peakWhile returns the largest proportional set size, in KiB, of all processes that work in one of the folders.
func peakWhile(folders []string, f func()) (peak int) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for ticker := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-stop:
				ticker.Stop()
				return
			case <-ticker.C:
				peak = max(peak, pss(folders))
			}
		}
	}()
	f()
	close(stop)
	<-done
	return peak
}

// pss sums up the processes that were told the profile, and their descendants.
func pss(folders []string) (sum int) {
	parents, mine := map[string]string{}, map[string]bool{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		id := filepath.Base(filepath.Dir(file))
		stat, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		parents[id] = strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[1]
		cmd, _ := os.ReadFile("/proc/" + id + "/cmdline")
		for _, f := range folders {
			mine[id] = mine[id] || bytes.Contains(cmd, []byte("--user-data-dir="+f+"/"))
		}
	}
	for id := range parents {
		for up, n := id, 0; up != "" && n < 100; up, n = parents[up], n+1 {
			if mine[up] {
				sum += share(id)
				break
			}
		}
	}
	return sum
}

// share returns the proportional set size of a process in KiB.
func share(id string) int {
	text, _ := os.ReadFile("/proc/" + id + "/smaps_rollup")
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}
