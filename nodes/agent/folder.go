package agent

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/capability"
)

// name is the name of a given file in the working folder.
func (g givenFile) name() string {
	own := cmp.Or(g.Artifact, path.Base(g.File))
	if g.Unpack {
		own = strings.TrimSuffix(own, path.Ext(own))
	}
	return cmp.Or(g.As, own)
}

// workFolder makes the agent's private working folder. Its .git/HEAD makes it the top of a
// project, so that no configuration above it is looked for.
func workFolder(t *nodes.Task, s *settings, dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for i, g := range s.Give {
		if !capability.Of(s.Provider).Service {
			g.Send = nil // a folder has room
		}
		if err := give(t, root, g); err != nil {
			return &nodes.Error{Category: "config", Message: fmt.Sprintf("give.%d", i), Err: err}
		}
	}
	return nil
}

func give(t *nodes.Task, root *os.Root, g givenFile) error {
	from, err := t.Open(g.Artifact, g.File) // as it was before the attempt
	if g.Optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer from.Close()
	if g.Unpack {
		return g.unpack(root, from)
	}
	return nodes.Put(root, g.name(), from)
}

const mostUnpacked = 1 << 30 // bytes, packed and unpacked

// sends reports whether a file of the archive is wanted.
func (g givenFile) sends(name string) bool {
	return len(g.Send) == 0 || slices.ContainsFunc(g.Send, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

func badPattern(pattern string) bool {
	_, err := path.Match(pattern, "")
	return err != nil
}

// unpack lays the files of a ZIP archive into a folder below root.
func (g givenFile) unpack(root *os.Root, from io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(from, mostUnpacked+1))
	if err != nil {
		return err
	}
	archive, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	left := int64(mostUnpacked)
	for _, f := range archive.File {
		if f.FileInfo().IsDir() || !g.sends(f.Name) {
			continue
		}
		if !filepath.IsLocal(f.Name) {
			return fmt.Errorf("unpack: %q leads out of the archive", f.Name)
		}
		content, err := f.Open()
		if err != nil {
			return fmt.Errorf("unpack %s: %w", f.Name, err)
		}
		limited := &io.LimitedReader{R: content, N: left + 1}
		err = nodes.Put(root, path.Join(g.name(), f.Name), limited)
		if err = errors.Join(err, content.Close()); err != nil {
			return fmt.Errorf("unpack %s: %w", f.Name, err)
		}
		if left = limited.N - 1; left < 0 {
			return fmt.Errorf("unpack: more than %d bytes", int64(mostUnpacked))
		}
	}
	return nil
}

const mostReport = 16 << 20 // bytes

// report returns the declared file when this attempt made it: the folder was empty but for the
// given files, and a given file that was not changed does not count.
func (q *question) report() (text string, made bool, err error) {
	if q.set.Report == "" {
		return "", false, nil
	}
	root, err := os.OpenRoot(q.folder)
	if err != nil {
		return "", false, err
	}
	defer root.Close()
	if info, err := root.Lstat(q.set.Report); err != nil || !info.Mode().IsRegular() || info.Size() > mostReport {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return "", false, err
	}
	b, err := regular.ReadIn(root, q.set.Report, mostReport) // what the agent left running may have replaced it since
	if err != nil {
		return "", false, err
	}
	given, err := q.given(q.set.Report)
	if err != nil || given == string(b) || strings.TrimSpace(string(b)) == "" {
		return "", false, err
	}
	return string(b), true, nil
}

// given returns the content that a file of the working folder had at the start.
func (q *question) given(name string) (string, error) {
	for _, g := range q.set.Give {
		if path.Clean(g.name()) != path.Clean(name) {
			continue
		}
		from, err := q.task.Open(g.Artifact, g.File)
		if err != nil {
			return "", err
		}
		defer from.Close()
		b, err := io.ReadAll(from)
		return string(b), err
	}
	return "", nil
}
