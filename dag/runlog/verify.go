package runlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
)

// Verify compares the six logs with what the events give: none was truncated, overwritten or
// deleted. Lines that were never written, or half a line at the end, are pending: the next start
// adds what is missing. A run that no command has carried on has no logs; those that another version
// began are not compared.
func Verify(o run.Options) run.Check {
	c := run.Check{Name: "logs", Pass: true}
	behind, err := verifyLogs(o)
	if errors.Is(err, errPosition) {
		c.Pending, c.Detail = true, err.Error()
		return c
	}
	switch {
	case err != nil:
		c.Pass, c.Detail = false, err.Error()+"; dagrun replay --logs makes them anew"
	case len(behind) > 0:
		c.Pending = true
		c.Detail = "the lines of the last events are missing in " + strings.Join(behind, ", ") +
			"; whoever carries the run on adds them, and so does dagrun replay --logs"
	}
	return c
}

// errPosition says nothing against the logs.
var errPosition = errors.New(run.LogsDir + "/" + positionName + " is not as it was written; the next start makes the " +
	"logs anew, and so does dagrun replay --logs")

func verifyLogs(o run.Options) (behind []string, err error) {
	own, err := run.OpenOwn(o)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	known := readPosition(own)
	if _, err := own.Lstat(run.LogsDir); errors.Is(err, fs.ErrNotExist) || known.Format != logFormat {
		return nil, nil
	}
	_, held, _ := eventlog.ReadLock(own, dag.OwnLock) // before the files: whoever holds it is behind with them
	if known.damaged && !held {
		return nil, errPosition
	}
	var found [logCount]*comparison
	var errs []error
	for i, name := range Names {
		f, err := disk.OpenRegular(own, run.LogsDir+"/"+name)
		if errors.Is(err, fs.ErrNotExist) && known.Seq == 0 {
			continue // whoever made them was killed between one and the next
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		fi, err := f.Stat() // before the events: a writer may be at work
		if err != nil {
			return nil, err
		}
		found[i] = &comparison{name: name, file: f, total: fi.Size(), written: known.Sizes[i]}
	}
	err = run.Walk(o, 0, func(e *machine.Event, st *machine.State) error {
		if en, worth := newEntry(e, st); worth {
			en.lines(func(log int, line []byte) {
				if found[log] != nil {
					found[log].want(e.Seq, line)
				}
			})
		}
		return nil
	})
	for _, c := range found {
		if c != nil {
			errs = append(errs, c.end())
			if c.over && !held {
				behind = append(behind, c.name)
			}
		}
	}
	return behind, errors.Join(append(errs, err)...)
}

// A comparison goes over one log beside its projection.
type comparison struct {
	name    string
	file    disk.File
	size    int64 // of what is equal; never above total
	total   int64
	written int64 // as the position has it
	buf     []byte
	over    bool // the file has ended
	err     error
}

// want compares the next line.
func (c *comparison) want(seq int64, line []byte) {
	if c.err != nil || c.over {
		return
	}
	c.buf = append(c.buf[:0], line...)[:min(int64(len(line)), c.total-c.size)]
	n, err := c.file.ReadAt(c.buf, c.size)
	if !bytes.Equal(c.buf[:n], line[:n]) {
		c.err = fmt.Errorf("%s differs from the events at byte %d (event %d)", c.name, c.size, seq)
		return
	}
	c.size += int64(n)
	if n < len(line) {
		c.over = true
		if err != nil && err != io.EOF {
			c.err = err
		}
	}
}

// end says what is wrong with the log.
func (c *comparison) end() error {
	if c.err != nil {
		return c.err
	}
	if c.total < c.written {
		return fmt.Errorf("%s was cut off: it has %d of the %d bytes that were written", c.name, c.total, c.written)
	}
	if c.total > c.size {
		return fmt.Errorf("%s has %d bytes that no event accounts for", c.name, c.total-c.size)
	}
	return nil
}
