package run

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/internal/disk"
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
func (r *Run) Spool(a Attempt) (string, error) { return r.emptied(spoolOf(a)) }

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
	list, err := disk.List(r.own, spoolDir)
	under := map[string]bool{}
	for _, v := range index.InFlight(r.state) {
		under[spoolOf(index.AttemptOf(v))] = true
	}
	for _, e := range list {
		if dir := spoolDir + "/" + e.Name(); !under[dir] {
			err = errors.Join(err, r.own.RemoveAll(dir))
		}
	}
	if len(under) == 0 && err == nil {
		return r.own.RemoveAll(spoolDir)
	}
	return err
}
