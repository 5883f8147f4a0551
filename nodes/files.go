package nodes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// KeepFrom makes a file in the node's own folder (see Task.Keep) of all that is read from a reader; where that fails
// and the reader can be read again, it goes to another place (see Task.Spare).
func (t *Task) KeepFrom(name string, from io.Reader) error {
	w, err := t.Keep(name)
	if err == nil {
		_, err = io.Copy(w, from)
		err = errors.Join(err, w.Close())
	}
	if again, ok := from.(io.ReadSeeker); ok && err != nil && t.Spare != nil && t.Spare(name, again) == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}

// KeepBeside is KeepFrom for what nobody paid for: where it cannot be kept that is a warning of the result.
func (t *Task) KeepBeside(res *Result, name string, from io.Reader) {
	if err := t.KeepFrom(name, from); err != nil {
		res.Warnings = append(res.Warnings, "lost: "+err.Error())
	}
}

// A Growing is a file in the node's own folder that is written while what it holds is still being printed, so that
// others can follow it. It belongs to one goroutine at a time.
type Growing struct {
	task *Task
	name string
	w    io.WriteCloser // nil: nothing was added
	size int64
	err  error
}

// Grow returns a file that may grow. It is made when something is added, or at the end.
func (t *Task) Grow(name string) *Growing { return &Growing{task: t, name: name} }

// Add writes a piece. Errors are those of Finish.
func (g *Growing) Add(piece []byte) {
	if g.w == nil && g.err == nil {
		g.w, g.err = g.task.Keep(g.name)
	}
	if g.err == nil {
		_, g.err = g.w.Write(piece)
		g.size += int64(len(piece))
	}
}

// Finish writes what was not added of all that was printed, and closes the file. Where nothing was printed there is
// none; what cannot be kept is a warning of the result.
func (g *Growing) Finish(res *Result, all io.ReaderAt, size int64) {
	whole := io.NewSectionReader(all, 0, size)
	switch {
	case g.err == nil && g.w == nil && size == 0:
		return
	case g.err == nil && g.w == nil:
		g.task.KeepBeside(res, g.name, whole)
		return
	case g.err == nil && size > g.size:
		_, g.err = io.Copy(g.w, io.NewSectionReader(all, g.size, size-g.size))
	}
	g.Close()
	if g.err != nil && (g.task.Spare == nil || g.task.Spare(g.name, whole) != nil) {
		res.Warnings = append(res.Warnings, fmt.Sprintf("lost: keep %s: %v", g.name, g.err))
	}
}

// Close closes the file as it is. It may be called after Finish.
func (g *Growing) Close() {
	if g.w != nil {
		g.err = errors.Join(g.err, g.w.Close())
		g.w = nil
	}
}

// Open opens an artifact, or else an input file.
func (t *Task) Open(artifact, file string) (io.ReadCloser, error) {
	if artifact != "" {
		return t.Artifact(artifact)
	}
	return t.File(file)
}

// Stage writes the content of an artifact below Task.Out, where a Result's Writes name it, and nowhere else:
// the name is data of the specification.
func (t *Task) Stage(artifact string, from io.Reader) error {
	if err := PutIn(t.Out, artifact, from); err != nil {
		return fmt.Errorf("stage %s: %w", artifact, err)
	}
	return nil
}

// PutIn writes a file below a folder of the machine; see Put.
func PutIn(dir, name string, from io.Reader) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return Put(root, name, from)
}

// Put writes a file of a folder, and the folders that lead to it. A name that leads out of the folder is an error.
func Put(root *os.Root, name string, from io.Reader) error {
	name = filepath.FromSlash(name)
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}
