package run

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/state"
	"dagrun.dev/internal/disk"
)

// A Report says what Open found.
type Report struct {
	Source   string   // what the state was folded from: snapshot | backup | log
	Folded   int64    // events folded from the log
	Cut      string   // not empty: a torn tail was removed (read-only: left), and what it was
	InFlight []string // nodes whose attempts were under way, in plan order
	Edited   []string // artifacts that a user changed: set aside and adopted
	Restored []string // live files brought back to the recorded version
	Dropped  *Dropped // what Options.Salvage has cut off; nil = nothing was damaged
	Warnings []string // everything above and more as lines for the user
}

func (p *Report) warn(format string, a ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, a...))
}

// Open continues a run: it takes the lock, folds snapshot and log, removes a torn tail and staging
// leftovers, brings the working tree to what is recorded (see Report) and returns the run ready for
// Decide. It records user edits (ARTIFACT_WRITTEN) but neither lost attempts nor RUN_RESUMED: call
// Resume when the run is to go on.
// Errors: fs.ErrNotExist when there is no run, *eventlog.Locked, *eventlog.Damaged, *Newer.
func Open(o Options) (*Run, *Report, error) {
	r, err := hold(o)
	if err != nil {
		return nil, nil, err
	}
	rep := &Report{}
	if o.Salvage {
		err = r.salvage(rep)
	}
	if err == nil {
		err = r.open(rep)
	}
	if err == nil && rep.Dropped != nil {
		r.effects(rep.Dropped, rep)
	}
	if err != nil {
		r.leave()
		return nil, rep, err
	}
	return r, rep, nil
}

// OpenReadOnly folds the log without lock and without writing anything; it works beside a writer.
// Record and every other method that writes return an error.
func OpenReadOnly(o Options) (*Run, *Report, error) {
	r, err := look(o)
	if err != nil {
		return nil, nil, err
	}
	rep := &Report{}
	if err := r.read(rep); err != nil {
		r.closeTrees()
		return nil, rep, err
	}
	return r, rep, nil
}

// quietly opens a run for reading whose events nobody follows.
func quietly(o Options) (*Run, error) {
	o.Observe, o.Project = nil, nil
	r, _, err := OpenReadOnly(o)
	return r, err
}

// look attaches to the run that there is, for reading.
func look(o Options) (*Run, error) {
	if err := present(o); err != nil {
		return nil, err
	}
	r, err := attach(o, false)
	if err == nil {
		r.readOnly = true
	}
	return r, err
}

// hold is look for writing.
func hold(o Options) (*Run, error) {
	if err := present(o); err != nil {
		return nil, err
	}
	return enter(o)
}

// present says whether there is a run to open, and what is wrong with one that lost its log.
func present(o Options) error {
	out := o.FS
	if out == nil {
		var err error
		if out, err = disk.Open(o.Dir); err != nil {
			return err
		}
		defer out.Close()
	}
	none := fmt.Errorf("run: %s holds no run: %w", out.Path("."), fs.ErrNotExist)
	own, err := out.Sub(Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return none
	}
	if err != nil {
		return err
	}
	if o.FS == nil {
		defer own.Close()
	}
	if _, err := own.Lstat(logFile); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	has, err := hasRun(own)
	if err != nil {
		return err
	}
	if !has {
		return none
	}
	return &eventlog.Damaged{File: own.Path(logFile), WayOut: waysOut(own, 0),
		Why: "the event log is missing, but the rest of the run is there"}
}

// atRun is how a command line names the run.
func atRun(own disk.FS) string { return " --output-dir " + filepath.Dir(own.Path(".")) }

// checkpointsBefore are those there are, the newest first, and how many of them, the last, stand before an event.
func checkpointsBefore(own disk.FS, line int64) (all []string, before int) {
	list, _ := own.ReadDir(checkpoints)
	heads := map[string]int64{}
	for _, e := range list {
		if c, err := readManifest(own, e.Name()); err == nil {
			heads[e.Name()] = c.Head
		}
	}
	all = slices.Sorted(maps.Keys(heads))
	slices.SortStableFunc(all, func(a, b string) int { return int(heads[b] - heads[a]) })
	for _, id := range all {
		if heads[id]+1 < line { // its own event comes after its head
			before++
		}
	}
	return all, before
}

// waysOut lists what the user can do about a damage at an event. Going back to a checkpoint takes the
// events up to it. more stands before the last of them.
func waysOut(own disk.FS, line int64, more ...string) string {
	ways := []string{"restore a copy of the file"}
	all, n := checkpointsBefore(own, line)
	switch before := all[len(all)-n:]; {
	case n > 0:
		other := ""
		if n > 1 {
			other = "; or to " + strings.Join(before[1:], ", ")
		}
		ways = append(ways, "go back to a checkpoint before it (dagrun revert --checkpoint "+before[0]+atRun(own)+other+")")
	case len(all) > 0:
		ways = append(ways, "take the files of a checkpoint from "+own.Path(checkpoints)+" ("+strings.Join(all, ", ")+")")
	}
	return strings.Join(append(ways, more...), ", ") +
		", or archive this run and start over (dagrun apply SPEC --fresh" + atRun(own) + ")"
}

func (r *Run) open(rep *Report) error {
	from := r.load(rep)
	var tail eventlog.Tail
	var err error
	r.log, tail, err = eventlog.Open(r.own, logFile, from, r.o.log, r.folder(rep))
	if err != nil {
		return r.explain(err)
	}
	rep.tail(tail, "removed")
	r.begin()
	r.renewCopies(rep)
	rep.InFlight = nodeIDs(index.InFlight(r.state))
	r.orphan = r.state.Run().Ticking
	if err := errors.Join(r.dropUnrecorded(), r.dropSpools()); err != nil {
		return err
	}
	if err := r.mend(rep); err != nil {
		return err
	}
	for _, t := range r.listAccumulators() {
		if err := r.renew(t.Name); err != nil { // they may have changed after their files were last written
			return err
		}
	}
	r.index.Take()
	return nil
}

// read is open without writing.
func (r *Run) read(rep *Report) error {
	head, tail, err := eventlog.Read(r.own, logFile, r.load(rep), r.folder(rep))
	if err != nil {
		return r.explain(err)
	}
	rep.tail(tail, "left")
	r.head = head
	r.graph.Store(r.state.Graph())
	rep.InFlight = nodeIDs(index.InFlight(r.state))
	return nil
}

func (p *Report) tail(t eventlog.Tail, done string) {
	if t.Bytes > 0 {
		p.Cut = fmt.Sprintf("line %d %s (%d bytes, %s)", t.Line, t.Why, t.Bytes, done)
		p.warn("the log ends in the middle of an event, as after a crash: %s", p.Cut)
	}
}

// folder returns the function that folds events read from the log. An event that the machine
// refuses is damage: the chain is whole, but this cannot have happened.
func (r *Run) folder(rep *Report) func(*machine.Event, *eventlog.Envelope) error {
	return func(e *machine.Event, _ *eventlog.Envelope) error {
		if err := r.apply(e); err != nil {
			if _, known := errors.AsType[*eventlog.Damaged](err); known {
				return err
			}
			return r.explain(&eventlog.Damaged{File: r.own.Path(logFile), Line: e.Seq,
				Why: "cannot have happened: " + err.Error()})
		}
		rep.Folded++
		r.projected(e)
		if r.o.Observe != nil {
			r.o.Observe(e, true)
		}
		return nil
	}
}

// explain adds to a damage of the log what can be done in this directory.
func (r *Run) explain(err error) error {
	own := r.own
	d, ok := errors.AsType[*eventlog.Damaged](err)
	if !ok || d.File != own.Path(logFile) {
		return err
	}
	all, n := checkpointsBefore(own, d.Line)
	d.Before = all[len(all)-n:]
	if d.Salvage = d.Line != 1; !d.Salvage { // 0 is the end, which is missing
		d.WayOut = waysOut(own, d.Line)
		return err
	}
	d.WayOut = waysOut(own, d.Line, "resume from the events before it (dagrun resume --salvage"+atRun(own)+
		"; with --rerun NODE or --rerun GROUP/ that and what depends on it is done again)")
	return err
}

// load restores the newest usable snapshot and returns its head, the zero Head when the log must be
// folded from its first event.
func (r *Run) load(rep *Report) eventlog.Head {
	copies := []struct{ name, source string }{{snapshotFile, "snapshot"}, {eventlog.BackupName(snapshotFile), "backup"}}
	for _, c := range copies {
		s, err := eventlog.ReadSnapshot(r.own, c.name)
		if err == nil {
			err = r.restore(s)
		}
		if err == nil {
			rep.Source = c.source
			return s.Head
		}
		if !errors.Is(err, fs.ErrNotExist) {
			rep.warn("%v; using %s", err, map[string]string{"snapshot": "its second copy", "backup": "the log"}[c.source])
		}
		r.fold = newFold(r.loadPlan)
	}
	rep.Source = "log"
	return eventlog.Head{}
}

// restore makes a snapshot the state.
func (r *Run) restore(s *eventlog.Snapshot) error {
	g, err := r.loadPlan(s.Plan)
	if err != nil {
		return err
	}
	st, err := machine.RestoreSnapshot(s.State, g)
	if err != nil {
		return err
	}
	if v := st.Run(); v.Seq != s.Head.Seq || v.ID != s.RunID {
		return fmt.Errorf("the snapshot of event %d of run %s holds the state of event %d of run %s",
			s.Head.Seq, s.RunID, v.Seq, v.ID)
	}
	x, err := index.Decode(s.Index, st)
	if err != nil {
		return err
	}
	told := &state.Told{}
	if err := dag.DecodeJSON(s.Records, told); err != nil {
		return err
	}
	r.state, r.index, r.told = st, x, told
	return nil
}

func nodeIDs(list []machine.NodeView) []string {
	var ids []string
	for _, v := range list {
		ids = append(ids, v.Node.ID)
	}
	return ids
}
