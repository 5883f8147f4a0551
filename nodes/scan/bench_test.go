package scan

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkScan looks through n items of one file of metadata and three others each, of which one has changed, and
// says how many times as long that takes as filepath.WalkDir over the same tree. (M-1)
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
	var walked, looked time.Duration
	for i := 0; b.Loop(); i++ {
		place(b, dir, map[string]string{"00/0000/a.md": fmt.Sprint("new ", i)})
		began := time.Now()
		seen := 0
		if err := filepath.WalkDir(dir, func(string, fs.DirEntry, error) error { seen++; return nil }); err != nil || seen < 6*n {
			b.Fatal(seen, err)
		}
		walked += time.Since(began)
		began = time.Now()
		if out, _ := scan(b, remembering(b, dir, cache, with)); out["total"] != float64(n) {
			b.Fatal(out)
		}
		looked += time.Since(began)
	}
	b.ReportMetric(float64(looked)/float64(walked), "walks")
	b.ReportMetric(walked.Seconds()*1000/float64(b.N), "walk-ms")
	b.ReportMetric(looked.Seconds()*1000/float64(b.N), "scan-ms")
	if st, err := os.ReadDir(filepath.Join(cache, "scan")); err == nil && len(st) == 1 {
		if info, err := st[0].Info(); err == nil {
			b.ReportMetric(float64(info.Size())/float64(n), "cache-B/item")
		}
	}
}
