package run

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
)

// spoolDir holds a folder for each attempt under way that is given things which cannot be had
// again for nothing: what its program prints, what a server answers. Unlike staging it outlives
// the process; a folder goes when its attempt's end is recorded. What is in it is as it came, with
// secrets not masked: it is never archived.
const spoolDir = dag.OwnSpool

// spoolOf returns an attempt's folder there, relative to the run's. The hash makes any node's id
// a name.
func spoolOf(a Attempt) string {
	sum := sha256.Sum256([]byte(a.Node))
	return fmt.Sprintf("%s/%x.%d.%d", spoolDir, sum[:8], a.Generation, a.Attempt)
}

// Spool makes an attempt's folder for what it receives and returns its absolute path; it is empty.
// Any goroutine.
func (r *Run) Spool(a Attempt) (string, error) {
	dir := spoolOf(a)
	if err := r.own.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := r.own.MkdirAll(dir); err != nil {
		return "", err
	}
	return r.own.Path(dir), nil
}

// Spooled returns the absolute path of the folder that Spool made for an attempt, empty when there is
// none.
func (r *Run) Spooled(a Attempt) string {
	if _, err := r.own.Lstat(spoolOf(a)); err != nil {
		return ""
	}
	return r.own.Path(spoolOf(a))
}

// Unspool removes an attempt's folder. What cannot be removed goes when the run is next opened.
func (r *Run) Unspool(a Attempt) { _ = r.own.RemoveAll(spoolOf(a)) }

// dropSpools removes the folders of attempts whose end is recorded.
func (r *Run) dropSpools() error {
	list, err := r.own.ReadDir(spoolDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	under := map[string]bool{}
	for _, v := range index.InFlight(r.state) {
		under[spoolOf(Attempt{Node: v.Node.ID, Generation: v.Generation, Attempt: v.Attempt})] = true
	}
	for _, e := range list {
		if dir := spoolDir + "/" + e.Name(); !under[dir] {
			if err := r.own.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	if len(under) == 0 {
		return r.own.Remove(spoolDir)
	}
	return nil
}
