// Package folder describes a folder as one content: a list of the files in it by their digests, whose own digest
// stands for all of them.
//
// It opens nothing: who walks a folder says how its entries are read and files are kept.
package folder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"
)

const format = 1

// Most bounds how many files a folder may have.
const Most = 100_000

// A Manifest lists what is in a folder, by path. Two folders with the same files have the same manifest, whatever
// their modes and times.
type Manifest struct {
	Format int    `json:"format"`
	Files  []File `json:"files"`
}

// A File is a file of a folder, or, with a slash at the end of its path and no digest, a folder in it that is empty.
type File struct {
	Path   string `json:"path"` // slash-separated, relative to the folder
	Digest string `json:"sha256,omitempty"`
	Size   int64  `json:"size,omitempty"`
}

// A Refused says what stands in a folder that cannot be kept: a link, a pipe, a device, a name that is no text.
type Refused struct{ Path, What string }

func (r *Refused) Error() string { return fmt.Sprintf("%q is %s", r.Path, r.What) }

// Walk makes the manifest of a folder. read lists one that is in it ("." is the folder itself), file keeps a regular
// file or looks at it.
func Walk(read func(dir string) ([]fs.DirEntry, error), file func(path string) (digest string, size int64, err error),
) (*Manifest, error) {
	m := &Manifest{Format: format, Files: []File{}}
	var walk func(dir, prefix string) error
	walk = func(dir, prefix string) error {
		list, err := read(dir)
		if err != nil {
			return err
		}
		if len(list) == 0 && prefix != "" {
			m.Files = append(m.Files, File{Path: prefix})
		}
		for _, e := range list {
			p := prefix + e.Name()
			switch {
			case !utf8.ValidString(p) || strings.ContainsAny(p, "\\\n\x00"):
				return &Refused{p, "a name that cannot be kept"}
			case len(m.Files) >= Most:
				return &Refused{p, fmt.Sprintf("more than a folder may hold (%d files)", Most)}
			case e.IsDir():
				err = walk(p, p+"/")
			case !e.Type().IsRegular():
				return &Refused{p, kind(e.Type()) + ", which cannot be kept"}
			default:
				f := File{Path: p}
				f.Digest, f.Size, err = file(p)
				m.Files = append(m.Files, f)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(".", ""); err != nil {
		return nil, err
	}
	slices.SortFunc(m.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return m, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a link"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Encode returns a manifest as it is kept: the digest of these bytes is that of the folder.
func (m *Manifest) Encode() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		panic(err) // texts and numbers only
	}
	return b.Bytes()
}

// Decode reads what Encode gave. Paths that lead out of the folder are an error.
func Decode(b []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("list of a folder: %w", err)
	}
	if m.Format != format {
		return nil, fmt.Errorf("list of a folder: format %d, this program reads %d", m.Format, format)
	}
	for i, f := range m.Files {
		p := strings.TrimSuffix(f.Path, "/")
		if !fs.ValidPath(p) || p == "." || (p == f.Path) != (f.Digest != "") || i > 0 && m.Files[i-1].Path >= f.Path {
			return nil, fmt.Errorf("list of a folder: %q cannot stand there", f.Path)
		}
	}
	return m, nil
}

// Find returns a file of the folder by its path.
func (m *Manifest) Find(path string) (File, bool) {
	i, ok := slices.BinarySearchFunc(m.Files, path, func(f File, p string) int { return strings.Compare(f.Path, p) })
	if !ok || m.Files[i].Digest == "" {
		return File{}, false
	}
	return m.Files[i], true
}

// Size is the size of all files, in bytes.
func (m *Manifest) Size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}
