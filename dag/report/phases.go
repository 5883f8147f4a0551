package report

import (
	"cmp"
	"fmt"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A PhaseStatus is how far a declared phase is, in what the plan counts in it.
type PhaseStatus struct {
	Name  string  `json:"name"`
	Nodes int     `json:"nodes"`
	Ended int     `json:"ended"`
	Unit  string  `json:"unit"` // of Done and Of: nodes, or what the plan says
	Done  int     `json:"done"` // of what is counted: ended, and one of its nodes was carried out
	Of    int     `json:"of"`
	Tally []Tally `json:"parts,omitempty"` // of the phase, in plan order
	// Now is the value of what is counted that is under way, Steps are the parts of it.
	Now     string  `json:"now,omitempty"`
	Steps   []Tally `json:"steps,omitempty"`
	Scores  string  `json:"scores,omitempty"` // values that its nodes show
	counted bool    // the plan says what counts
	parts   string  // what the plan calls the parts
	steps   string  // and one of what is counted
}

// A Tally says how far a part of a phase is.
type Tally struct {
	Name  string `json:"name"`
	State string `json:"state"` // completed | running | pending | skipped
	Done  int    `json:"done"`
	Of    int    `json:"of"` // 0 = nothing in it is counted
	nodes []int32
	ended int
	moved bool // one of its nodes has started
}

// by sorts nodes into the values of a label, in plan order.
func by(st *machine.State, nodes []int32, label string) (list []Tally) {
	for _, i := range nodes {
		if value, ok := st.Graph().Node(i).Labels[label]; ok {
			entryOf(&list, func(t *Tally) bool { return t.Name == value }, Tally{Name: value}).add(st, i)
		}
	}
	for k := range list {
		list[k].end()
	}
	return list
}

func (t *Tally) add(st *machine.State, i int32) {
	status := st.StatusAt(i)
	t.nodes = append(t.nodes, i)
	if status.Ended() {
		t.ended++
	}
	t.moved = t.moved || status == machine.Running || status != machine.Skipped && st.NodeAt(i).Attempt > 0
}

func (t *Tally) end() {
	switch whole := t.ended == len(t.nodes); {
	case whole && t.moved:
		t.State = "completed"
	case whole:
		t.State = "skipped"
	case t.moved:
		t.State = "running"
	default:
		t.State = "pending"
	}
}

// count says how many of some tallies are done.
func count(list []Tally) (done int) {
	for i := range list {
		if list[i].State == "completed" {
			done++
		}
	}
	return done
}

// phasesOf are the declared phases of a run.
func phasesOf(st *machine.State) (out []PhaseStatus) {
	g := st.Graph()
	for k := range g.Plan.Phases {
		p := &g.Plan.Phases[k]
		all := Tally{}
		for i := range int32(g.Len()) {
			if p.Has(g.Node(i)) {
				all.add(st, i)
			}
		}
		nodes := len(all.nodes)
		ps := PhaseStatus{Name: p.Name, Nodes: nodes, Ended: all.ended, Unit: "nodes", Done: all.ended, Of: nodes}
		var counted []Tally
		if ps.counted = p.Counts != nil; ps.counted {
			counted = by(st, all.nodes, p.Counts.Label)
			ps.Unit, ps.Done, ps.Of = p.Counts.Unit, count(counted), len(counted)
			ps.now(st, p, counted)
		}
		if p.Parts != nil {
			ps.parts, ps.Tally = p.Parts.Unit, by(st, all.nodes, p.Parts.Label)
			for i := range ps.Tally {
				if t := &ps.Tally[i]; p.Counts != nil {
					inside := by(st, t.nodes, p.Counts.Label)
					t.Done, t.Of = count(inside), len(inside)
				}
			}
		}
		out = append(out, ps)
	}
	return out
}

// now finds what is under way, or was last, of what is counted, and its steps.
func (ps *PhaseStatus) now(st *machine.State, p *dag.Phase, counted []Tally) {
	var at *Tally
	for i := range counted {
		if t := &counted[i]; t.moved {
			at = t
		}
	}
	if at == nil {
		return
	}
	ps.Now = at.Name
	if p.Steps == nil {
		return
	}
	ps.steps, ps.Steps = p.Steps.Unit, by(st, at.nodes, p.Steps.Label)
	var shown []string
	as := ""
	for i := range ps.Steps {
		t := &ps.Steps[i]
		t.Done, t.Of = t.ended, len(t.nodes)
		for _, n := range t.nodes {
			if v := st.NodeAt(n); v.Status == machine.Completed {
				if list := Shown(v.Node, v.Values); len(list) > 0 {
					list[0].Name = cmp.Or(v.Node.Labels[v.Node.Show.Of], list[0].Name)
					if text := ShownText(list[:1]); len(shown) > 0 && v.Node.Show.As == as {
						shown[len(shown)-1] += ", " + text
					} else {
						as = v.Node.Show.As
						shown = append(shown, as+" "+text)
					}
				}
			}
		}
	}
	ps.Scores = strings.Join(shown, "; ")
}

// String is how far the phase is.
func (ps PhaseStatus) String() string { return fmt.Sprintf("%d/%d %s", ps.Done, ps.Of, ps.Unit) }

// marks are the states of steps on one line.
var marks = map[string]string{"completed": "✓", "running": "▶", "pending": "–"}

// Lines say how far the parts and the steps of the phase are.
func (ps PhaseStatus) Lines() (lines []string) {
	if len(ps.Tally) > 0 {
		var list []string
		for i := 0; i < len(ps.Tally); i++ {
			t, from := ps.Tally[i], i
			for t.State != "running" && i+1 < len(ps.Tally) && ps.Tally[i+1].State == t.State {
				i++
			}
			text := t.Name
			if i > from {
				text += " to " + ps.Tally[i].Name
			}
			if t.State == "running" && t.Of > 0 {
				text += fmt.Sprintf(" %d/%d", t.Done, t.Of)
			}
			list = append(list, text+" "+t.State)
		}
		lines = append(lines, fmt.Sprintf("%-12s %s", ps.parts+":", strings.Join(list, ", ")))
	}
	var list []string
	for _, t := range ps.Steps {
		if t.State == "skipped" {
			continue
		}
		text := t.Name + " " + marks[t.State]
		if t.State == "running" && t.Of > 1 {
			text += fmt.Sprintf(" %d/%d", t.Done, t.Of)
		}
		list = append(list, text)
	}
	if len(list) > 0 {
		lines = append(lines, fmt.Sprintf("%-12s %s", ps.steps+" "+ps.Now+":", strings.Join(list, "  ")))
	}
	if ps.Scores != "" {
		lines = append(lines, "Scores:      "+ps.Scores)
	}
	return lines
}

// progress says how far the phases are whose plan says what counts in them, each in a form; empty where none does.
func progress(list []PhaseStatus, form func(PhaseStatus) string) string {
	var parts []string
	for _, ps := range list {
		if ps.counted {
			parts = append(parts, form(ps))
		}
	}
	return strings.Join(parts, ", ")
}

// Progress says how far a run is, in what its plan counts.
func Progress(st *machine.State) string {
	c := NewCounts(st)
	return cmp.Or(progress(phasesOf(st), PhaseStatus.String), fmt.Sprintf("%d/%d", c.Ended(), c.Nodes))
}
