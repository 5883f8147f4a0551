package report

import (
	"io"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/regular"
)

// outputs are the names under which kinds keep what a program printed or a service answered, those first in which
// errors stand.
var outputs = []string{"stderr", "stdout", "raw-output", "transcript", "response"}

// stream is which of them a kept file is, also of an attempt that failed (stderr-FAILED-2.txt); -1 = none.
func stream(name string) int {
	stem, _, _ := strings.Cut(strings.TrimSuffix(name, filepath.Ext(name)), "-FAILED-")
	return slices.Index(outputs, stem)
}

// LastWords are the last lines of what a failed attempt printed, and the path of the file with all of it, as seen from
// where dir names the run; none and empty where it printed nothing.
func LastWords(r *run.Run, dir string, b *machine.FinishedBody, most int) (lines []string, path string) {
	return lastLines(b.Diagnostics, most), outputOf(r, dir, b)
}

// outputOf is the path of the file in which an attempt's output stands, errors before results, as seen from where dir
// names the run; empty when it kept none.
func outputOf(r *run.Run, dir string, b *machine.FinishedBody) string {
	best := ""
	for _, k := range b.Kept {
		if stream(k.Name) >= 0 && (best == "" || stream(k.Name) < stream(best)) {
			best = k.Name
		}
	}
	if best == "" {
		return ""
	}
	return filepath.Join(nodeFolder(r, dir, b.Node, b.Generation), best)
}

// nodeFolder is the folder of a node's files as seen from where dir names the run.
func nodeFolder(r *run.Run, dir, node string, generation int) string {
	full := r.NodeDir(node, generation)
	if base, err := filepath.Abs(dir); err == nil {
		if rel, err := filepath.Rel(base, full); err == nil && filepath.IsLocal(rel) {
			return filepath.Join(dir, rel)
		}
	}
	return full
}

// lastLines are the last lines of a text that say something.
func lastLines(text string, most int) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-most):]
}

// tail is the end of a file; empty where it cannot be read.
func tail(path string) string {
	f, err := regular.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 16 << 10
	if fi, err := f.Stat(); err == nil && fi.Size() > most {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return ""
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	return string(data)
}
