package run

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

const (
	// goneArchive is how the name of an archive begins that is being removed.
	goneArchive = "pruned-"
	// tickArchive is how the name of an archived tick begins. Its number follows, in eight digits.
	tickArchive = "tick-"
	// mostRemoved is how many removed ticks are named one by one; what was before them is summed up.
	mostRemoved = 100
	// leastGarbage is after how many removed ticks at least the store is looked through for what none needs any more.
	leastGarbage = 50
)

// A tick is what is told of a tick that has ended, beside its log.
type tick struct {
	machine.Ended
	Previous *machine.Ended    `json:"previous,omitempty"`
	Status   machine.RunStatus `json:"status"`
	Over     time.Time         `json:"over"`
	Spent    dag.Amount        `json:"spent"`

	archive string // its folder, in the run's own
}

// removedTicks are the ticks that retention has removed: the last ones, oldest first, and a sum of those before. It is
// written before one is removed.
type removedTicks struct {
	Ticks  int64      `json:"ticks"` // all that were removed
	Failed int64      `json:"failed,omitempty"`
	Spent  dag.Amount `json:"spent"`
	Last   []tick     `json:"last"`
	Sum    string     `json:"sum"` // digest of the above
}

func (t *removedTicks) digest() string {
	plain := *t
	plain.Sum = ""
	return artifact.DigestOf(plain)
}

// A tickFolder is the folder of a run as one in which ticks come and go.
type tickFolder struct{ own disk.FS }

// retain removes the ticks that keep does not, oldest first, and returns how many. One whose log is not what was
// recorded of it stays, for somebody to look at.
func (f tickFolder) retain(keep dag.Keep, now time.Time) (removed int, err error) {
	names, err := f.archived()
	for _, name := range names {
		if err == nil && strings.HasPrefix(name, goneArchive) { // a process was killed while it removed that
			err = f.own.RemoveAll(path.Join(dag.OwnArchives, name))
		}
	}
	if err != nil || keep == (dag.Keep{}) {
		return 0, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, tickArchive) })
	for k, name := range names { // in the order of the ticks: none is opened that stays
		tooMany := keep.Runs > 0 && len(names)-k > keep.Runs
		if !tooMany && keep.For == 0 {
			break
		}
		t, err := f.tick(name)
		if err != nil {
			return removed, err
		}
		if !tooMany && (t == nil || now.Sub(t.Over) <= keep.For.D()) {
			break
		}
		if t == nil || f.checkTick(*t) != nil {
			continue
		}
		if err := f.noteRemoved(*t); err != nil {
			return removed, err
		}
		if err := f.discard(t.archive); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// discard removes an archive: under its own name it is whole until it is gone.
func (f tickFolder) discard(dir string) error {
	return removeAs(f.own, dir, path.Join(dag.OwnArchives, goneArchive+path.Base(dir)))
}

// removeAs removes a folder under another name beside it, which it gets durably before: whoever is killed leaves it
// whole, or as something that is swept away.
func removeAs(fsys disk.FS, dir, to string) error {
	if err := fsys.Rename(dir, to); err != nil {
		return err
	}
	if err := fsys.SyncDir(path.Dir(to)); err != nil {
		return err
	}
	return fsys.RemoveAll(to)
}

// archived are the names of the archives, in their order.
func (f tickFolder) archived() (names []string, err error) {
	list, err := disk.List(f.own, dag.OwnArchives)
	for _, e := range list {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// ticks are the archived ticks, oldest first.
func (f tickFolder) ticks() (out []tick, err error) {
	names, err := f.archived()
	for _, name := range names {
		if strings.HasPrefix(name, goneArchive) {
			continue
		}
		t, err := f.tick(name)
		if err != nil {
			return nil, err
		}
		if t != nil {
			out = append(out, *t)
		}
	}
	slices.SortFunc(out, func(a, b tick) int { return cmp.Compare(a.Ticks, b.Ticks) })
	return out, err
}

// tick reads what is told of the tick in an archive; nil: that holds none.
func (f tickFolder) tick(name string) (*tick, error) {
	t := &tick{archive: path.Join(dag.OwnArchives, name)}
	found, err := readJSON(f.own, path.Join(t.archive, dag.OwnTick), t)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w (remove that folder, and its tick is missing in the chain)",
			f.own.Path(path.Join(t.archive, dag.OwnTick)), err)
	}
	if !found {
		return nil, nil
	}
	return t, nil
}

// checkTick holds what is told of an archived tick to its log.
func (f tickFolder) checkTick(t tick) error {
	var created *machine.RunCreatedBody
	log := path.Join(t.archive, dag.OwnLog)
	head, tail, err := eventlog.Read(f.own, log, eventlog.Head{}, func(e *machine.Event, _ *eventlog.Envelope) error {
		if b, ok := e.Body.(*machine.RunCreatedBody); ok && created == nil {
			created = b
		}
		return nil
	})
	if d, ok := errors.AsType[*eventlog.Damaged](err); ok {
		d.WayOut = "restore a copy of the file; no tick after it needs it"
	}
	switch {
	case err != nil:
		return err
	case tail.Bytes > 0 || head.Seq != t.Events || head.Hash != t.Head || created == nil || created.RunID != t.RunID ||
		!sameEnd(created.Previous, t.Previous):
		return fmt.Errorf("%s is not the log of tick %d as it ended: it has %d events, head %s; recorded are %d, head %s",
			f.own.Path(log), t.Ticks, head.Seq, head.Hash, t.Events, t.Head)
	}
	return nil
}

func sameEnd(a, b *machine.Ended) bool { return a == b || a != nil && b != nil && *a == *b }

// removed reads which ticks retention has removed.
func (f tickFolder) removed() (*removedTicks, error) {
	t := new(removedTicks)
	found, err := readJSON(f.own, dag.OwnRemoved, t)
	if found && t.Sum != t.digest() {
		err = errors.New("it is not as it was written")
	}
	if err != nil {
		return nil, fmt.Errorf("%s, which says what ticks were removed: %w (restore a copy of it, or remove it: the chain "+
			"of ticks is then proved from the oldest that is there)", f.own.Path(dag.OwnRemoved), err)
	}
	return t, nil
}

// noteRemoved records, durably, that a tick is removed.
func (f tickFolder) noteRemoved(t tick) error {
	list, err := f.removed()
	if err != nil {
		return err
	}
	if n := len(list.Last); n > 0 && list.Last[n-1].RunID == t.RunID {
		return nil // whoever was about to remove it died
	}
	list.Ticks++
	if t.Status == machine.RunBroken {
		list.Failed++
	}
	list.Spent.USD += t.Spent.USD
	list.Spent.Tokens += t.Spent.Tokens
	list.Last = append(list.Last, t)
	list.Last = list.Last[max(0, len(list.Last)-mostRemoved):]
	list.Sum = list.digest()
	return writeJSON(f.own, dag.OwnRemoved, list)
}

// chain checks that each tick that is there is the one after the tick before it, and the last the one that a run names
// as the one before it (now), and says what was removed.
func (f tickFolder) chain(now *machine.Ended) (detail string, err error) {
	gone, err := f.removed()
	if err != nil {
		return "", err
	}
	list, err := f.ticks()
	if err != nil {
		return "", err
	}
	var errs []error
	var before *machine.Ended
	follows := func(number int64, previous *machine.Ended) {
		if before != nil && !sameEnd(before, previous) {
			errs = append(errs, fmt.Errorf("tick %d does not follow tick %d (run %s, head %s): "+
				"it names another one before it", number, before.Ticks, before.RunID, before.Head))
		}
	}
	chain := gone.Last
	for _, t := range list {
		if n := len(gone.Last); n == 0 || t.Ticks > gone.Last[n-1].Ticks {
			chain = append(chain[:len(chain):len(chain)], t)
		}
		errs = append(errs, f.checkTick(t))
	}
	for _, t := range chain {
		follows(t.Ticks, t.Previous)
		before = &t.Ended
	}
	if before != nil && now == nil {
		errs = append(errs, fmt.Errorf("this run names no tick before it, and %d was", before.Ticks))
	} else if now != nil {
		follows(now.Ticks+1, now)
	}
	detail = fmt.Sprintf("%d before this one are kept", len(list))
	if gone.Ticks > 0 {
		detail += fmt.Sprintf(", %d were removed, %d of them failed; they cost $%s",
			gone.Ticks, gone.Failed, gone.Spent.USD)
	}
	return detail, errors.Join(errs...)
}

// readJSON reads a file into v; false where there is none.
func readJSON(fsys disk.FS, name string, v any) (found bool, err error) {
	data, err := disk.ReadFile(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	return err == nil, err
}

func writeJSON(fsys disk.FS, name string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return disk.WriteFile(fsys, name, data)
}
