package nodes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// KeepFrom makes a file in the node's own folder (see Task.Keep) of all that is read from a reader.
func (t *Task) KeepFrom(name string, from io.Reader) error {
	w, err := t.Keep(name)
	if err == nil {
		_, err = io.Copy(w, from)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
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
