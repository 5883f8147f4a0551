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

	mu     sync.Mutex
	wishes map[string]projection // by path
	wake   chan struct{}
	done   chan struct{}
	closed bool
}

// A projection is the content that a live file should have.
type projection struct {
	title   string
	entries []index.Version
}

func newProjector(own disk.FS, store *artifact.Store) *projector {
	p := &projector{own: own, store: store, wishes: map[string]projection{},
		wake: make(chan struct{}, 1), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *projector) offer(path string, w projection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.wishes[path] = w
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// close carries out what is wished for and ends.
func (p *projector) close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.wake)
	}
	p.mu.Unlock()
	<-p.done
}

func (p *projector) run() {
	defer close(p.done)
	for range p.wake {
		p.work()
	}
	p.work()
}

func (p *projector) work() {
	p.mu.Lock()
	wishes := p.wishes
	p.wishes = map[string]projection{}
	p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(wishes)) {
		if err := p.write(name, wishes[name]); err != nil {
			p.mu.Lock()
			if _, newer := p.wishes[name]; !newer { // with the next one, and at the end: the disk may be well again
				p.wishes[name] = wishes[name]
			}
			p.mu.Unlock()
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

// renew asks for the live file of an accumulator to show its valid entries.
func (r *Run) renew(name string) {
	if path, w, ok := r.projection("", name); ok {
		r.project.offer(path, w)
	}
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
