package run

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// prunedDir is what a run's folder is called from when it is removed until nothing of it is left; see goneArchive.
const prunedDir = Dir + ".pruned"

// An Old is something in an output directory that Prune removes, or leaves although it is old enough.
type Old struct {
	What  string    `json:"what"` // run | archive | leftover (of an earlier Prune that was cut off)
	Path  string    `json:"path"` // of its folder, relative to the output directory
	RunID string    `json:"run_id,omitempty"`
	Since time.Time `json:"since,omitzero"` // the run's last event; when the archive was made
	// Archives is how many archives of earlier runs go with a run.
	Archives int    `json:"archives,omitempty"`
	Bytes    int64  `json:"bytes"`
	Kept     string `json:"kept,omitempty"` // why it stays

	tick *tick // an archive: that of a tick
}

// Prune finds the run in an output directory when it has ended and its last event was before an instant, and those of
// its archives that were made before it; with remove it removes them, under the run's lock. What the run made outside
// of its own folder stays. A run that has not ended, cannot be read or is in use stays, and its archives with it.
//
// What is removed is renamed first, durably: whoever is killed leaves it whole or as a leftover, which no other command
// sees and the next Prune removes.
func Prune(o Options, before time.Time, remove bool) ([]Old, error) {
	o.Observe, o.Project = nil, nil
	out := o.FS
	if out == nil {
		var err error
		if out, err = disk.Open(o.Dir); err != nil {
			return nil, err
		}
		defer out.Close()
	}
	var found []Old
	if info, err := out.Lstat(prunedDir); err == nil && info.IsDir() {
		found = append(found, Old{What: "leftover", Path: prunedDir, Bytes: size(out, prunedDir)})
		if remove {
			if err := out.RemoveAll(prunedDir); err != nil {
				return nil, err
			}
		}
	}
	info, err := out.Lstat(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return found, nil
	}
	if err != nil || !info.IsDir() { // a link leads to somebody else's
		return append(found, Old{What: "run", Path: Dir, Kept: "it is no folder"}), err
	}
	r, err := quietly(o)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found, nil
	case err != nil:
		return append(found, unread(err)), nil
	}
	list, err := r.old(before, true)
	r.Close()
	removable := func(x Old) bool { return x.Kept == "" }
	if err != nil || !remove || !slices.ContainsFunc(list, removable) {
		return append(found, list...), err
	}
	r, err = enter(o)
	if _, held := errors.AsType[*eventlog.Locked](err); held {
		return append(found, Old{What: "run", Path: Dir, Kept: err.Error()}), nil
	}
	if err != nil {
		return found, err
	}
	defer r.leave()
	if err := r.read(&Report{}); err != nil {
		return append(found, unread(err)), nil
	}
	if list, err = r.old(before, false); err != nil {
		return found, err
	}
	for k, x := range list {
		if removable(x) {
			err = r.discard(x)
		}
		if err != nil {
			return append(found, list[:k]...), err
		}
	}
	return append(found, list...), nil
}

func unread(err error) Old {
	return Old{What: "run", Path: Dir, Kept: "it cannot be read: " + strings.SplitN(err.Error(), "\n", 2)[0]}
}

// old lists what of a run that was read is older than an instant; ask has it look whether somebody holds the run.
func (r *Run) old(before time.Time, ask bool) (list []Old, err error) {
	v := r.state.Run()
	whole := Old{What: "run", Path: Dir, RunID: v.ID, Since: v.Updated}
	switch {
	case ask && r.Held():
		whole.Kept = "it is in use"
	case v.Status == machine.RunPause:
		whole.Kept = "it is paused"
	case !v.Status.Ended():
		whole.Kept = "it has not ended"
	}
	archived, err := r.archived()
	if err != nil {
		return nil, err
	}
	ticks := r.Graph().Plan.Ticks != nil // the next one follows this one
	if v.Updated.Before(before) && !ticks {
		for _, x := range archived {
			if x.What == "archive" {
				whole.Archives++
			}
		}
		whole.Bytes = size(r.out, Dir)
		return []Old{whole}, nil
	}
	young := false // of ticks those go that are older than all that stay: the rest is a chain
	for _, x := range archived {
		young = young || x.tick != nil && !x.tick.Over.Before(before)
		if x.What == "leftover" || x.tick == nil && x.Since.Before(before) || x.tick != nil && !young {
			x.Kept = whole.Kept
			x.Bytes = size(r.out, x.Path)
			list = append(list, x)
		}
	}
	return list, nil
}

// archived lists the archives there are, and what is left of removed ones.
func (r *Run) archived() (list []Old, err error) {
	if info, err := r.own.Lstat(archives); err != nil || !info.IsDir() {
		return nil, nil
	}
	entries, err := r.own.ReadDir(archives)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() {
			continue
		}
		x := Old{What: "archive", Path: path.Join(Dir, archives, e.Name()), Since: info.ModTime()}
		begins := func(prefix string) bool { return strings.HasPrefix(e.Name(), prefix) }
		switch {
		case begins(goneArchive):
			x.What = "leftover"
		case !begins("run-") && !begins(tickArchive) && !begins("damaged-"):
			continue
		}
		list = append(list, x)
	}
	ticks, err := tickFolder{r.own}.ticks()
	for i := range ticks { // oldest first
		k := slices.IndexFunc(list, func(x Old) bool { return path.Base(x.Path) == path.Base(ticks[i].archive) })
		if k >= 0 {
			x := list[k]
			x.tick = &ticks[i]
			list = append(slices.Delete(list, k, k+1), x)
		}
	}
	return list, err
}

// discard removes one thing that old has found: under its own name it is whole until it is gone.
func (r *Run) discard(x Old) error {
	switch x.What {
	case "leftover":
		return r.out.RemoveAll(x.Path)
	case "archive":
		f := tickFolder{r.own}
		if x.tick != nil {
			if err := f.noteRemoved(*x.tick); err != nil {
				return err
			}
		}
		return f.discard(path.Join(archives, path.Base(x.Path)))
	}
	return removeAs(r.out, x.Path, prunedDir)
}

// size adds up the files of a folder, in bytes; what cannot be read counts as nothing.
func size(fsys disk.FS, dir string) (n int64) {
	list, _ := fsys.ReadDir(dir)
	for _, e := range list {
		if e.IsDir() {
			n += size(fsys, dir+"/"+e.Name())
		} else if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			n += info.Size()
		}
	}
	return n
}
