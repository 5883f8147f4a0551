package report

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
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
	live  map[string]*growing // files being read, by path as they were opened
}

// NewPrinted prepares to follow the run whose directory dir names.
func NewPrinted(r *run.Run, o run.Options, dir string) *Printed {
	return &Printed{dir: dir, o: o, trace: newTrace(r, dir), live: map[string]*growing{}}
}

// longestLine is where a line that has no end is cut, in bytes.
const longestLine = 64 << 10

// A growing is a file that is being written.
type growing struct {
	f       *os.File
	line    PrintedLine
	partial []byte
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
	more, err := p.grow()
	return fresh || more, err
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
		name := outputs[stream(f.Name)]
		path := p.livePath(a, name, filepath.Ext(f.Name))
		g := p.live[path]
		if g == nil {
			from, err := regular.Open(f.Path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if err := seekTail(from, p.Tail); err != nil {
				return errors.Join(err, from.Close())
			}
			g = &growing{f: from, line: lineOf(a, name)}
		}
		delete(p.live, path)
		_, err := p.read(g)
		if err == nil {
			err = p.rest(g)
		}
		if err := errors.Join(err, g.f.Close()); err != nil {
			return err
		}
	}
	for path, g := range p.live { // what is not among the files that it kept
		if g.line.Node == a.Node {
			delete(p.live, path)
			_ = g.f.Close()
		}
	}
	return nil
}

func lineOf(a *Attempt, name string) PrintedLine {
	return PrintedLine{Kind: "output", Node: a.Node, Generation: a.Generation, Attempt: a.Attempt, Stream: name}
}

func (p *Printed) livePath(a *Attempt, name, ext string) string {
	return filepath.Join(p.trace.folder(a.Node, a.Generation), name+ext)
}

// grow prints what attempts under way have printed since the last look, node by node.
func (p *Printed) grow() (fresh bool, err error) {
	var under []int
	for _, i := range p.trace.open { // sorted below
		under = append(under, i)
	}
	slices.Sort(under)
	for _, i := range under {
		a := &p.trace.attempts[i]
		for _, name := range []string{"stdout.txt", "stderr.txt", "transcript.jsonl"} {
			path := filepath.Join(p.trace.folder(a.Node, a.Generation), name)
			g := p.live[path]
			if g == nil {
				f, err := regular.Open(path)
				if err != nil {
					continue // nothing printed yet
				}
				if fi, err := f.Stat(); err != nil || fi.ModTime().Before(a.Started) {
					_ = f.Close() // an earlier attempt left it
					continue
				}
				g = &growing{f: f, line: lineOf(a, strings.TrimSuffix(name, filepath.Ext(name)))}
				p.live[path] = g
			}
			more, err := p.read(g)
			if err != nil {
				return fresh, err
			}
			fresh = fresh || more
		}
	}
	return fresh, nil
}

// read prints the lines that a file has more than before.
func (p *Printed) read(g *growing) (fresh bool, err error) {
	buf := make([]byte, 32<<10)
	for {
		n, err := g.f.Read(buf)
		fresh = fresh || n > 0
		g.partial = append(g.partial, buf[:n]...)
		for {
			i := bytes.IndexByte(g.partial, '\n')
			if i < 0 && len(g.partial) > longestLine {
				i = longestLine
			}
			if i < 0 {
				break
			}
			if err := p.print(g, g.partial[:i]); err != nil {
				return fresh, err
			}
			g.partial = g.partial[min(i+1, len(g.partial)):]
		}
		if n == 0 || err != nil {
			if err == io.EOF {
				err = nil
			}
			return fresh, err
		}
	}
}

// rest prints a last line without an end.
func (p *Printed) rest(g *growing) error {
	if len(g.partial) == 0 {
		return nil
	}
	return p.print(g, g.partial)
}

func (p *Printed) print(g *growing, text []byte) error {
	for _, line := range strings.Split(strings.TrimSuffix(printable.Text(string(text)), "\n"), "\n") {
		l := g.line
		l.Text = line
		if err := p.Line(l); err != nil {
			return err
		}
	}
	return nil
}

// Close gives up the files that are still followed, after printing the last lines that have no end.
func (p *Printed) Close() (err error) {
	var paths []string
	for path := range p.live { // sorted below
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		err = errors.Join(err, p.rest(p.live[path]), p.live[path].f.Close())
	}
	p.live = nil
	return err
}

// seekTail goes to where the last lines of a file begin; 0 = to its beginning.
func seekTail(f *os.File, lines int) error {
	if lines == 0 {
		return nil
	}
	starts, at := []int64{0}, int64(0) // of the last lines
	for r := bufio.NewReader(f); ; {
		part, err := r.ReadSlice('\n')
		if at += int64(len(part)); err == nil {
			starts = append(starts[max(0, len(starts)-lines):], at)
		} else if err != bufio.ErrBufferFull {
			break
		}
	}
	if n := len(starts) - 1; n > 0 && starts[n] == at { // nothing stands behind the last line
		starts = starts[:n]
	}
	_, err := f.Seek(starts[max(0, len(starts)-lines)], io.SeekStart)
	return err
}
