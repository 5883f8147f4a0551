package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/dag/state"
	"dagrun.dev/internal/disk"
)

// A Check is one thing that Verify looked at.
type Check struct {
	Name string `json:"name"` // chain, snapshot, artifacts, backups, ... in a fixed order
	Pass bool   `json:"pass"`
	// Pending says that it passes because the next start renews by itself what is not as recorded: a process died, or
	// had no room, before it did.
	Pending bool   `json:"pending,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// A pending is what the next start renews by itself.
type pending struct{ error }

func pendingf(format string, a ...any) error { return pending{fmt.Errorf(format, a...)} }

// onlyPending reports whether everything that is not as recorded will be renewed.
func onlyPending(err error) bool {
	switch err := err.(type) {
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(err.Unwrap(), func(err error) bool { return !onlyPending(err) })
	case interface{ Unwrap() error }:
		return onlyPending(err.Unwrap())
	case pending:
		return true
	}
	return false
}

// Verify checks a run directory from outside without writing: the whole chain, the snapshot against
// the replay, every recorded artifact and backup, checkpoints, and the ten invariants of the state
// document. head, when not empty ("seq:hash" or "hash"), must be an event of the log.
//
// The error says that there is nothing to verify. A log that does not hold fails the check "chain", and
// what hangs on it is not checked.
func Verify(o Options, head string) ([]Check, error) {
	err := present(o)
	if _, lost := errors.AsType[*eventlog.Damaged](err); lost {
		return []Check{{Name: "chain", Detail: err.Error()}}, nil
	}
	r, err := look(o)
	if err != nil {
		return nil, err
	}
	defer r.closeTrees()
	v := &verification{Run: r, wantHead: head}
	v.check("chain", v.whole())
	if !v.list[0].Pass {
		return v.list, nil
	}
	head0 := fmt.Sprintf("%d events, head %d:%s", r.head.Seq, r.head.Seq, r.head.Hash)
	v.list[0].Detail = strings.TrimSuffix(head0+"; "+v.list[0].Detail, "; ")
	if head != "" {
		v.check("head", v.headFound())
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"snapshot", func() error { return v.made(snapshotFile) }}, // 1
		{"second copy", func() error { return v.made(eventlog.BackupName(snapshotFile)) }},
		{"document", v.document}, // 1
		{"plan and inputs", v.inputs},
		{"artifacts", v.artifacts}, // 2
		{"accumulators", v.accumulators},
		{"append-only", v.appendOnly},     // 3
		{"progress", v.progress},          // 4
		{"checkpoints", v.checkpoints},    // 5
		{"backups", v.backups},            // 6
		{"cost", v.cost},                  // 7
		{"idempotence", v.idempotence},    // 8
		{"allowed failures", v.softening}, // 9
		{"answers", v.answers},            // 10
		{"kept files", v.keptFiles},
	} {
		v.check(c.name, c.run())
	}
	if any, err := v.besides(); any {
		v.check("published", err)
	}
	if previous := v.state.Run().Previous; previous != nil || v.state.Graph().Plan.Ticks != nil {
		detail, err := tickFolder{v.own}.chain(previous)
		if err == nil {
			err = v.lastNoted(previous)
		}
		v.check("ticks", err)
		if err == nil {
			v.list[len(v.list)-1].Detail = detail
		}
	}
	return v.list, nil
}

// lastNoted: the file for the next tick names the tick that this one names, or this one where it is being put away.
func (v *verification) lastNoted(previous *machine.Ended) error {
	last, err := v.lastTick()
	if err != nil || previous == nil || last != nil && (last.Away == v.state.Run().ID || last.Ended == *previous) {
		return err
	}
	return pendingf("%s does not name the tick before this one, run %s; putting this one away writes it anew, and what "+
		"the ticks of the day have spent before is not known", v.own.Path(dag.OwnPrevious), previous.RunID)
}

// A verification is a replay with its eyes open: what is gathered on the way is compared at the end.
// The numbers above are those of the invariants in the state document.
type verification struct {
	*Run
	list     []Check
	wantHead string

	foundHead bool
	copies    map[string]*madeFile // by name
	spent     dag.USD
	answered  map[Attempt]answers // by node and generation (Attempt 0)
	kept      []kept
	published []*machine.PublishedBody
	regress   error
	ended     *machine.RunEndedBody // the last event, if it ended the run
}

// answers are the model calls of a node's generation that returned, and the folder that they are kept
// in: the one of the plan of then, which a later plan may not know.
type answers struct {
	calls int
	dir   string
}

// A kept is a file that an attempt left, and the folder of the plan of then.
type kept struct {
	machine.KeptFile
	dir string
}

func (v *verification) check(name string, err error) {
	c := Check{Name: name, Pass: err == nil}
	if err != nil {
		c.Pending = onlyPending(err)
		c.Pass = c.Pending
		c.Detail = err.Error()
	}
	v.list = append(v.list, c)
}

// whole folds the log and says what is wrong with it.
func (v *verification) whole() error {
	tail, err := v.chain()
	if err != nil || tail == (eventlog.Tail{}) {
		return err
	}
	if _, held, _ := eventlog.ReadLock(v.own, lockFile); held {
		return nil // a writer is in the middle of a line
	}
	if tail.Bytes > 0 {
		return pendingf("line %d %s: a torn end, which the next start removes", tail.Line, tail.Why)
	}
	return pendingf("%s is not as it was written, so that an end of the log that was cut off would not show; the next "+
		"start writes it anew", eventlog.MarkName(logFile))
}

// chain folds the log, ignoring snapshots but comparing them.
func (v *verification) chain() (eventlog.Tail, error) {
	v.answered = map[Attempt]answers{}
	v.readCopies()
	fold := v.folder(&Report{})
	var tail eventlog.Tail
	var err error
	each := func(e *machine.Event, env *eventlog.Envelope) error {
		before := v.endedBefore(e)
		if err := fold(e, env); err != nil {
			return err
		}
		v.gather(e, env, before)
		return nil
	}
	v.head, tail, err = eventlog.Read(v.own, logFile, eventlog.Head{}, each)
	v.graph.Store(v.state.Graph())
	return tail, v.explain(err)
}

// endedBefore reports whether the node of an end had ended already.
func (v *verification) endedBefore(e *machine.Event) bool {
	b, ok := e.Body.(*machine.FinishedBody)
	if !ok {
		return false
	}
	n, ok := v.state.NodeByID(b.Node)
	return ok && n.Status == machine.Completed && n.Generation == b.Generation
}

func (v *verification) gather(e *machine.Event, env *eventlog.Envelope, before bool) {
	v.foundHead = v.foundHead || v.wantHead == env.EventHash ||
		v.wantHead == strconv.FormatInt(e.Seq, 10)+":"+env.EventHash
	v.ended = nil
	switch b := e.Body.(type) {
	case *machine.FinishedBody:
		v.spent += b.CostUSD
		for _, k := range b.Kept {
			v.kept = append(v.kept, kept{k, nodeDir(v.state.Graph(), b.Node, b.Generation)})
		}
		if before && v.regress == nil {
			v.regress = fmt.Errorf("event %d ends node %s, which had completed in generation %d", e.Seq, b.Node, b.Generation)
		}
	case *machine.PublishedBody:
		v.published = append(v.published, b)
	case *machine.LLMCallFinishedBody:
		if generation, ok := callGeneration(b.CallID); ok {
			at := Attempt{Node: b.Node, Generation: generation}
			v.answered[at] = answers{v.answered[at].calls + 1, nodeDir(v.state.Graph(), b.Node, generation)}
		}
	case *machine.RunEndedBody:
		v.ended = b
	}
	for _, f := range v.copies {
		if f.err == nil && f.seq == e.Seq {
			f.err = f.compare(env)
		}
	}
}

// A madeFile is a file that is made of the log, and what is wrong with it. There is a second copy of each.
type madeFile struct {
	seq     int64 // the last event in it; 0 = it cannot be compared
	compare func(*eventlog.Envelope) error
	err     error
}

func twice(name string) []string { return []string{name, eventlog.BackupName(name)} }

// readCopies reads the files that are made of the log. A document of another version of the program is not compared,
// and the check says so.
func (v *verification) readCopies() {
	v.copies = map[string]*madeFile{}
	for _, name := range twice(snapshotFile) {
		s, err := eventlog.ReadSnapshot(v.own, name)
		f := &madeFile{err: err}
		if err == nil {
			f.seq = s.Head.Seq
			f.compare = func(env *eventlog.Envelope) error { return v.compareSnapshot(s, env) }
		}
		v.copies[name] = f
	}
	for _, name := range twice(stateFile) {
		var head state.Head
		raw, err := disk.ReadFile(v.own, name)
		if err == nil {
			err = json.Unmarshal(raw, &head)
		}
		if err == nil && (head.Version < 1 || head.Version == state.Version && head.Events < 1) {
			err = errors.New("it does not say its version, or up to which event it goes")
		}
		if err == nil && head.Version != state.Version {
			err = pendingf("it has schemaVersion %d, and this program writes %d: it is not compared with the log, and the "+
				"next start writes it anew", head.Version, state.Version)
		}
		f := &madeFile{err: err}
		if err == nil {
			f.seq = head.Events
			f.compare = func(*eventlog.Envelope) error {
				want, err := state.Make(v.source()).Encode()
				if err == nil && !bytes.Equal(want, raw) {
					err = fmt.Errorf("it differs from what the log gives up to event %d", head.Events)
				}
				return err
			}
		}
		v.copies[name] = f
	}
}

// made: a file is whole and equals what the log gives. None is as good: it can be made again.
func (v *verification) made(name string) error {
	switch f := v.copies[name]; {
	case errors.Is(f.err, fs.ErrNotExist):
		return nil
	case f.err == nil && f.seq > v.head.Seq:
		return fmt.Errorf("it holds event %d, the log ends with %d", f.seq, v.head.Seq)
	default:
		return f.err
	}
}

// document: state.json and its copy say what the log says.
func (v *verification) document() error {
	var errs []error
	for _, name := range twice(stateFile) {
		if err := v.made(name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// compareSnapshot compares a snapshot with what replaying gives at its event.
func (v *verification) compareSnapshot(s *eventlog.Snapshot, env *eventlog.Envelope) error {
	is, err := v.snapshot()
	switch {
	case err != nil:
		return err
	case s.Head.Hash != env.EventHash || s.RunID != env.RunID:
		return fmt.Errorf("it is of another log: event %d has hash %s there", s.Head.Seq, s.Head.Hash)
	case !bytes.Equal(is.State, s.State) || !bytes.Equal(is.Index, s.Index) || !bytes.Equal(is.Records, s.Records):
		return fmt.Errorf("it differs from the replay of the log up to event %d", s.Head.Seq)
	}
	return nil
}

func (v *verification) headFound() error {
	if v.foundHead {
		return nil
	}
	return fmt.Errorf("the log holds no event %s: it was cut or rewritten after that head was noted", v.wantHead)
}

// inputs: the plan in force and the input files it names are in the store.
func (v *verification) inputs() error {
	errs := []error{v.store.Verify(v.state.Run().PlanDigest)}
	for _, f := range v.state.Graph().Plan.Files {
		if err := v.store.Verify(f.Digest); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w; `dagrun apply` puts it back from the file as it was", f.Path, err))
		}
	}
	for _, f := range v.keptTwice() {
		if err := v.store.Single(f.Digest); err != nil && v.store.Verify(f.Digest) == nil {
			errs = append(errs, pendingf("one of the two copies of %s is lost (%w); the next start makes it again", f.Path, err))
		}
	}
	return errors.Join(errs...)
}

// appendOnly: the log still ends no earlier than what was once durable; the chain has proved that
// nothing before was changed.
func (v *verification) appendOnly() error {
	for _, name := range twice(snapshotFile) {
		if known := v.copies[name].seq; known > v.head.Seq {
			return fmt.Errorf("%s knows event %d, the log ends with %d", name, known, v.head.Seq)
		}
	}
	return nil
}

// progress: what has completed completes no second time unless a recorded rewind, revert or plan sent
// it back.
func (v *verification) progress() error { return v.regress }

// checkpoints: every checkpoint is whole, and every completed checkpoint node has one.
func (v *verification) checkpoints() error {
	var errs []error
	made := map[string]bool{}
	for _, c := range v.Checkpoints() {
		made[c.Node] = true
		if c.Valid != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.ID, c.Valid))
		}
	}
	g := v.state.Graph()
	for i := range int32(g.Len()) {
		n := g.Node(i)
		if n.Role().Saves && v.state.NodeAt(i).Status == machine.Completed && !made[n.ID] {
			errs = append(errs, fmt.Errorf("node %s completed without a checkpoint", n.ID))
		}
	}
	return errors.Join(errs...)
}

// cost: the ledger is the sum of the recorded costs.
func (v *verification) cost() error {
	l := v.state.Ledger()
	if got := l.Spent.USD - l.Assumed; got != v.spent && l.Spent.USD != v.spent {
		return fmt.Errorf("the state says $%f, the events add up to $%f", l.Spent.USD.Float(), v.spent.Float())
	}
	return nil
}

// idempotence: the state survives being saved and restored, and taking the plan in force anew changes
// nothing.
func (v *verification) idempotence() error {
	raw, err := v.state.AppendSnapshot(nil)
	if err != nil {
		return err
	}
	g, err := v.loadPlan(v.state.Run().PlanDigest)
	if err != nil {
		return err
	}
	again, err := machine.RestoreSnapshot(raw, g)
	if err != nil {
		return err
	}
	back, err := again.AppendSnapshot(nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(raw, back) {
		return errors.New("the state changes when it is saved and restored")
	}
	if d := v.Compare(g); !d.Same || d.Count(reuse.DoReuse)+d.Count(reuse.DoRun) < len(d.Nodes) {
		return errors.New("adopting the plan in force would change it")
	}
	return nil
}

// softening: a run that says how many nodes ended how says the truth, and failures that the spec allows
// did not stop it.
func (v *verification) softening() error {
	e := v.ended
	if e == nil {
		return nil
	}
	s := v.state
	completed, failed, skipped := s.Count(machine.Completed), s.Count(machine.Failed), s.Count(machine.Skipped)
	if e.Completed != completed || e.Skipped != skipped || !e.Failed && e.Soft != failed {
		return fmt.Errorf("the end says %d completed, %d failed, %d skipped; the state has %d, %d, %d",
			e.Completed, e.Soft, e.Skipped, completed, failed, skipped)
	}
	return nil
}
