package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// A bench measures a binary in a folder of its own.
type bench struct {
	bin, dir string
	n, runs  int
}

// A figure is one command's cost: the fastest of its runs.
type figure struct {
	wall, cpu time.Duration
	rss       int64 // peak, bytes
	bytes     int64 // left on disk under out
	files     int
}

// measure runs a command b.runs times in dir, removing dir/out before each, and returns the
// fastest run.
func (b *bench) measure(dir string, argv ...string) (figure, error) {
	return fastest(b.runs, func(int) (figure, error) { return once(dir, true, argv...) })
}

func fastest(runs int, run func(i int) (figure, error)) (best figure, err error) {
	for i := range runs {
		f, err := run(i)
		if err != nil {
			return best, err
		}
		if i == 0 || f.wall < best.wall {
			best = f
		}
	}
	return best, nil
}

func once(dir string, fresh bool, argv ...string) (figure, error) {
	out := filepath.Join(dir, "out")
	if fresh {
		if err := os.RemoveAll(out); err != nil {
			return figure{}, err
		}
		os.Remove(filepath.Join(dir, ".ninja_log"))
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DAGRUN_OUTPUT_DIR="+out, "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return figure{}, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	start := time.Now()
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return figure{}, fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(text))
	}
	f := figure{wall: time.Since(start), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		f.rss = ru.Maxrss * 1024 // that of the largest process of the command: on Linux it is in KiB
	}
	filepath.WalkDir(out, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				f.bytes += info.Size()
				f.files++
			}
		}
		return nil
	})
	return f, nil
}

func tail(b []byte) string { return string(b[max(0, len(b)-600):]) }

// table prints rows with a header.
func table(head string, rows [][]string) {
	fmt.Println(head)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range rows {
		fmt.Fprintln(w, strings.Join(r, "\t")+"\t")
	}
	w.Flush()
	fmt.Println()
}

func secs(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
func mib(n int64) string          { return strconv.FormatInt(n>>20, 10) + " MiB" }
func ratio(a, b time.Duration) string {
	if b == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", a.Seconds()/b.Seconds())
}
