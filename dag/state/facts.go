package state

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/machine"
)

// A group is the nodes of one value of a label.
type group struct {
	value string
	nodes []int32
	begun bool // one of them was carried out, or is
	ended bool // all of them
}

// groups returns the nodes of a list by the values of a label, in the order of their first nodes.
func (m *maker) groups(label string, nodes []int32) (list []*group) {
	index := map[string]*group{}
	for _, i := range nodes {
		value, ok := m.g.Node(i).Labels[label]
		if !ok {
			continue
		}
		g := index[value]
		if g == nil {
			g = &group{value: value, ended: true}
			index[value] = g
			list = append(list, g)
		}
		g.nodes = append(g.nodes, i)
		status := m.State.StatusAt(i)
		g.ended = g.ended && status.Ended()
		if m.recs[i] != nil && status != machine.Skipped {
			g.begun = true
		}
	}
	return list
}

// labelled returns the nodes of a list whose label has one of the values, all for no label, and only those of which
// something is known that was not skipped.
func (m *maker) labelled(nodes []int32, of dag.Labelled) (list []int32) {
	for _, i := range nodes {
		if of.Label != "" && !slices.Contains(of.In, m.g.Node(i).Labels[of.Label]) {
			continue
		}
		if m.recs[i] != nil && m.State.StatusAt(i) != machine.Skipped {
			list = append(list, i)
		}
	}
	return list
}

// grouped are the records of the values of a label: those of which something was carried out.
func (m *maker) grouped(r *dag.StateRecords) object {
	out := object{}
	for _, g := range m.groups(r.By, m.order) {
		if g.begun {
			out = append(out, member{g.value, m.declared(g.nodes, r.Fields)})
		}
	}
	return out
}

// declared is the record of nodes together, with the fields that are declared.
func (m *maker) declared(nodes []int32, fields []dag.StateFact) json.RawMessage {
	r := m.together(nodes)
	labels := r.Labels
	r.Labels = nil
	named, rest := object{}, map[string]string{}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		if name := m.doc.Labels[label]; name != "" {
			named = append(named, member{name, number(labels[label])})
		} else {
			rest[label] = labels[label]
		}
	}
	if len(rest) > 0 {
		r.Labels = rest
	}
	raw, err := join(named, r, m.facts(fields, nodes, &r))
	if err != nil { // nothing in it can fail
		return nil
	}
	return raw
}

// together is the record of a node, or of several: their time, cost and common labels.
func (m *maker) together(nodes []int32) Record {
	known := m.labelled(nodes, dag.Labelled{})
	if len(nodes) == 1 && len(known) == 1 {
		r := *m.recs[known[0]]
		r.Node = m.g.Node(known[0]).ID
		return r
	}
	var out Record
	var tokens Tokens
	ended, failed := true, false
	for _, i := range nodes {
		ended = ended && m.State.StatusAt(i).Ended()
		failed = failed || m.State.StatusAt(i) == machine.Failed
	}
	for n, i := range known {
		r := m.recs[i]
		if out.Started.IsZero() || r.Started.Before(out.Started) && !r.Started.IsZero() {
			out.Started = r.Started
		}
		if r.Completed.After(out.Completed) {
			out.Completed = r.Completed
		}
		out.Retries += r.Retries
		if r.has().Tokens != nil {
			tokens.add(r.Tokens)
			out.edit().Tokens = &tokens
		}
		if n == 0 {
			out.Labels = maps.Clone(r.Labels)
		}
		maps.DeleteFunc(out.Labels, func(k, v string) bool { return r.Labels[k] != v })
	}
	out.Status = string(dag.StatusCompleted)
	switch {
	case !ended:
		out.Status, out.Completed = string(dag.StatusRunning), time.Time{}
	case failed:
		out.Status = string(dag.StatusFailed)
	}
	if ended && !out.Started.IsZero() {
		out.Duration = out.Completed.Sub(out.Started).Milliseconds()
	}
	return out
}

// facts are declared fields. own is the record that they stand in, nil for the document.
func (m *maker) facts(list []dag.StateFact, nodes []int32, own *Record) (out object) {
	for i := range list {
		if v := m.fact(&list[i], nodes, own); v != nil {
			out = append(out, member{list[i].Name, v})
		}
	}
	return out
}

// fact is the value of a declared field; nil where there is none.
func (m *maker) fact(f *dag.StateFact, nodes []int32, own *Record) any {
	switch {
	case f.Value != nil:
		return f.Value
	case f.Last != "":
		return m.last(m.groups(f.Last, nodes))
	case f.Current != "":
		for _, g := range m.groups(f.Current, nodes) {
			if g.begun && !g.ended {
				return number(g.value)
			}
		}
		return nil
	case f.Entries != "":
		if own == nil {
			return len(m.Index.Entries(m.g, "", f.Entries))
		}
		return m.entriesOf(f.Entries, nodes)
	case f.Has != "":
		return m.entriesOf(f.Has, nodes) > 0
	case f.Path != "":
		if a, ok := m.g.Plan.AccumulatorByName(f.Path); ok {
			return path.Join(m.Dir, a.Path)
		}
		return m.Dir
	}
	return m.ofNodes(f, m.labelled(nodes, f.Of), own)
}

// ofNodes is the value of a field that nodes give.
func (m *maker) ofNodes(f *dag.StateFact, known []int32, own *Record) any {
	last := func(value func(r *Record, n *dag.Node) any) any {
		for _, i := range slices.Backward(known) {
			if v := value(m.recs[i], m.g.Node(i)); v != nil {
				return v
			}
		}
		return nil
	}
	switch {
	case f.Output != "":
		return last(func(_ *Record, n *dag.Node) any {
			i, _ := m.g.Index(n.ID)
			if v, ok := m.State.NodeAt(i).Values[f.Output]; ok {
				return v
			}
			return nil
		})
	case f.Files != "":
		return last(func(_ *Record, n *dag.Node) any {
			var list []string
			for _, name := range n.FilesRead() {
				if dag.Matches(f.Files, name) {
					list = append(list, name)
				}
			}
			if list == nil {
				return nil
			}
			return list
		})
	case f.Field != "" && f.Of.Label == "" && own != nil:
		return field(own, f.Field)
	case f.Field != "":
		return last(func(r *Record, _ *dag.Node) any { return field(r, f.Field) })
	case f.One && len(known) > 0:
		return m.declared(known[len(known)-1:], nil)
	case f.All:
		list := []json.RawMessage{}
		for _, i := range known {
			list = append(list, m.declared([]int32{i}, nil))
		}
		return list
	}
	return nil
}

// last is the last value up to which all nodes have ended. Of numbers it is 0 before the first.
func (m *maker) last(list []*group) any {
	value := ""
	for _, g := range list {
		if !g.ended {
			break
		}
		if g.begun {
			value = g.value
		}
	}
	if value != "" {
		return number(value)
	}
	if len(list) > 0 {
		if _, whole := number(list[0].value).(int64); whole {
			return 0
		}
	}
	return nil
}

// entriesOf counts the entries of nodes.
func (m *maker) entriesOf(accumulator string, nodes []int32) (n int) {
	for _, i := range nodes {
		v := m.State.NodeAt(i)
		for _, w := range m.Index.WrittenBy(v.Node.ID, v.Generation, index.Valid) {
			if w.Entry && w.Name == accumulator {
				n++
			}
		}
	}
	return n
}

// field is a field of a record that declared ones may repeat under another name.
func field(r *Record, name string) any {
	switch name {
	case "status":
		return r.Status
	case "durationMs":
		return r.Duration
	case "costUsd":
		if r.has().Tokens != nil {
			return r.Tokens.Cost
		}
		return dag.USD(0)
	}
	for known, value := range map[string]string{"dir": r.Dir, "promptPath": r.has().PromptPath,
		"rawOutputPath": r.has().RawOutput, "artifactPath": r.has().ArtifactPath, "artifactHash": r.has().ArtifactHash,
		"backupPath": r.has().Backup} {
		if known == name && value != "" {
			return value
		}
	}
	return nil
}

// number is a text as a whole number where it is one.
func number(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return n
	}
	return text
}

func (t *Tokens) add(o *Tokens) {
	t.Input, t.Output, t.Cost = t.Input+o.Input, t.Output+o.Output, t.Cost+o.Cost
	t.CacheRead, t.CacheWrite = t.CacheRead+o.CacheRead, t.CacheWrite+o.CacheWrite
}

// Quality is what a checkpoint keeps of a document, as of now: how many nodes have results that failed their checks,
// and the facts that change.
func Quality(s Source) (invalid int, facts map[string]json.RawMessage, err error) {
	m := s.maker()
	for _, r := range m.recs {
		if r != nil && r.has().Passed != nil && !*r.Passed {
			invalid++
		}
	}
	constant := func(f dag.StateFact) bool { return f.Value != nil || f.Path != "" }
	for _, f := range m.facts(slices.DeleteFunc(slices.Clone(m.doc.Facts), constant), m.order, nil) {
		raw, err := json.Marshal(f.value)
		if err != nil {
			return 0, nil, err
		}
		if raw[0] == '{' || raw[0] == '[' {
			continue
		}
		if facts == nil {
			facts = map[string]json.RawMessage{}
		}
		facts[f.name] = raw
	}
	return invalid, facts, nil
}
