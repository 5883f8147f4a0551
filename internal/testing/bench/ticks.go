package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ticks are whole ones of the pipeline that keeps a library, over b.n entities of three phases each.
func (b *bench) ticks() error {
	dir := filepath.Join(b.dir, "library")
	if err := os.CopyFS(dir, os.DirFS("specs/meta-phases")); err != nil {
		return err
	}
	entity := func(i int) string { return filepath.Join(dir, fmt.Sprintf("library/%02d/%04d", i%100, i)) }
	const done = `{"_phaseState": {"architect": "fresh", "builder": "fresh", "critic": "fresh"},
"_builder": "b", "_content": "c", "_feedback": "f", "_generatedAt": "2026-01-01T00:00:00Z"}`
	for i := range b.n {
		files := map[string]string{".meta/meta.json": done, "a.md": strconv.Itoa(i), "b.md": "text", "c.md": "more"}
		for name, text := range files { // a set
			name = filepath.Join(entity(i), name)
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"", "wall", "CPU", "peak", "/ walk", "CPU / walk"}}
	cpu := func() time.Duration {
		var r syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // of a process that is there
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	walk, err := fastest(3*b.runs, func(int) (figure, error) {
		began, used := time.Now(), cpu()
		err := filepath.WalkDir(filepath.Join(dir, "library"), func(_ string, _ fs.DirEntry, err error) error { return err })
		return figure{wall: time.Since(began), cpu: cpu() - used}, err
	})
	if err != nil {
		return err
	}
	row := func(what string, f figure) {
		rows = append(rows, []string{what, secs(f.wall), secs(f.cpu), mib(f.rss),
			ratio(f.wall, walk.wall), ratio(f.cpu, walk.cpu)})
	}
	row("bare walk", walk)
	time.Sleep(3 * time.Second) // younger files are not believed
	for _, c := range []struct {
		what string
		runs int
		do   func(i int) error
	}{
		{"first tick, nothing owed", 1, func(int) error { return nil }},
		{"tick, nothing owed", b.runs, func(int) error { return nil }},
		{"tick, one phase of one entity", b.runs, func(i int) error {
			return os.WriteFile(filepath.Join(entity(i), ".meta/meta.json"), []byte("{}"), 0o644)
		}},
	} {
		best, err := fastest(c.runs, func(i int) (figure, error) {
			if err := c.do(i); err != nil {
				return figure{}, err
			}
			return once(dir, false, b.bin, "apply", "--quiet", "spec.yaml")
		})
		if err != nil {
			return err
		}
		row(c.what, best)
	}
	table(fmt.Sprintf("ticks over %d entities of three phases (best of %d)", b.n, b.runs), rows)
	return nil
}
