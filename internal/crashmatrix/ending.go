package crashmatrix

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// An ending is what a run leaves that must not depend on crashes.
type ending struct {
	nodes int
	types []string          // of the events, in order
	facts map[string]string // status and values of nodes, artifacts, accumulators: name to digest
	twice []string          // nodes that were started again after they were completed
}

// ending reads how the run stands.
func (s *scratch) ending() (*ending, error) {
	e := &ending{facts: map[string]string{}}
	done := map[string]int{} // generation in which a node was completed
	o := run.Options{Dir: s.output(), Command: "dagrun selftest", Now: time.Now()}
	err := run.Walk(o, 0, func(ev *machine.Event, _ *machine.State) error {
		e.types = append(e.types, string(ev.Type))
		switch b := ev.Body.(type) {
		case *machine.StartedBody:
			if done[b.Node] == b.Generation {
				e.twice = append(e.twice, b.Node)
			}
		case *machine.FinishedBody:
			if b.Status == dag.StatusCompleted {
				done[b.Node] = b.Generation
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r, _, err := run.OpenReadOnly(o)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	st := r.State()
	e.nodes = st.Graph().Len()
	for i := range int32(e.nodes) {
		n := st.NodeAt(i)
		e.facts["the status of "+n.Node.ID] = n.Status.String()
		for name, v := range n.Values {
			e.facts["the value "+n.Node.ID+" "+name] = string(v)
		}
	}
	for _, p := range r.LivePaths() {
		data, err := os.ReadFile(filepath.Join(s.output(), filepath.FromSlash(p)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		e.facts["the artifact "+p] = artifact.Digest(data)
	}
	for _, a := range st.Graph().Plan.Accumulators {
		e.facts["the accumulator "+a.Name] = artifact.Digest(fmt.Appendf(nil, "%q", r.Find("", a.Name).Versions))
	}
	return e, nil
}

// differences names, in order, what of e is another or missing in f.
func (e *ending) differences(f *ending) []string {
	var out []string
	for name, v := range e.facts {
		if w, ok := f.facts[name]; !ok || w != v {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// most is how many bytes of a specification's folder are copied.
const most = 1 << 30

// copyTree copies a folder without its runs (build), version control and the folder that to is
// in, which may lie in it.
func copyTree(from, to string) error {
	left := int64(most)
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		switch name := d.Name(); {
		case path == filepath.Dir(to):
			return fs.SkipDir
		case d.IsDir() && rel != "." && (name == "build" && filepath.Dir(rel) == "." || name == ".git" || name == run.Dir):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(dst, 0o700)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, dst)
		case !d.Type().IsRegular():
			return nil // pipes and sockets belong to what runs now
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if left -= int64(len(data)); left < 0 {
			return fmt.Errorf("it holds more than %d MiB", most>>20)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(dst, data, info.Mode().Perm()|0o600)
	})
}

// Table sums a report up by type of event, for people.
func (r *Report) Table() string {
	type row struct{ kills, bad int }
	rows := map[string]*row{}
	var types []string
	for _, t := range r.Trials {
		x := rows[t.Type]
		if x == nil {
			x = &row{}
			rows[t.Type] = x
			types = append(types, t.Type)
		}
		x.kills++
		if len(t.Problems) > 0 {
			x.bad++
		}
	}
	sort.Strings(types)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%-26s %6s %6s %6s\n", "killed after", "times", "good", "bad")
	for _, typ := range types {
		x := rows[typ]
		fmt.Fprintf(&b, "%-26s %6d %6d %6d\n", typ, x.kills, x.kills-x.bad, x.bad)
	}
	fmt.Fprintf(&b, "%-26s %6d %6d %6d\n", "all", len(r.Trials), len(r.Trials)-r.Failed, r.Failed)
	return b.String()
}
