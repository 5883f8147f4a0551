package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
)

// The six logs.
const (
	humanLog = iota
	decisionLog
	errorLog
	costLog
	qualityLog
	nodeLog
	logCount
)

// Names are the names of the six logs in their folder.
var Names = [logCount]string{"orchestrator.log", "decisions.jsonl", "errors.jsonl", "cost.jsonl", "quality.jsonl", "passes.jsonl"}

// positionName is a small file beside the logs that says up to which event they are whole. It is a
// hint: without it the events are gone through from the first one.
const positionName = ".position"

// logFormat is the version of the lines. Logs of another version are not compared with the events.
const logFormat = 2

// A position is what stands in it.
type position struct {
	Format int             `json:"format"` // of the first lines
	Seq    int64           `json:"seq"`
	Sizes  [logCount]int64 `json:"sizes"`
}

// A logFile is one log open for appending. Lines that stand in it already are passed over.
type logFile struct {
	name string // now; replace gives it its own
	file disk.File
	size int64
	buf  []byte

	at    int64 // event of the last line, written or buffered
	lines int   // lines of that event
}

// logFiles are the six logs. They belong to one goroutine.
type logFiles struct {
	own     disk.FS
	list    [logCount]logFile
	through int64 // the lines of all events up to it are written
	format  int
}

// openLogs opens the logs of a run and finds out where they end. Half a line at the end, left by a
// crash, is cut off.
func openLogs(o run.Options) (*logFiles, error) {
	own, err := run.OpenOwn(o)
	if err != nil {
		return nil, err
	}
	f := &logFiles{own: own}
	if err := f.open(); err != nil {
		f.drop()
		return nil, err
	}
	return f, nil
}

func (f *logFiles) open() error {
	if err := f.own.MkdirAll(run.LogsDir); err != nil {
		return err
	}
	known := readPosition(f.own)
	f.through, f.format = known.Seq, known.Format
	for i := range f.list {
		l := &f.list[i]
		l.name = run.LogsDir + "/" + Names[i]
		if err := l.open(f.own); err != nil {
			return err
		}
		if l.size < known.Sizes[i] {
			f.through = 0
		}
	}
	return nil
}

// readPosition returns the position, that of empty logs when there is none.
func readPosition(own disk.FS) position {
	p := position{Format: logFormat}
	b, err := disk.ReadFile(own, run.LogsDir+"/"+positionName)
	if err != nil || json.Unmarshal(b, &p) != nil {
		return position{Format: logFormat}
	}
	return p
}

func (l *logFile) open(own disk.FS) error {
	if fi, err := own.Lstat(l.name); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", own.Path(l.name))
	}
	var err error
	if l.file, err = own.OpenFile(l.name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	fi, err := l.file.Stat()
	if err != nil {
		return err
	}
	l.size = fi.Size()
	return l.findEnd()
}

// findEnd reads the last lines: which event the last one belongs to, and how many lines it has.
func (l *logFile) findEnd() error {
	for window := int64(1 << 16); ; window *= 8 {
		start := max(0, l.size-window)
		tail := make([]byte, l.size-start)
		if _, err := l.file.ReadAt(tail, start); err != nil && err != io.EOF {
			return err
		}
		whole := bytes.LastIndexByte(tail, '\n') + 1
		if whole == 0 && start > 0 {
			continue
		}
		if cut := int64(len(tail) - whole); cut > 0 {
			if err := l.file.Truncate(l.size - cut); err != nil {
				return err
			}
			l.size -= cut
		}
		if l.countLast(tail[:whole]) || start == 0 {
			return nil
		}
	}
}

// countLast counts the lines of the last event; false when earlier ones may lie before the tail.
func (l *logFile) countLast(tail []byte) bool {
	l.at, l.lines = 0, 0
	for len(tail) > 0 {
		from := bytes.LastIndexByte(tail[:len(tail)-1], '\n') + 1
		seq := lineSeq(tail[from:])
		if l.lines > 0 && seq != l.at {
			return true
		}
		l.at = seq
		l.lines++
		tail = tail[:from]
	}
	return false
}

// lineSeq reads the event's number out of a line of any of the logs; 0 when there is none.
func lineSeq(line []byte) int64 {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	if !ok {
		if _, rest, ok = bytes.Cut(line, []byte("#")); !ok {
			return 0
		}
	}
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	seq, _ := strconv.ParseInt(string(rest[:n]), 10, 64)
	return seq
}

// add buffers the lines of an event, except for those that stand in the logs already.
func (f *logFiles) add(en *entry) {
	var lines [logCount]int
	en.lines(func(log int, line []byte) {
		l := &f.list[log]
		k := lines[log]
		lines[log]++
		if en.e.Seq < l.at || en.e.Seq == l.at && k < l.lines {
			return
		}
		l.buf = append(l.buf, line...)
		l.at, l.lines = en.e.Seq, k+1
	})
}

func (f *logFiles) buffered() (n int) {
	for i := range f.list {
		n += len(f.list[i].buf)
	}
	return n
}

// newest is the last event that a line tells of.
func (f *logFiles) newest() (seq int64) {
	for i := range f.list {
		seq = max(seq, f.list[i].at)
	}
	return seq
}

// flush writes what is buffered: one write for each log. All lines up to an event are then there.
func (f *logFiles) flush(through int64) error {
	p := position{Format: f.format, Seq: through}
	for i := range f.list {
		l := &f.list[i]
		if len(l.buf) > 0 {
			if _, err := l.file.WriteAt(l.buf, l.size); err != nil {
				return err
			}
			l.size += int64(len(l.buf))
			l.buf = l.buf[:0]
		}
		p.Sizes[i] = l.size
	}
	f.through = through
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return f.note(append(b, '\n'))
}

// note writes the position. A reader that finds half of it takes none.
func (f *logFiles) note(b []byte) error {
	file, err := f.own.OpenFile(run.LogsDir+"/"+positionName, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	return errors.Join(err, file.Close())
}

// restart goes on with empty files under temporary names, for replace.
func (f *logFiles) restart() error {
	f.through, f.format = 0, logFormat
	for i := range f.list {
		l := &f.list[i]
		l.file.Close()
		*l = logFile{name: disk.TempName(run.LogsDir + "/" + Names[i])}
		var err error
		if l.file, err = f.own.OpenFile(l.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// replace gives restarted files the names of the logs.
func (f *logFiles) replace() error {
	for i := range f.list {
		to := run.LogsDir + "/" + Names[i]
		if err := f.own.Rename(f.list[i].name, to); err != nil {
			return err
		}
		f.list[i].name = to
	}
	return f.own.SyncDir(run.LogsDir)
}

func (f *logFiles) close() error {
	var errs []error
	for i := range f.list {
		errs = append(errs, f.list[i].file.Close())
		f.list[i].file = nil
	}
	f.own.Close()
	return errors.Join(errs...)
}

// drop releases everything whatever state it is in, temporary files included.
func (f *logFiles) drop() {
	if f == nil {
		return
	}
	for i := range f.list {
		if l := &f.list[i]; l.file != nil {
			l.file.Close()
			if l.name != run.LogsDir+"/"+Names[i] {
				f.own.Remove(l.name)
			}
		}
	}
	f.own.Close()
}
