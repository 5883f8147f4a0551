package executor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
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
	return errors.Join(disk.RemoveAll(dir), sweepHandedOn(r, dir))
}

// Outside returns the folders outside of a run in which attempts, of a process that was killed too, may have left
// something: whoever puts the run away removes them. scratch as in Options.
func Outside(r *run.Run, scratch string) []string {
	dir := scratchOf(r, scratch)
	return []string{dir, handedOnBy(dir)}
}

// What the attempts of a node hand on lies beside the scratch folders, by node and generation: the process that carries
// the run on after a kill finds it there.

// handedOnBy returns the folder that holds all such folders of a run, given that of its scratch folders.
func handedOnBy(scratch string) string { return scratch + "-handed-on" }

// handedOn returns the name of a node's folder there. The hash makes any node's id a name.
func handedOn(node string, generation int) string {
	sum := sha256.Sum256([]byte(node))
	return fmt.Sprintf("%x.%d", sum[:8], generation)
}

// handedOn returns the attempt's folder. An attempt that another process began knows the place from its scratch folder.
func (f *flight) handedOn() string {
	return filepath.Join(handedOnBy(filepath.Dir(f.slot.scratch)), handedOn(f.job.Node.ID, f.job.Generation))
}

// Carry makes the attempt's folder; see nodes.Task.Carry.
func (f *flight) Carry() (string, error) {
	if f.slot.scratch == "" {
		return "", errors.New("the attempt has no folder outside the run")
	}
	f.handsOn.Store(true)
	return f.handedOn(), os.MkdirAll(f.handedOn(), 0o700)
}

// dropHandedOn removes the folders of nodes that ended with the attempts that were recorded just now.
func (h *host) dropHandedOn() {
	for _, f := range h.handing {
		v, ok := h.state().NodeByID(f.job.Node.ID)
		if !ok || v.Status.Ended() || v.Generation != f.job.Generation {
			_ = disk.RemoveAll(f.handedOn()) // or it is swept
		}
	}
	h.handing = h.handing[:0]
}

// sweepHandedOn removes the folders of a run that no attempt will use any more.
func sweepHandedOn(r *run.Run, scratch string) error {
	dir := handedOnBy(scratch)
	list, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	used := map[string]bool{}
	st := r.State()
	for i := range st.Graph().Len() {
		if v := st.NodeAt(int32(i)); !v.Status.Ended() {
			used[handedOn(v.Node.ID, v.Generation)] = true
		}
	}
	for _, e := range list {
		if !used[e.Name()] {
			err = errors.Join(err, disk.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	_ = os.Remove(dir) // where nothing is left
	return err
}
