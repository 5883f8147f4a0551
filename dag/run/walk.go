package run

import (
	"cmp"
	"slices"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// LogsDir is the folder of the logs for people, in the run's own folder. They are made of the events
// by whoever runs the run; a salvaged run begins them anew.
const LogsDir = dag.OwnLogs

// Walk folds the log of a run and calls visit with each event behind the one numbered after and with
// the state as of that event, which visit must not keep. It begins with a snapshot where one is old
// enough. It writes nothing and works beside a writer; an event that is half written is left out. An
// error of visit ends the walk and is returned.
func Walk(o Options, after int64, visit func(e *machine.Event, st *machine.State) error) error {
	o.Observe, o.Project = nil, nil
	r, err := look(o)
	if err != nil {
		return err
	}
	defer r.closeTrees()
	from := r.load(&Report{})
	if from.Seq > after {
		r.fold, from = newFold(r.loadPlan), eventlog.Head{}
	}
	fold := r.folder(&Report{})
	_, _, err = eventlog.Read(r.own, logFile, from, func(e *machine.Event, env *eventlog.Envelope) error {
		if err := fold(e, env); err != nil || e.Seq <= after {
			return err
		}
		return visit(e, r.state)
	})
	return err
}

// Hold takes the lock of a run for work beside its log and returns what gives it up.
func Hold(o Options) (release func(), err error) {
	r, err := hold(o)
	if err != nil {
		return nil, err
	}
	return r.leave, nil
}

// OpenOwn opens the run's own folder. The caller closes it.
func OpenOwn(o Options) (disk.FS, error) {
	if o.FS != nil {
		return o.FS.Sub(Dir)
	}
	out, err := disk.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	return out.Sub(Dir)
}

// Synced returns the number of the last event known to be durable, 0 for a run open for reading
// only. Any goroutine, also after Close.
func (r *Run) Synced() int64 {
	if r.log == nil {
		return 0
	}
	return r.log.Synced()
}

func (r *Run) projected(e *machine.Event) {
	if r.o.Project != nil {
		r.o.Project(e, r.state)
	}
}

// LivePaths returns where the artifacts of a run are, relative to the output directory, in plan
// order of the nodes that write them.
func (r *Run) LivePaths() []string { return r.paths(false) }

// LeftPaths returns where files are that no node has written in the run as it is now: their nodes have left the plan
// or are skipped, by an edit or a revert. They stay as they are, and their contents are in the store.
func (r *Run) LeftPaths() []string { return r.paths(true) }

// listArtifacts returns copies of all artifacts, accumulators left out, in the order of listed.
func (r *Run) listArtifacts() []index.Artifact { return r.listed(false) }

// listAccumulators returns copies of all accumulators that have entries, in the order of listed.
func (r *Run) listAccumulators() []index.Artifact { return r.listed(true) }

// listed returns copies in plan order of the first nodes that write them: the order in which nodes
// happened to end is another one in each run. What no node writes any more comes last, by name.
func (r *Run) listed(accumulators bool) []index.Artifact {
	list := r.index.List(accumulators)
	g := r.state.Graph()
	writer := make(map[string]int, len(list))
	for _, t := range list {
		writer[t.Name] = g.Len()
		if w := g.Writers(t.Name); len(w) > 0 {
			writer[t.Name] = int(w[0])
		}
	}
	slices.SortFunc(list, func(a, b index.Artifact) int {
		return cmp.Or(cmp.Compare(writer[a.Name], writer[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func (r *Run) paths(left bool) (paths []string) {
	for _, t := range r.listArtifacts() {
		if t.Live != "" && r.leftBehind(t) == left {
			paths = append(paths, t.Path)
		}
	}
	return paths
}

// leftBehind reports whether no version of an artifact counts, and no node is going to write one.
func (r *Run) leftBehind(t index.Artifact) bool {
	g := r.state.Graph()
	for _, i := range g.Writers(t.Name) {
		if !r.state.StatusAt(i).Ended() {
			return false
		}
	}
	if t.Pending() {
		return false
	}
	_, _, counts := r.index.Counts(t.Name, g)
	return !counts
}
