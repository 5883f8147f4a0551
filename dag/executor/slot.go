package executor

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// A slot is the pair of folders that one attempt uses: one inside the run, from which
// publishing is a rename, and one outside of it. They are used again by later attempts, so
// that a node that leaves nothing costs no file.
type slot struct {
	out, scratch string // absolute; empty = not made yet
	spoiled      bool   // something may still use them: not to be used again
}

// takeSlot returns a slot that nobody uses. Its folders exist and are empty.
func (h *host) takeSlot() (*slot, error) {
	for len(h.idle) > 0 {
		s := h.idle[len(h.idle)-1]
		h.idle = h.idle[:len(h.idle)-1]
		if !s.spoiled {
			return s, nil
		}
	}
	h.slots++
	out, err := h.run.Staging(fmt.Sprintf("w%d", h.slots))
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp(h.o.Scratch, "dagrun-")
	return &slot{out: out, scratch: scratch}, err
}

// reset empties the folders for the next attempt.
func (s *slot) reset() {
	for _, dir := range []string{s.out, s.scratch} {
		if err := empty(dir); err != nil {
			s.spoiled = true
		}
	}
}

// empty removes everything in a folder. A folder that is empty costs one read.
func empty(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		names, err := f.Readdirnames(64)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
}

// sweep removes the folders of all slots that nobody uses any more.
func (h *host) sweep() {
	for _, s := range h.idle {
		os.RemoveAll(s.out)
		os.RemoveAll(s.scratch)
	}
}
