package run

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/internal/disk"
	"dagrun.dev/nodes"
)

// A projector renews the live files of accumulators beside the loop. They are projections of
// recorded entries: the newest wish wins, and what a crash loses Open makes again.
type projector struct {
	own   disk.FS
	store *artifact.Store

	works sync.WaitGroup

	mu     sync.Mutex
	wishes map[string]projection // by path
	busy   bool
}

// A projection is the content that a live file should have.
type projection struct {
	title   string
	entries []index.Version
}

func (p *projector) offer(path string, w projection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wishes[path] = w
	if !p.busy {
		p.busy = true
		p.works.Go(p.work)
	}
}

// close carries out what is wished for, when nothing is offered any more.
func (p *projector) close() {
	p.works.Wait()
	p.work()
}

// work carries out wishes while there are any. One that fails waits for the next one, and for the end: the disk may be
// well again.
func (p *projector) work() {
	failed := map[string]projection{}
	for {
		p.mu.Lock()
		wishes := p.wishes
		p.wishes = map[string]projection{}
		if len(wishes) == 0 {
			p.wishes, p.busy = failed, false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		for _, name := range slices.Sorted(maps.Keys(wishes)) {
			delete(failed, name)
			if p.write(name, wishes[name]) != nil {
				failed[name] = wishes[name]
			}
		}
	}
}

func (p *projector) write(name string, w projection) error {
	b, err := w.render(p.store)
	if err != nil {
		return err
	}
	if same, err := disk.Holds(p.own, name, b); err == nil && same {
		return nil
	}
	if err := p.own.MkdirAll(path.Dir(name)); err != nil {
		return err
	}
	return disk.WriteFile(p.own, name, b)
}

func (w projection) render(store *artifact.Store) ([]byte, error) {
	var list []Entry
	for _, v := range w.entries {
		e, err := readEntry(store, v.Digest)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return []byte(nodes.Accumulated(w.title, list)), nil
}

func readEntry(store *artifact.Store, digest string) (Entry, error) {
	b, err := store.Get(digest)
	if err != nil {
		return Entry{}, err
	}
	var e Entry
	if err := dag.DecodeJSON(b, &e); err != nil {
		return Entry{}, fmt.Errorf("%s: %w", store.Path(digest), err)
	}
	return e, nil
}

// renew asks for the live file of an accumulator to show its valid entries, and brings that of an artifact to the
// version that counts.
func (r *Run) renew(name string) error {
	if path, w, ok := r.projection("", name); ok {
		r.project.offer(path, w)
		return nil
	}
	if live, _ := r.index.Live(name); live == "" {
		return nil // an accumulator that is gone from the plan: its file stays as it was
	}
	if err := r.log.Sync(); err != nil { // before the file changes: see Publish
		return err
	}
	return r.restoreFile(name)
}

// projection returns path (in the run's folder) and content of an accumulator's live file, as a node sees it; as it is
// for no node.
func (r *Run) projection(node, name string) (string, projection, bool) {
	g := r.state.Graph()
	a, ok := g.Plan.AccumulatorByName(name)
	if !ok {
		return "", projection{}, false // gone from the plan: its file stays as it was
	}
	return a.Path, projection{cmp.Or(a.Title, a.Name), r.index.Entries(g, node, name)}, true
}
