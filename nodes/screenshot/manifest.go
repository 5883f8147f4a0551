package screenshot

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"dagrun.dev/nodes"
)

// A manifest says what the pictures are. It holds nothing that differs between two looks at a page
// that does not.
type manifest struct {
	Browser   string  `json:"browser"`
	Viewports []album `json:"viewports"`
}

const manifestName = "manifest.json"

// keep puts pictures and manifest into the node's folder and stages the artifacts.
func (m *manifest) keep(t *nodes.Task, s *settings, res *nodes.Result) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	for _, a := range m.Viewports {
		for _, p := range a.Shots {
			if err := keepFile(t, p); err != nil {
				return fmt.Errorf("keep %s: %w", p.Name, err)
			}
		}
	}
	w, err := t.Keep(manifestName)
	if err != nil {
		return err
	}
	if err := put(w, bytes.NewReader(text)); err != nil {
		return err
	}
	res.Writes = map[string]string{}
	if s.Manifest != "" {
		if err := stage(t, res, s.Manifest, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return err
		}
	}
	if s.To != "" {
		return stage(t, res, s.To, func(w io.Writer) error { return m.pack(w, text) })
	}
	return nil
}

func keepFile(t *nodes.Task, p shot) error {
	from, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer from.Close()
	w, err := t.Keep(p.Name)
	if err != nil {
		return err
	}
	return put(w, from)
}

func put(w io.WriteCloser, from io.Reader) error {
	_, err := io.Copy(w, from)
	return errors.Join(err, w.Close())
}

// stage writes an artifact below Task.Out and nowhere else.
func stage(t *nodes.Task, res *nodes.Result, name string, write func(io.Writer) error) error {
	root, err := os.OpenRoot(t.Out)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := filepath.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("stage %s: %w", name, err)
		}
	}
	f, err := root.Create(name)
	if err != nil {
		return fmt.Errorf("stage %s: %w", name, err)
	}
	res.Writes[name] = name
	return errors.Join(write(f), f.Close())
}

// pack writes the archive: the same pictures give the same bytes.
func (m *manifest) pack(w io.Writer, text []byte) error {
	z := zip.NewWriter(w)
	add := func(name string, method uint16, from io.Reader) error {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method}) // no time
		if err == nil {
			_, err = io.Copy(f, from)
		}
		return err
	}
	if err := add(manifestName, zip.Deflate, bytes.NewReader(text)); err != nil {
		return err
	}
	for _, a := range m.Viewports {
		for _, p := range a.Shots {
			b, err := os.ReadFile(p.path)
			if err != nil {
				return err
			}
			if err := add(p.Name, zip.Store, bytes.NewReader(b)); err != nil {
				return err
			}
		}
	}
	return z.Close()
}
