package report

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/printable"
	"dagrun.dev/internal/regular"
)

// A PrintedLine is a line that an attempt printed, or was answered.
type PrintedLine struct {
	Kind       string `json:"kind"` // output
	Node       string `json:"node"`
	Generation int    `json:"generation"`
	Attempt    int    `json:"attempt"`
	Stream     string `json:"stream"` // stdout | stderr | raw-output | transcript | response
	Text       string `json:"text"`   // safe for a terminal
}

// A Printed follows what the nodes of a run print: files of attempts that have ended, and those of attempts under way
// as they grow. It reads beside the process that carries the run on, and writes nothing.
type Printed struct {
	Node string                  // only this one; empty = all
	Tail int                     // last lines of each file only; 0 = all
	Line func(PrintedLine) error // called for each line, in order for each file

	dir   string
	o     run.Options
	head  eventlog.Head
	trace *trace
	files map[PrintedLine]*followed // of the files of attempts under way, by a line of theirs without its text
}

// NewPrinted prepares to follow the run whose directory dir names.
func NewPrinted(r *run.Run, o run.Options, dir string) *Printed {
	return &Printed{dir: dir, o: o, trace: newTrace(r, dir), files: map[PrintedLine]*followed{}}
}

// longestLine is where a line that has no end is cut, in bytes.
const longestLine = 64 << 10

// followed is a file as far as it was shown.
type followed struct {
	file    os.FileInfo
	at      int64
	partial []byte // a line whose end has not come
}

// Look prints what is new, and reports whether anything was.
func (p *Printed) Look() (fresh bool, err error) {
	var ends []Attempt
	renew := false
	head, err := readEvents(p.dir, p.head, func(e *machine.Event) {
		switch e.Body.(type) {
		case *machine.PlanAdoptedBody, *machine.PlanExtendedBody:
			renew = true
		}
		if n := machine.NodeOf(e.Body); p.Node != "" && n != p.Node {
			return
		}
		if ended := p.trace.event(e); ended != nil {
			ends = append(ends, *ended)
		}
	})
	if err != nil {
		return false, err
	}
	fresh, p.head = head != p.head, head
	if renew { // new nodes have folders of their own
		if err := p.renew(); err != nil {
			return fresh, err
		}
	}
	for i := range ends {
		if err := p.end(&ends[i]); err != nil {
			return fresh, err
		}
	}
	for _, i := range slices.Sorted(maps.Values(p.trace.open)) {
		a := &p.trace.attempts[i]
		for _, name := range []string{"stdout.txt", "stderr.txt", "transcript.jsonl"} {
			more, err := p.show(a, name, filepath.Join(p.trace.folder(a.Node, a.Generation), name), false)
			if err != nil {
				return fresh, err
			}
			fresh = fresh || more
		}
	}
	return fresh, nil
}

func (p *Printed) renew() error {
	r, _, err := run.OpenReadOnly(p.o)
	if err != nil {
		return err
	}
	p.trace.folder = newTrace(r, p.dir).folder
	return r.Close()
}

// end prints the rest of what an attempt has printed.
func (p *Printed) end(a *Attempt) error {
	for i := range a.Files {
		a.Files[i].Path = filepath.Join(p.trace.folder(a.Node, a.Generation), a.Files[i].Name)
	}
	for _, f := range outputsOf(a.Files) {
		if _, err := p.show(a, f.Name, f.Path, true); err != nil {
			return err
		}
	}
	maps.DeleteFunc(p.files, func(of PrintedLine, _ *followed) bool { return of.Node == a.Node }) // what it did not keep
	return nil
}

// show prints the lines that a file of an attempt has more than before; those of one that is over to their end.
func (p *Printed) show(a *Attempt, name, path string, over bool) (fresh bool, err error) {
	f, err := regular.Open(path)
	if err != nil {
		if over && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		return false, nil // nothing printed yet
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return false, err
	}
	of := PrintedLine{Kind: "output", Node: a.Node, Generation: a.Generation, Attempt: a.Attempt,
		Stream: outputs[stream(name)]}
	s := p.files[of]
	switch {
	case s == nil && over:
		s = &followed{}
		if s.at, err = tailAt(f, p.Tail); err != nil {
			return false, err
		}
	case s == nil && !fi.ModTime().Before(a.Started): // else an earlier attempt left it
		s = &followed{file: fi}
	case s == nil, !over && !os.SameFile(s.file, fi): // the next attempt has begun
		return false, nil
	}
	p.files[of] = s
	buf := make([]byte, 32<<10)
	for from := io.NewSectionReader(f, s.at, 1<<62); ; {
		n, err := from.Read(buf)
		s.at += int64(n)
		fresh = fresh || n > 0
		s.partial = append(s.partial, buf[:n]...)
		for len(s.partial) > 0 {
			i := bytes.IndexByte(s.partial, '\n')
			switch {
			case i < 0 && len(s.partial) > longestLine:
				i = longestLine
			case i < 0 && over && err == io.EOF:
				i = len(s.partial)
			}
			if i < 0 {
				break
			}
			if err := p.print(of, s.partial[:i]); err != nil {
				return fresh, err
			}
			s.partial = bytes.TrimPrefix(s.partial[i:], []byte("\n"))
		}
		if err == io.EOF {
			return fresh, nil
		}
		if err != nil {
			return fresh, err
		}
	}
}

func (p *Printed) print(of PrintedLine, text []byte) error {
	for _, of.Text = range strings.Split(strings.TrimSuffix(printable.Text(string(text)), "\n"), "\n") {
		if err := p.Line(of); err != nil {
			return err
		}
	}
	return nil
}

// Close prints the last lines, which have no end, of files that are still followed.
func (p *Printed) Close() (err error) {
	all := slices.SortedFunc(maps.Keys(p.files), func(a, b PrintedLine) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Stream, b.Stream))
	})
	for _, of := range all {
		if rest := p.files[of].partial; len(rest) > 0 {
			err = errors.Join(err, p.print(of, rest))
		}
	}
	return err
}

// tailAt is where the last lines of a file begin; 0 = at its beginning.
func tailAt(f *os.File, lines int) (int64, error) {
	if lines == 0 {
		return 0, nil
	}
	starts, at := []int64{0}, int64(0) // of the last lines
	for r := bufio.NewReader(f); ; {
		part, err := r.ReadSlice('\n')
		if at += int64(len(part)); err == nil {
			starts = append(starts[max(0, len(starts)-lines):], at)
		} else if err == io.EOF {
			break
		} else if err != bufio.ErrBufferFull {
			return 0, err
		}
	}
	if n := len(starts) - 1; n > 0 && starts[n] == at { // nothing stands behind the last line
		starts = starts[:n]
	}
	return starts[max(0, len(starts)-lines)], nil
}
