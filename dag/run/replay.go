package run

import (
	"dagrun.dev/dag/machine"
)

// Replay folds the whole log, ignoring snapshots, and says whether the snapshot on disk, if there is
// one, equals the replay up to its event. write renews that and state.json, which takes the lock. It runs
// no work.
func Replay(o Options, write bool) (st *machine.State, same bool, err error) {
	open := look
	if write {
		open = hold
	}
	r, err := open(o)
	if err != nil {
		return nil, false, err
	}
	defer r.leave()
	v := &verification{Run: r}
	if _, err := v.chain(); err != nil {
		return nil, false, err
	}
	same = v.made(snapshotFile) == nil
	if write {
		_, write, err := r.saved()
		if err == nil {
			err = write()
		}
		if err != nil {
			return nil, same, err
		}
	}
	return r.state, same, nil
}
