package run

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/eventlog/chain"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/printable"
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
	dir, err := r.archiveDir("damaged-" + stamp(r.o.Now))
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
	lost, err := unrecorded(r.own, known) // only lost events recorded them
	if err != nil {
		return err
	}
	for _, name := range append(derived, lost...) {
		if err := r.moveTo(dir, name); err != nil {
			return err
		}
	}
	if err := errors.Join(r.own.SyncDir(dir), r.own.SyncDir(archives), r.own.SyncDir(".")); err != nil {
		return err
	}
	if rep.Dropped, err = readDropped(r.own, dir+"/"+logFile+".damaged", good); err != nil {
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
func (r *Run) probe() (good eventlog.Head, known []machine.CheckpointView, err error) {
	v := &verification{Run: r}
	_, err = v.chain()
	good, known = v.head, v.state.Checkpoints()
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

// keepPrefix replaces the log by its first bytes.
func (r *Run) keepPrefix(n int64) error {
	src, err := r.own.OpenFile(logFile, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer src.Close()
	return disk.Replace(r.own, logFile, io.NewSectionReader(src, 0, n), nil)
}

// Dropped is what can still be read of the events that Options.Salvage cuts off. Nothing vouches for it, so
// nothing of it counts for the run: it is for the user who decides whether to pay again.
type Dropped struct {
	Unread  bool     // there was more, or may have been: a line that is none, or a log without its end
	Calls   bool     // there are calls of models among them
	CostUSD dag.USD  // that their ends of attempts tell
	Paid    []string // nodes with a completed attempt that cost something, in log order
	Effects []string // nodes with effect once or probe that may have begun among them and run again, in plan order

	begun []string // nodes with attempts among them, in log order
	next  int64    // the number of the event that is to come
}

// Paying reports whether something that was dropped may have been paid for.
func (d *Dropped) Paying() bool { return d.CostUSD > 0 || d.Calls || d.Unread }

// readDropped reads the lines of a log behind its good ones as far as they can be read, in any order and state.
func readDropped(fsys disk.FS, name string, good eventlog.Head) (*Dropped, error) {
	f, err := fsys.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d := &Dropped{Unread: true, next: good.Seq + 1}
	if fi, err := f.Stat(); err == nil {
		d.Unread = fi.Size() <= good.Offset // all of it is good: its end is missing
	}
	in := bufio.NewScanner(io.NewSectionReader(f, good.Offset, 1<<62))
	in.Buffer(nil, chain.MaxLine)
	for in.Scan() {
		d.add(in.Bytes())
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		d.Unread = true
	} else if err != nil {
		return nil, err
	}
	return d, nil
}

func (d *Dropped) add(line []byte) {
	var e struct {
		ID      string          `json:"event_id"`
		Type    machine.Type    `json:"type"`
		Payload json.RawMessage `json:"payload"`
	}
	err := json.Unmarshal(line, &e)
	if e.ID != chain.EventID(d.next) { // one before it is gone
		d.Unread = true
	}
	d.next++
	var body machine.Body
	if err == nil {
		body, err = machine.DecodePayload(e.Type, e.Payload)
	}
	if err != nil {
		d.Unread = true
		return
	}
	switch b := body.(type) {
	case *machine.LLMCallStartedBody, *machine.LLMCallFinishedBody, *machine.LLMCallFailedBody:
		d.Calls = true
	case *machine.StartedBody:
		d.begun = append(d.begun, b.Node)
	case *machine.FinishedBody:
		d.begun = append(d.begun, b.Node)
		d.CostUSD += b.CostUSD
		if b.CostUSD > 0 && b.Status == dag.StatusCompleted && !slices.Contains(d.Paid, b.Node) {
			d.Paid = append(d.Paid, b.Node)
		}
	}
}

// effects finds what going on would do to the world a second time, as far as one can know.
func (r *Run) effects(d *Dropped, rep *Report) {
	g := r.Graph()
	for i := range int32(g.Len()) {
		n := g.Node(i)
		if n.Effect.Repeatable() || r.state.StatusAt(i).Ended() || !d.Unread && !slices.Contains(d.begun, n.ID) {
			continue
		}
		d.Effects = append(d.Effects, n.ID)
	}
	if len(d.Effects) > 0 {
		rep.warn("what followed may hold attempts of %s, whose effects must not be repeated without asking: "+
			"resuming starts them again unless you skip them (--without NODE)", some(d.Effects))
	}
}

// some names the first few nodes.
func some(list []string) string {
	return cmp.Or(printable.Some(list, 10), "what failed")
}
