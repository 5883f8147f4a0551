package screenshot

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
)

// BenchmarkCapture takes the 27 scroll pictures of a page of 6,000 px in three viewports: with one browser and a
// tab for each viewport, as the kind does, and with a browser for each viewport, one after the other and side
// by side. Memory is the proportional share (PSS) of all browser processes: MB/peak is the most at any time, MB-own/peak
// that without the pages of the program's own files, which the machine keeps once however many use them, MB-s is
// the share summed up over time.
//
// One browser with three tabs holds what one with one tab holds and two tabs more: at its peak it cannot be below that.
// Memory over time is what gets less, about half of it on a quiet machine, since it is done sooner.
func BenchmarkCapture(b *testing.B) {
	split := [][]m{threeViews[:1], threeViews[1:2], threeViews[2:]}
	results := map[string]use{}
	run := func(name string, jobs [][]m, together bool) {
		b.Run(name, func(b *testing.B) {
			var u use
			for b.Loop() {
				u = capture(b, jobs, together)
				b.ReportMetric(u.seconds, "s/27-pictures")
				b.ReportMetric(u.peak, "MB/peak")
				b.ReportMetric(u.own, "MB-own/peak")
				b.ReportMetric(u.overTime, "MB-s")
			}
			results[name] = u
		})
	}
	run("one-browser-three-tabs", [][]m{threeViews}, false)
	run("three-browsers-in-turn", split, false)
	run("three-browsers-at-once", split, true)
	one, turn, once := results["one-browser-three-tabs"], results["three-browsers-in-turn"], results["three-browsers-at-once"]
	if turn.seconds == 0 || once.seconds == 0 {
		return // not all were asked for
	}
	compare := func(how string, other use) {
		fmt.Printf("one browser against three %s: %.2f x as fast, %.2f x the memory over time, %.2f x the peak\n",
			how, other.seconds/one.seconds, one.overTime/other.overTime, one.peak/other.peak)
	}
	compare("in turn", turn)
	compare("at once", once)
}

// A use is what it took to take the pictures. Memory is in MB.
type use struct{ seconds, peak, own, overTime float64 }

// capture takes the pictures of some jobs, each a list of viewports with a browser of its own.
func capture(b *testing.B, jobs [][]m, together bool) use {
	var folders []string
	var runs []func()
	var shots atomic.Int64
	for _, views := range jobs {
		task, h := nodetest.New(b, "screenshot", m{"page": m{"artifact": "p.html"}, "viewports": views, "shots": []string{"scroll"}})
		h.Artifacts["p.html"] = page(6000)
		folders = append(folders, task.Scratch)
		runs = append(runs, func() {
			res, err := Kind.Run(b.Context(), task)
			if err != nil {
				b.Error(err)
				return
			}
			shots.Add(int64(res.Values["shots"].(int)))
		})
	}
	u := watch(folders, func() {
		var wg sync.WaitGroup
		for _, run := range runs {
			wg.Go(run)
			if !together {
				wg.Wait()
			}
		}
		wg.Wait()
	})
	if n := shots.Load(); n != 27 {
		b.Fatalf("%d pictures, want 27", n)
	}
	return u
}

// watch measures all processes that work in one of the folders while f runs.
func watch(folders []string, f func()) (u use) {
	begin, done := time.Now(), make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for last := begin; ; {
		select {
		case <-done:
			u.seconds = time.Since(begin).Seconds()
			return u
		case now := <-ticker.C:
			all, own := pss(folders)
			u.peak, u.own = max(u.peak, all), max(u.own, own)
			u.overTime += all * now.Sub(last).Seconds()
			last = now
		}
	}
}

// pss sums up the processes that were told the profile, and their descendants, in MB.
func pss(folders []string) (all, own float64) {
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
				a, o := share(id)
				all, own = all+a, own+o
				break
			}
		}
	}
	return all, own
}

// share returns the proportional set size of a process, and that without mapped files, in MB.
func share(id string) (all, own float64) {
	text, _ := os.ReadFile("/proc/" + id + "/smaps_rollup")
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseFloat(f[1], 64)
		switch f[0] {
		case "Pss:":
			all = n / 1024
		case "Pss_Anon:", "Pss_Shmem:":
			own += n / 1024
		}
	}
	return all, own
}
