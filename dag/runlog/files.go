package runlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/machine"
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
var Names = [logCount]string{
	"orchestrator.log", "decisions.jsonl", "errors.jsonl", "cost.jsonl", "quality.jsonl", "passes.jsonl",
}

// positionName is a small file beside the logs that says up to which event they are whole. Without it they are made
// anew.
const positionName = ".position"

// logFormat is the version of the lines. Logs of another version are not compared with the events.
const logFormat = 4

// A position is what stands in it.
type position struct {
	Format int             `json:"format"` // of the first lines
	Seq    int64           `json:"seq"`
	Sizes  [logCount]int64 `json:"sizes"`
	Sum    string          `json:"sum,omitempty"` // digest of the above; earlier versions wrote none

	damaged bool // it is not as it was written: nobody knows how far the logs are
}

func (p position) digest() string {
	p.Sum = ""
	return artifact.DigestOf(p)
}

// A logFile is one log open for writing.
type logFile struct {
	file disk.File
	buf  []byte // behind what is written
}

// logFiles are the six logs. They belong to one goroutine.
//
// What stands in a file behind its size in the position was written by a process that died before it had written them
// all: it is written again from the events, as it was, so that a reader sees no log grow shorter; see trim. Logs that
// are made anew are written in their places, over what stands there.
type logFiles struct {
	own     disk.FS
	list    [logCount]logFile
	at      position // the lines of all events up to it are written; no file is shorter
	trimmed bool
}

// openLogs opens the logs of a run. Those that are not as the position says are made anew by catchUp.
func openLogs(o run.Options) (*logFiles, error) {
	own, err := run.OpenOwn(o)
	if err != nil {
		return nil, err
	}
	f := &logFiles{own: own}
	if err := f.open(); err != nil {
		_ = f.close()
		return nil, err
	}
	return f, nil
}

func (f *logFiles) open() error {
	if err := f.own.MkdirAll(run.LogsDir); err != nil {
		return err
	}
	if err := disk.Sweep(f.own, run.LogsDir); err != nil { // what a dead process has left of a summary
		return err
	}
	f.at = readPosition(f.own)
	anew := false
	for i := range f.list {
		l := &f.list[i]
		if fi, err := f.own.Lstat(logName(i)); err == nil && !fi.Mode().IsRegular() {
			return fmt.Errorf("%s: not a regular file", f.own.Path(logName(i)))
		}
		var err error
		if l.file, err = f.own.OpenFile(logName(i), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
		fi, err := l.file.Stat()
		if err != nil {
			return err
		}
		anew = anew || fi.Size() < f.at.Sizes[i] || f.at.Seq == 0 && fi.Size() > 0
	}
	if anew {
		return f.restart()
	}
	return nil
}

// trim cuts off, once, what still stands behind the lines of the events up to one of which a dead process may have
// written lines: half a line, or those of events that a loss of power took away.
func (f *logFiles) trim(through int64) error {
	if f.trimmed || f.at.Seq < through {
		return nil
	}
	for i := range f.list {
		l := &f.list[i]
		if fi, err := l.file.Stat(); err != nil {
			return err
		} else if fi.Size() > f.at.Sizes[i] {
			if err := l.file.Truncate(f.at.Sizes[i]); err != nil {
				return err
			}
		}
	}
	f.trimmed = true
	return nil
}

// logName is the name of a log in the run's own folder.
func logName(log int) string { return run.LogsDir + "/" + Names[log] }

// readPosition returns the position, that of empty logs when there is none, or it is not as it was written.
func readPosition(own disk.FS) (p position) {
	b, err := disk.ReadFile(own, run.LogsDir+"/"+positionName)
	if err != nil || json.Unmarshal(b, &p) != nil || p.Sum != "" && p.Sum != p.digest() {
		return position{Format: logFormat, damaged: err == nil}
	}
	return p
}

// add buffers the lines of an event.
func (f *logFiles) add(en *entry) {
	en.lines(func(log int, line []byte) {
		f.list[log].buf = append(f.list[log].buf, line...)
	})
}

// mostBuffered is about how many bytes are held before they are written.
const mostBuffered = 1 << 20

func (f *logFiles) buffered() (n int) {
	for i := range f.list {
		n += len(f.list[i].buf)
	}
	return n
}

// flush writes what is buffered: one write for each log. All lines up to an event are then there.
func (f *logFiles) flush(through int64) error {
	for i := range f.list {
		l := &f.list[i]
		if len(l.buf) == 0 {
			continue
		}
		if _, err := l.file.WriteAt(l.buf, f.at.Sizes[i]); err != nil {
			return err
		}
		f.at.Sizes[i] += int64(len(l.buf))
		l.buf = l.buf[:0]
	}
	f.at.Seq = through
	return f.note()
}

// note writes the position. A reader that finds half of it takes none.
func (f *logFiles) note() error {
	f.at.Sum = f.at.digest()
	b, err := json.Marshal(f.at)
	if err != nil {
		return err
	}
	file, err := f.own.OpenFile(run.LogsDir+"/"+positionName, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(b, '\n'))
	return errors.Join(err, file.Close())
}

// restart begins anew at the beginning of the logs: catchUp writes over what stands there, and trim cuts off what is
// left behind.
func (f *logFiles) restart() error {
	f.at, f.trimmed = position{Format: logFormat}, false
	return f.note()
}

// toEnd is behind every event.
const toEnd = 1 << 62

var errEnough = errors.New("enough")

// catchUp writes the lines of the events behind the last ones, up to the one numbered to.
func (f *logFiles) catchUp(o run.Options, to int64) error {
	seen := f.at.Seq
	if seen >= to {
		return nil
	}
	err := run.Walk(o, f.at.Seq, func(e *machine.Event, st *machine.State) error {
		if e.Seq > to {
			return errEnough
		}
		seen = e.Seq
		if en, worth := newEntry(e, st); worth {
			f.add(&en)
		}
		if f.buffered() > mostBuffered {
			return f.flush(e.Seq)
		}
		return nil
	})
	if err != nil && err != errEnough {
		return err
	}
	return f.flush(seen)
}

// close releases everything whatever state it is in.
func (f *logFiles) close() (err error) {
	if f == nil {
		return nil
	}
	for i := range f.list {
		if file := f.list[i].file; file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	f.own.Close()
	return err
}
