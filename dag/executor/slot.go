package executor

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"dagrun.dev/internal/disk"
)

// A slot is the pair of folders that one attempt uses: one inside the run, from which
// publishing is a rename, and one outside of it. They are used again by later attempts, so
// that a node that leaves nothing costs no file. So is the goroutine, whose stack has grown by then.
type slot struct {
	work         chan *flight // nil = of an attempt that was never launched
	out, scratch string       // absolute; empty = none
	dirs         []*os.File   // both, held open: what was put in their place is not emptied
	spoiled      bool         // something may still use them: not to be used again
}

// takeSlot returns a slot that nobody uses. Its folders exist and are empty.
func (h *host) takeSlot() (*slot, error) {
	for len(h.idle) > 0 {
		s := h.idle[len(h.idle)-1]
		h.idle = h.idle[:len(h.idle)-1]
		if !s.spoiled {
			return s, nil
		}
		s.remove()
	}
	h.slots++
	s := &slot{work: make(chan *flight, 1)}
	go func() {
		for f := range s.work {
			h.attempt(f)
		}
	}()
	var err error
	if s.out, err = h.run.Staging(fmt.Sprintf("w%d", h.slots)); err == nil {
		s.scratch = filepath.Join(h.scratch, fmt.Sprintf("w%d", h.slots))
		err = os.MkdirAll(s.scratch, private)
	}
	for _, dir := range []string{s.out, s.scratch} {
		if err == nil {
			var f *os.File
			if f, err = os.Open(dir); err == nil {
				s.dirs = append(s.dirs, f)
			}
		}
	}
	if err != nil {
		s.remove()
	}
	return s, err
}

// reset empties the folders for the next attempt.
func (s *slot) reset() {
	for _, dir := range s.dirs {
		if err := empty(dir); err != nil {
			s.spoiled = true
		}
	}
}

// untouched is the time of change that an empty folder is given. Whatever is made in it afterwards gives it the
// present one, so that one stat, instead of a seek and two reads of the folder, says that an attempt left nothing. It
// tells too whether the next attempt may use the folder (private): a change of that leaves the time as it is.
var untouched = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

const private fs.FileMode = 0o700

func isUntouched(dir *os.File) bool {
	fi, err := os.Lstat(dir.Name()) // not of the open one: it may have been removed, or renamed
	return err == nil && fi.IsDir() && fi.ModTime().Equal(untouched) && fi.Mode()&private == private
}

// empty removes everything in a folder. An error says that it cannot be used again.
func empty(dir *os.File) error {
	if isUntouched(dir) {
		return nil
	}
	if here, err := os.Lstat(dir.Name()); err != nil {
		return err
	} else if held, err := dir.Stat(); err != nil || !os.SameFile(here, held) {
		return cmp.Or(err, fs.ErrNotExist)
	} else if here.Mode()&private != private { // where there are no rights, as on FAT, nobody takes them away
		if err := dir.Chmod(private); err != nil {
			return err
		}
	}
	for {
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
		names, err := dir.Readdirnames(64)
		if errors.Is(err, io.EOF) {
			return os.Chtimes(dir.Name(), untouched, untouched)
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := disk.RemoveAll(filepath.Join(dir.Name(), name)); err != nil {
				return err
			}
		}
	}
}

// remove removes the folders of a slot that is not used again. What cannot be removed is swept
// when the run is next opened.
func (s *slot) remove() {
	if s.work != nil {
		close(s.work)
	}
	for _, f := range s.dirs {
		f.Close()
	}
	for _, dir := range []string{s.out, s.scratch} {
		if dir != "" {
			_ = disk.RemoveAll(dir)
		}
	}
}

// sweep removes the folders of all slots that nobody uses any more, and what held them if none is left.
func (h *host) sweep() {
	for _, s := range h.idle {
		s.remove()
	}
	_ = os.Remove(h.scratch)
	_ = sweepHandedOn(h.run, h.scratch) // what is left goes when the run is next opened
}
