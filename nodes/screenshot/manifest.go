package screenshot

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"

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
			if err := p.keep(t); err != nil {
				return err
			}
		}
	}
	if err := t.KeepFrom(manifestName, bytes.NewReader(text)); err != nil {
		return err
	}
	res.Writes = map[string]string{}
	if s.Manifest != "" {
		res.Writes[s.Manifest] = s.Manifest
		if err := t.Stage(s.Manifest, bytes.NewReader(text)); err != nil {
			return err
		}
	}
	if s.To == "" {
		return nil
	}
	res.Writes[s.To] = s.To
	from, to := io.Pipe()
	packed := make(chan struct{})
	go func() {
		defer close(packed)
		to.CloseWithError(m.pack(to, text))
	}()
	err = t.Stage(s.To, from)
	_ = from.Close() // ends the packing after an error
	<-packed
	return err
}

func (p *shot) keep(t *nodes.Task) error {
	from, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer from.Close()
	return t.KeepFrom(p.Name, from)
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
