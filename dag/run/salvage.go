package run

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/internal/disk"
)

// salvage cuts a damaged log before its damage. Nothing is lost: what is cut off stands whole in the
// archive. The log is replaced last, so that a crash before leaves a damaged run to be salvaged again; after it the
// log is whole.
func (r *Run) salvage(rep *Report) error {
	_, _, err := r.probe()
	var d *eventlog.Damaged
	if !errors.As(err, &d) {
		return err
	}
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(r.o.Now.UTC().Format("2006-01-02T15:04:05.000Z"))
	dir, err := r.archiveDir("damaged-" + stamp)
	if err != nil {
		return err
	}
	// Without the mark, so that a log whose end is missing counts as far as it goes.
	if err := r.moveTo(dir, eventlog.MarkName(logFile)); err != nil {
		return err
	}
	good, known, err := r.probe()
	if good.Seq == 0 || err != nil && !errors.As(err, &d) {
		return err
	}
	if err := disk.Copy(r.own, logFile, dir+"/"+logFile+".damaged"); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	derived := []string{LogsDir}
	for _, name := range []string{snapshotFile, stateFile} {
		derived = append(derived, name, eventlog.BackupName(name))
	}
	for _, name := range append(derived, later(r.own, known)...) {
		if err := r.moveTo(dir, name); err != nil {
			return err
		}
	}
	if err := errors.Join(r.own.SyncDir(dir), r.own.SyncDir(archives), r.own.SyncDir(".")); err != nil {
		return err
	}
	if rep.Dropped, err = readDropped(r.own, dir+"/"+logFile+".damaged", good.Offset); err != nil {
		return err
	}
	if err := r.keepPrefix(good.Offset); err != nil {
		return err
	}
	rep.warn("%v", d)
	rep.warn("the run continues from its first %d events; what followed is kept in %s", good.Seq, path.Join(Dir, dir))
	if d := rep.Dropped; d.CostUSD > 0 {
		rep.warn("what followed records $%s spent, which the budget no longer counts: resuming pays again for %s",
			d.CostUSD, some(d.Paid))
	} else if d.Paying() {
		rep.warn("what followed may have been paid for: part of it cannot be read, or records calls")
	}
	return nil
}

// probe folds the log as far as it goes.
func (r *Run) probe() (good eventlog.Head, known []index.Checkpoint, err error) {
	v := &verification{Run: r}
	_, err = v.chain()
	good, known = v.head, v.index.Checkpoints()
	r.fold, r.head = newFold(r.loadPlan), eventlog.Head{}
	return good, known, err
}

// moveTo moves a file or folder into an archive, if it is there.
func (r *Run) moveTo(dir, name string) error {
	to := dir + "/" + name
	if err := r.own.MkdirAll(path.Dir(to)); err != nil {
		return err
	}
	if err := r.own.Rename(name, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// later returns the checkpoints that only lost events recorded.
func later(own disk.FS, known []index.Checkpoint) (names []string) {
	list, _ := own.ReadDir(checkpoints)
	for _, e := range list {
		found := false
		for _, c := range known {
			found = found || c.ID == e.Name()
		}
		if !found {
			names = append(names, checkpoints+"/"+e.Name())
		}
	}
	return names
}

// keepPrefix replaces the log by its first bytes.
func (r *Run) keepPrefix(n int64) error {
	src, err := r.own.OpenFile(logFile, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	return disk.Replace(r.own, logFile, func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(src, 0, n))
		return err
	}, nil)
}
