package report

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A ShownValue is one of the values that a node is declared to show.
type ShownValue struct {
	Name string
	Raw  json.RawMessage
}

// Shown are the values to show that a node has recorded, in their declared order.
func Shown(n *dag.Node, values map[string]json.RawMessage) (list []ShownValue) {
	if n == nil || n.Show == nil {
		return nil
	}
	for _, name := range n.Show.Values {
		if raw := values[name]; raw != nil {
			list = append(list, ShownValue{name, raw})
		}
	}
	return list
}

// ShownText is values on one line.
func ShownText(list []ShownValue) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = v.Name + " " + shortText(v.Raw)
	}
	return strings.Join(parts, ", ")
}

// Validation is the result of the checks of an answer; empty when there were none.
func Validation(b *machine.FinishedBody) string {
	for i := range b.Notes {
		if b.Notes[i].Type == machine.NoteValidation {
			return Field(b.Notes[i].Fields, "result")
		}
	}
	return ""
}

// A Series is one shown value of the nodes that show the same and have completed: scores of rounds, say.
type Series struct {
	As     string   `json:"as"`
	Name   string   `json:"name"`
	Nodes  []string `json:"nodes"`
	Of     string   `json:"of,omitempty"` // of nodes side by side: which
	Values []string `json:"values"`       // as JSON has them, texts without quotes; absent: was not recorded
	short  []string // the same as people read them
}

// absent stands in a series for a value that a node may record and did not.
const absent = "-"

// seriesOf collects the shown values in plan order.
func seriesOf(st *machine.State) (out []Series) {
	for i := range int32(st.Graph().Len()) {
		n := st.Graph().Node(i)
		if n.Show == nil || st.StatusAt(i) != machine.Completed {
			continue
		}
		values := st.NodeAt(i).Values
		for _, name := range n.Show.Values {
			own := Series{As: n.Show.As, Name: name, Of: n.Labels[n.Show.Of]}
			s := entryOf(&out, func(s *Series) bool { return s.As == own.As && s.Name == name && s.Of == own.Of }, own)
			s.Nodes = append(s.Nodes, n.ID)
			s.Values = append(s.Values, cmp.Or(ValueText(values[name]), absent))
			s.short = append(s.short, cmp.Or(shortText(values[name]), absent))
		}
	}
	return out
}

// trends says how shown values went, a line for what nodes show together. A value that never changed stands there once.
func trends(list []Series) (lines []string) {
	for n := 0; len(list) > 0; list = list[n:] {
		var parts []string
		for n = 0; n < len(list) && list[n].As == list[0].As; n++ {
			values := list[n].short
			if same := slices.Compact(slices.Clone(values)); len(same) == 1 {
				values = same
			}
			last := values[max(0, len(values)-shownValues):]
			parts = append(parts, cmp.Or(list[n].Of, list[n].Name)+" "+strings.Join(last, " -> "))
		}
		lines = append(lines, list[0].As+": "+strings.Join(parts, ", "))
	}
	return lines
}

// shortText is a value as people read it, a number with two decimals at most. A text stays as it is: "1.10" is a
// version, not 1.1.
func shortText(raw json.RawMessage) string {
	text := ValueText(raw)
	x, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.Abs(x) >= 1e15 || !strings.Contains(text, ".") {
		return text
	}
	if small := strconv.FormatFloat(x, 'g', 2, 64); math.Abs(x) < 0.1 {
		return small
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(x, 'f', 2, 64), "0"), ".")
}

// ValueText is a value as people write it.
func ValueText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// Field is a field of an object as text; empty when it has none of the name.
func Field(fields json.RawMessage, name string) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(fields, &m) != nil {
		return ""
	}
	return ValueText(m[name])
}
