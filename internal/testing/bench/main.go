// Command bench measures dagrun beside a bare loop of os.StartProcess, GNU make and ninja on the same
// graphs in the same run and prints ratios: absolute times of a busy machine mean little. It judges
// nothing.
//
//	go run ./internal/testing/bench [-n 10000] [-runs 3] [-only overhead,noop,shapes,makespan,ticks]
//
// It runs in the root of the project, where testdata/workflows holds the recorded workflows.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	var b bench
	only := flag.String("only", "overhead,noop,shapes,makespan,ticks", "parts to run")
	flag.IntVar(&b.n, "n", 10000, "nodes of the overhead graphs, entities of the ticks")
	flag.IntVar(&b.runs, "runs", 3, "runs of each command; the fastest counts")
	bare := flag.Int("loop", 0, "only start /bin/true so often: what the others are measured against")
	flag.StringVar(&b.bin, "dagrun", "build/bin/dagrun", "the binary to measure")
	flag.Parse()
	run := func() error { return b.run(*only) }
	if *bare > 0 {
		run = func() error { return loop(*bare) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (b *bench) run(only string) (err error) {
	if b.bin, err = filepath.Abs(b.bin); err != nil {
		return err
	}
	if _, err := os.Stat(b.bin); err != nil {
		return fmt.Errorf("%w; run make build first", err)
	}
	if b.dir, err = os.MkdirTemp("", "dagrun-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	parts := []struct {
		name string
		run  func() error
	}{
		{"overhead", b.overhead}, {"shapes", b.shapes}, {"noop", b.noop}, {"makespan", b.makespan}, {"ticks", b.ticks},
	}
	for _, p := range parts {
		if !strings.Contains(","+only+",", ","+p.name+",") {
			continue
		}
		if err := p.run(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}
