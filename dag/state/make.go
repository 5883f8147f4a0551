package state

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/machine"
)

// A Source is what a document is made of: what the events of a run were folded to.
type Source struct {
	State *machine.State
	Index *index.Index
	Told  *Told
	Dir   string // the run's own folder, relative to the output directory
}

// A maker makes one document.
type maker struct {
	Source
	g     *dag.Graph
	doc   *dag.StateDoc
	order []int32   // of the nodes of the graph
	recs  []*Record // by node; nil = it neither began nor ended
}

func (s Source) maker() *maker {
	m := &maker{Source: s, g: s.State.Graph(), doc: s.State.Graph().Plan.State}
	if m.doc == nil {
		m.doc = &dag.StateDoc{}
	}
	m.order = make([]int32, m.g.Len())
	for i := range m.order {
		m.order[i] = int32(i)
	}
	if m.g.Len() > m.g.Base() { // items of expansions stand behind all others
		slices.SortFunc(m.order, m.g.Compare)
	}
	m.recs = make([]*Record, len(m.order))
	for i := range m.order {
		v := s.State.NodeAt(int32(i))
		if v.Attempt > 0 || v.Status.Ended() || v.Cost != 0 || v.Usage != (machine.Usage{}) {
			m.recs[i] = m.record(&v)
		}
	}
	return m
}

// Make returns the document. It shares what is never changed with the state, and may be encoded by another goroutine.
func Make(s Source) *Document {
	m := s.maker()
	d := &Document{Head: m.head()}
	d.facts = m.facts(m.doc.Facts, m.order, nil)
	d.Body = m.body()
	for i := range m.doc.Records {
		r := &m.doc.Records[i]
		d.records = append(d.records, member{r.Name, m.grouped(r)})
	}
	d.Nodes = map[string]*Record{}
	for i, r := range m.recs {
		if r != nil {
			d.Nodes[m.g.Node(int32(i)).ID] = r
		}
	}
	d.Errors, d.ErrorsDropped = slices.Clone(s.Told.Errors), s.Told.Dropped
	return d
}

func (m *maker) head() Head {
	v, st := m.State.Run(), m.State
	h := Head{Version: Version, RunID: v.ID, Name: v.Name, Plan: v.PlanDigest, Events: v.Seq, Started: v.Created,
		Saved: v.Updated, Active: v.Active.Milliseconds(), Status: v.Status, RunState: strings.ToUpper(string(v.Status)),
		Phase: "running"}
	h.Progress = Progress{Nodes: m.g.Len(), Completed: st.Count(machine.Completed), Failed: st.Count(machine.Failed),
		Skipped: st.Count(machine.Skipped), Cancelled: st.Count(machine.Cancelled), Undone: st.Count(machine.Undone)}
	p := &h.Progress
	p.Open = p.Nodes - p.Completed - p.Failed - p.Skipped - p.Cancelled - p.Undone
	if slices.ContainsFunc(m.g.Plan.Nodes, func(n dag.Node) bool { return n.Role().Declares }) {
		h.RunState, h.Stable = v.State, v.Stable
	}
	for _, s := range st.Sections() {
		if h.Sections == nil {
			h.Sections = map[string]string{}
		}
		h.Sections[s.Section] = s.State
	}
	if h.Phases = m.phases(); len(h.Phases) > 0 {
		open := slices.IndexFunc(h.Phases, func(p Phase) bool { return p.Ended < p.Nodes })
		h.Phase = h.Phases[max(open, 0)].Name
	}
	switch v.Status {
	case machine.RunPause:
		h.Phase, h.Reason, h.Message = "paused", string(v.Pause.Reason), v.Pause.Message
	case machine.RunDone:
		h.Phase, h.Completed = "complete", v.Updated
	case machine.RunBroken:
		h.Phase, h.Reason, h.Completed = "failed", v.Failed, v.Updated
	case machine.RunEnding:
		h.Reason = v.Failed
	}
	return h
}

func (m *maker) phases() (list []Phase) {
	for _, p := range m.g.Plan.Phases {
		s := Phase{Name: p.Name}
		for i := range int32(m.g.Len()) {
			if p.Has(m.g.Node(i)) {
				s.Nodes++
				if m.State.StatusAt(i).Ended() {
					s.Ended++
				}
			}
		}
		list = append(list, s)
	}
	return list
}

func (m *maker) body() Body {
	b := Body{Cost: m.cost()}
	for _, i := range m.order {
		if m.State.StatusAt(i) == machine.Running {
			v := m.State.NodeAt(i)
			b.InFlight = append(b.InFlight, Flight{v.Node.ID, v.Attempt, v.Started, v.Node.Labels})
		}
	}
	for _, q := range m.State.Escalations() {
		b.Questions = append(b.Questions, Question{q.ID, q.Node, q.Message, q.Options, q.Default, q.Deadline})
	}
	for _, t := range m.Index.List(false) {
		at := Artifact{Path: t.Path, Hash: t.Live, Versions: len(t.Versions)}
		for _, v := range t.Versions {
			if v.Digest == t.Live {
				at.Size, at.Node = v.Size, v.Node
			}
			if t.Name == m.doc.Artifact && v.Backup != "" {
				b.Backups = append(b.Backups, v.Backup)
			}
		}
		if t.Live == "" {
			continue
		}
		b.Artifacts = append(b.Artifacts, at)
		if t.Name == m.doc.Artifact {
			b.ArtifactPath, b.ArtifactHash = t.Path, t.Live
		}
	}
	slices.SortStableFunc(b.Artifacts, func(x, y Artifact) int { return strings.Compare(x.Path, y.Path) })
	for _, a := range m.g.Plan.Accumulators {
		if n := len(m.Index.Entries(m.g, "", a.Name)); n > 0 {
			b.Accumulators = append(b.Accumulators, Accumulator{a.Name, path.Join(m.Dir, a.Path), n})
		}
	}
	for _, c := range m.State.Checkpoints() {
		p := Checkpoint{ID: c.ID, Node: c.Node, Created: c.Time, Events: c.Head, Dir: c.Path,
			ArtifactHash: c.Artifact, StateHash: c.State}
		if c.State != "" { // earlier versions have not recorded it
			p.Cost = &c.CostUSD
			p.Quality = map[string]json.RawMessage{"validationFailureCount": json.RawMessage(strconv.Itoa(c.Invalid))}
			maps.Copy(p.Quality, c.Facts)
		}
		b.Checkpoints = append(b.Checkpoints, p)
	}
	return b
}

func (m *maker) cost() Cost {
	l := m.State.Ledger()
	v := m.State.Run()
	c := Cost{
		Totals: Totals{l.Usage.Input, l.Usage.Output, l.Usage.CacheRead, l.Usage.CacheWrite, l.Spent.USD, l.Assumed,
			l.Reserved.USD, l.Spent.USD},
		Limits: Limits{l.WarnUSD, l.Budget.CapUSD, l.WarnUSD > 0 && l.Spent.USD >= l.WarnUSD,
			v.Status == machine.RunPause && v.Pause.Reason == machine.PauseBudget},
	}
	for _, r := range m.recs {
		if r != nil && r.has().Tokens != nil {
			c.Removed -= r.Tokens.Cost
		}
	}
	for _, by := range m.doc.Costs {
		var shares object
		for _, g := range m.groups(by.By, m.order) {
			var s Share
			for _, i := range g.nodes {
				if r := m.recs[i]; r != nil && r.has().Tokens != nil {
					t := r.Tokens
					s.Input, s.Output, s.Cost, s.Nodes = s.Input+t.Input, s.Output+t.Output, s.Cost+t.Cost, s.Nodes+1
				}
			}
			if s.Nodes > 0 {
				shares = append(shares, member{g.value, s})
			}
		}
		c.shares = append(c.shares, member{by.Name, shares})
	}
	return c
}

// longestValue bounds the values in a record, in bytes of JSON; the events have all of them.
const longestValue = 200

// record is what is known of a node.
func (m *maker) record(v *machine.NodeView) *Record {
	r := &Record{Kind: v.Node.Kind, Description: v.Node.Title, Status: v.Recorded.String(), Labels: v.Node.Labels,
		Retries: max(0, v.Attempt-1), Started: v.First}
	if v.Generation > 1 {
		r.Generation = v.Generation
	}
	if v.Status.Ended() {
		r.Completed = v.Finished
		if !r.Started.IsZero() {
			r.Duration = r.Completed.Sub(r.Started).Milliseconds()
		}
	}
	if v.Cost != 0 || v.Usage != (machine.Usage{}) {
		r.edit().Tokens = &Tokens{v.Usage.Input, v.Usage.Output, v.Usage.CacheRead, v.Usage.CacheWrite, v.Cost}
	}
	if l := v.Last; l != nil {
		if len(l.Warnings)+len(l.Salvaged) > 0 {
			has := r.edit()
			has.Warnings, has.Salvaged = l.Warnings, l.Salvaged
		}
		if l.Status != dag.StatusCompleted {
			r.Reason = strings.TrimSuffix(strings.TrimPrefix(l.Category+": "+l.Message, ": "), ": ")
		}
	}
	for name, value := range v.Values { // a map
		if len(value) <= longestValue {
			has := r.edit()
			if has.Values == nil {
				has.Values = map[string]json.RawMessage{}
			}
			has.Values[name] = value
		}
	}
	m.left(r, v)
	return r
}

// left adds what attempts of a node have left: files, versions of artifacts, the result of their checks.
func (m *maker) left(r *Record, v *machine.NodeView) {
	told := m.Told.of(v.Node.ID, v.Generation)
	dir := path.Join(m.Dir, v.Node.Folder(v.Generation))
	for _, name := range told.Kept {
		r.Dir = dir
		switch {
		case name == "prompt.md":
			r.edit().PromptPath = path.Join(dir, name)
		case strings.HasPrefix(name, "raw-output") && r.has().RawOutput == "":
			r.edit().RawOutput = path.Join(dir, name)
		}
	}
	if told.Checked != nil {
		passed := told.passed()
		has := r.edit()
		has.Passed, has.Details = &passed, told.Checked
	}
	for _, w := range m.Index.WrittenBy(v.Node.ID, v.Generation, index.Valid) {
		if at := r.has().ArtifactPath; !w.Entry && (at == "" || at != m.doc.Artifact) {
			has := r.edit()
			has.ArtifactPath, has.ArtifactHash, has.Backup = w.Path, w.Digest, w.Backup
		}
	}
}
