package run

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/internal/disk"
)

// A collector finds what of a store is needed no more.
type collector struct {
	own   disk.FS
	store *artifact.Store
}

// collect removes from the store what no archive names. There is no run: nothing is being written.
//
// Whatever looks like a digest counts as one, in the files of the archives and in what those name: more may stay than
// is needed, and nothing goes that is.
func (c collector) collect() error {
	named := map[string]bool{}
	var todo []string
	note := func(digest string) {
		if !named[digest] {
			named[digest] = true
			todo = append(todo, digest)
		}
	}
	if err := c.digestsIn(".", note); err != nil {
		return err
	}
	for len(todo) > 0 {
		digest := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !c.store.Has(digest) {
			continue // a hash of something else
		}
		f, err := c.store.Open(digest)
		if err != nil {
			return err
		}
		err = digests(f, note)
		f.Close()
		if _, wrong := errors.AsType[*artifact.Corrupt](err); err != nil && !wrong { // verify names it
			return err
		}
	}
	for _, place := range []string{dag.OwnObjects, dag.OwnCopies} {
		if err := c.keepOnly(place, named); err != nil {
			return err
		}
	}
	return nil
}

// digestsIn looks through the files of the run's own folder and its archives, but for the store and the folders of
// nodes.
func (c collector) digestsIn(dir string, note func(string)) error {
	list, err := c.own.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		name := path.Join(dir, e.Name())
		switch base := e.Name(); {
		case e.IsDir():
			folders := []string{dag.OwnArchives, dag.OwnCheckpoints, dag.OwnReverts}
			if slices.Contains(folders, base) || slices.Contains(folders, path.Base(dir)) {
				err = c.digestsIn(name, note)
			}
		case e.Type().IsRegular():
			var f disk.File
			if f, err = disk.OpenRegular(c.own, name); err == nil {
				err = digests(f, note)
				f.Close()
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// keepOnly removes the other objects of one place.
func (c collector) keepOnly(place string, named map[string]bool) error {
	folders, err := disk.List(c.own, place)
	for _, d := range folders {
		if err != nil || !d.IsDir() {
			continue
		}
		var list []fs.DirEntry
		list, err = c.own.ReadDir(path.Join(place, d.Name()))
		for _, e := range list {
			digest := d.Name() + e.Name()
			if err == nil && artifact.ValidDigest(digest) && !named[digest] {
				err = c.own.Remove(path.Join(place, d.Name(), e.Name()))
			}
		}
	}
	return err
}

// digests calls note with everything in r that looks like a digest.
func digests(r io.Reader, note func(string)) error {
	var word bytes.Buffer
	end := func() {
		if s := word.String(); artifact.ValidDigest(s) {
			note(s)
		}
		word.Reset()
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		for _, b := range buf[:n] {
			switch {
			case b >= '0' && b <= '9', b >= 'a' && b <= 'f':
				if word.Len() <= 64 {
					word.WriteByte(b)
				}
			default:
				end()
			}
		}
		if err != nil {
			end()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}
