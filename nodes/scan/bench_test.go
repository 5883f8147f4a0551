package scan

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkScan looks through n items of one file of metadata and three others each, of which one has changed, and
// says how many times as long that takes as filepath.WalkDir over the same tree, and as one that also asks for the
// information of every file. (M-1)
func BenchmarkScan(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 30_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchScan(b, n) })
	}
}

func benchScan(b *testing.B, n int) {
	settle(b, -time.Hour)
	dir, cache := b.TempDir(), b.TempDir()
	for i := range n {
		at := fmt.Sprintf("%02d/%04d/", i%100, i)
		place(b, dir, map[string]string{
			at + ".meta/meta.json": fmt.Sprintf(`{"phase": {"architect": "fresh", "builder": "stale", "critic": "pending"}, "weight": %d, "generatedAt": "2029-12-%02dT00:00:00Z", "text": %q}`, i%7, 1+i%28, "some words of what it says"),
			at + "a.md":            fmt.Sprint(i), at + "b.md": "text", at + "c.md": "more",
		})
	}
	with := object{
		"items": "**/.meta/meta.json", "parse": "json", "content": []string{"../**/*.md"},
		"vars": object{
			"phase":     "e.meta.phase.critic == 'pending' ? 'builder' : e.meta.phase.architect == 'stale' ? 'architect' : ''",
			"rank":      "e.phase == 'builder' ? 2 : 1",
			"weight":    "double(e.meta.weight)",
			"generated": "e.meta.generatedAt", "current": "e.digest",
			"staleness": "e.weight * double((now - timestamp(e.generated)).getSeconds())",
		},
		"if": "e.phase != ''", "order": []string{"e.rank", "e.staleness"}, "count": "e.phase",
	}
	scan(b, remembering(b, dir, cache, with))
	walk := func(info bool) {
		seen := 0
		err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if seen++; info && err == nil {
				_, err = d.Info()
			}
			return err
		})
		if err != nil || seen < 6*n {
			b.Fatal(seen, err)
		}
	}
	wall, cpu := map[string]time.Duration{}, map[string]time.Duration{} // of the fastest round: others were disturbed
	timed := func(what string, do func()) {
		runtime.GC()
		began, used := time.Now(), processor(b)
		do()
		for best, took := range map[*map[string]time.Duration]time.Duration{&wall: time.Since(began), &cpu: processor(b) - used} {
			if had := (*best)[what]; had == 0 || took < had {
				(*best)[what] = took
			}
		}
	}
	for i := 0; b.Loop(); i++ {
		place(b, dir, map[string]string{"00/0000/a.md": fmt.Sprint("new ", i)})
		timed("walk", func() { walk(false) })
		timed("scan", func() {
			if out, _ := scan(b, remembering(b, dir, cache, with)); out["total"] != float64(n) {
				b.Fatal(out)
			}
		})
		timed("stats", func() { walk(true) })
	}
	b.ReportMetric(float64(wall["scan"])/float64(wall["walk"]), "walks")
	b.ReportMetric(float64(wall["scan"])/float64(wall["stats"]), "walks-with-info")
	b.ReportMetric(float64(cpu["scan"])/float64(cpu["walk"]), "cpu-walks")
	b.ReportMetric(wall["walk"].Seconds()*1000, "walk-ms")
	b.ReportMetric(wall["scan"].Seconds()*1000, "scan-ms")
	if st, err := os.ReadDir(filepath.Join(cache, "scan")); err == nil && len(st) == 1 {
		if info, err := st[0].Info(); err == nil {
			b.ReportMetric(float64(info.Size())/float64(n), "cache-B/item")
		}
	}
}

// processor is the time that all processors have worked for this process.
func processor(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
