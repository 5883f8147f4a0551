package executor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"dagrun.dev/dag/run"
)

// scratchOf returns the folder outside of a run that holds all scratch folders of its attempts. Its
// name is the same in every process that carries the run on, so that the next one finds what a
// killed one left; that nobody else can guess it is what the run's id is random for. A copy of the run has
// the same id and another place.
func scratchOf(r *run.Run, folder string) string {
	if folder == "" {
		folder = os.TempDir()
	}
	return filepath.Join(folder, strings.TrimSuffix("dagrun-"+r.ID()+"-"+r.Place(), "-"))
}

// Sweep removes the folders outside of a run that is open here which a killed process left and no attempt will
// use. Run does so by itself; it is for a run that has nothing left to do. scratch as in Options.
func Sweep(r *run.Run, scratch string) error {
	dir := scratchOf(r, scratch)
	return errors.Join(os.RemoveAll(dir), sweepHandedOn(r, dir))
}
