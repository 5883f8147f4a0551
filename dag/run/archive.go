package run

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// Archive moves a run (state, log, logs, accumulators, node folders, checkpoints) to
// archives/run-<id>-<time of its start> so that Create works again, and returns that path relative to
// the output directory. Live artifacts stay; objects stay and are shared. A damaged run can be
// archived; then the time is now. It takes the lock for the time.
//
// The state goes first and the log last: a crash in between leaves a directory that Archive takes up
// again and in which nothing else begins.
func Archive(o Options) (string, error) {
	if err := presentAtAll(o); err != nil {
		return "", err
	}
	r, err := enter(o)
	if err != nil {
		return "", err
	}
	defer r.leave()
	id, started, published := identity(o)
	return r.archive("run", id, started, published)
}

// identity finds out which run a directory holds, and what it has put beside the specification; of a damaged one as
// much as can be read.
func identity(o Options) (id string, started time.Time, published []machine.PublishedView) {
	if r, err := quietly(o); err == nil {
		defer r.Close()
		return r.ID(), r.state.Run().Created, r.state.Published()
	}
	return "damaged", o.Now, nil
}

// presentAtAll is present, content with a run that lost its log.
func presentAtAll(o Options) error {
	err := present(o)
	if _, lost := errors.AsType[*eventlog.Damaged](err); lost {
		return nil
	}
	return err
}

func (r *Run) archive(as, id string, started time.Time, published []machine.PublishedView) (string, error) {
	if err := r.handDown(published); err != nil {
		return "", err
	}
	to, err := r.archiveDir(archiveName(as, id, started))
	if err != nil {
		return "", err
	}
	names, err := r.movable()
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if err := r.own.Rename(name, path.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if err := r.own.RemoveAll(spoolDir); err != nil {
		return "", err
	}
	for _, dir := range []string{to, archives, "."} {
		if err := r.own.SyncDir(dir); err != nil {
			return "", err
		}
	}
	return path.Join(Dir, to), nil
}

// movable is what of the run's folder goes with the run, the log last.
func (r *Run) movable() (names []string, err error) {
	list, err := r.own.ReadDir(".")
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		switch e.Name() {
		case objectsDir, copiesDir, stagingDir, spoolDir, archives, lockFile, logFile, previousFile,
			dag.OwnRemoved, dag.OwnWatch, publishedFile, eventlog.BackupName(publishedFile):
		default:
			if disk.IsTemp(e.Name()) || e.Name() == logFile+".reserve" {
				continue
			}
			names = append(names, e.Name())
		}
	}
	return append(names, logFile), nil
}

func archiveName(as, id string, started time.Time) string {
	return as + "-" + id + "-" + stamp(started)
}

// stamp is an instant as part of a name.
func stamp(t time.Time) string {
	return strings.NewReplacer(":", "-", ".", "-").Replace(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// archiveDir makes the folder. One that an archiving begun before has left is used again if it holds
// no log yet.
func (r *Run) archiveDir(name string) (string, error) {
	dir := archives + "/" + name
	n, err := r.free(1, func(n int) string { return numbered(dir, n) + "/" + logFile })
	if err != nil {
		return "", err
	}
	return numbered(dir, n), r.own.MkdirAll(numbered(dir, n))
}
