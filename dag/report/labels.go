package report

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A Share is what the nodes of one value of a label cost, and will have cost in the end.
type Share struct {
	Label     string  `json:"label"`
	Value     string  `json:"value"`
	Nodes     int     `json:"nodes"`
	Ended     int     `json:"ended"`
	CostUSD   dag.USD `json:"cost_usd"`
	Projected dag.USD `json:"projected_usd,omitempty"` // 0: unknown, or free

	kinds map[string]*kindSum
}

// A kindSum is what the nodes of one kind took within a share.
type kindSum struct {
	done, open int
	cost       dag.USD
}

// mostShares bounds the values of a label that is worth a summary.
const mostShares = 16

// Shares sums up cost by every label that has two to sixteen values and costs something, by label, values in plan
// order. What is to come costs what the nodes of the same kind and value did on average, else those of the same kind.
func Shares(st *machine.State) (out []Share) {
	by := map[string][]Share{}
	for i := range int32(st.Graph().Len()) {
		if len(st.Graph().Node(i).Labels) == 0 {
			continue
		}
		v := st.NodeAt(i)
		for label, value := range v.Node.Labels { // sorted below; values by node
			at := slices.IndexFunc(by[label], func(s Share) bool { return s.Value == value })
			if at < 0 {
				if at = len(by[label]); at > mostShares {
					continue
				}
				by[label] = append(by[label], Share{Label: label, Value: value, kinds: map[string]*kindSum{}})
			}
			by[label][at].add(&v)
		}
	}
	p := paceOf(st)
	for _, label := range sortedNames(by) {
		list := by[label]
		if len(list) < 2 || len(list) > mostShares || totalOf(list) == 0 {
			continue
		}
		for i := range list {
			list[i].Projected = list[i].project(p)
		}
		out = append(out, list...)
	}
	return out
}

func totalOf(list []Share) (sum dag.USD) {
	for i := range list {
		sum += list[i].CostUSD
	}
	return sum
}

func (s *Share) add(v *machine.NodeView) {
	s.Nodes++
	s.CostUSD += v.Cost
	k := s.kinds[v.Node.Kind]
	if k == nil {
		k = &kindSum{}
		s.kinds[v.Node.Kind] = k
	}
	switch {
	case v.Status.Ended():
		s.Ended++
		if v.Attempt > 0 {
			k.done++
			k.cost += v.Cost
		}
	case v.Node.When == "" || v.Status != machine.Waiting:
		k.open++
	}
}

func (s *Share) project(p pace) dag.USD {
	total := s.CostUSD
	for kind, k := range s.kinds { // a sum
		if k.open == 0 || IsControl(kind) {
			continue
		}
		_, one, ok := p.average(kind)
		if k.done > 0 {
			one, ok = k.cost/dag.USD(k.done), true
		}
		if !ok {
			return 0
		}
		total += one * dag.USD(k.open)
	}
	return total
}

// byLabel cuts a list into the shares of each label.
func byLabel(list []Share) (out [][]Share) {
	for n := 0; len(list) > 0; list = list[n:] {
		for n = 1; n < len(list) && list[n].Label == list[0].Label; n++ {
		}
		out = append(out, list[:n])
	}
	return out
}

// shareLines says for each label what its values cost; values that cost nothing and labels that only count are left
// out.
func shareLines(list []Share) (lines []string) {
	for _, of := range byLabel(list) {
		if line := shareLine(of); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func shareLine(of []Share) string {
	counts := true
	var parts []string
	for _, s := range of {
		if _, err := strconv.Atoi(s.Value); err != nil {
			counts = false
		}
		if s.CostUSD == 0 && s.Projected == 0 {
			continue
		}
		part := s.Value + " $" + s.CostUSD.String()
		if s.Projected > s.CostUSD {
			part += " of about $" + s.Projected.String()
		}
		parts = append(parts, part)
	}
	if counts {
		return ""
	}
	return "by " + of[0].Label + ": " + strings.Join(parts, ", ")
}

// SharesLine is cost by one label on one line: by the one that tells most of the money apart, and of such the one with
// the fewest values.
func SharesLine(list []Share) (best string) {
	most, fewest := dag.USD(-1), 0
	for _, of := range byLabel(list) {
		line, sum := shareLine(of), totalOf(of)
		if line != "" && (sum > most || sum == most && len(of) < fewest) {
			best, most, fewest = line, sum, len(of)
		}
	}
	return best
}

// A Series is one value of the nodes that decide the way, over those that have completed: scores of rounds, say.
type Series struct {
	Name   string   `json:"name"`
	Nodes  []string `json:"nodes"`
	Values []string `json:"values"` // as JSON has them, texts without quotes
}

// longestTrend bounds the values of a series, in bytes.
const longestTrend = 24

// absent stands in a series for a value that a node may record and did not.
const absent = "-"

// seriesOf collects the texts and numbers of nodes of kind route in plan order, the longest series first. A value that
// repeats a label of its node says nothing, and a reason is a sentence.
func seriesOf(st *machine.State) (out []Series) {
	for i := range int32(st.Graph().Len()) {
		if !st.Graph().Node(i).Role().Decides || st.StatusAt(i) != machine.Completed {
			continue
		}
		v := st.NodeAt(i)
		values := maps.Clone(v.Values)
		for name, typ := range v.Node.Outputs {
			if _, optional := dag.OutputType(typ); optional && values[name] == nil {
				values[name] = json.RawMessage(absent)
			}
		}
		for _, name := range sortedNames(values) {
			text := ValueText(values[name])
			if strings.ContainsAny(text[:min(1, len(text))], "[{") || text == "true" || text == "false" {
				continue
			}
			if _, label := v.Node.Labels[name]; label || name == "reason" || text == "" || len(text) > longestTrend {
				continue
			}
			k := slices.IndexFunc(out, func(s Series) bool { return s.Name == name })
			if k < 0 {
				k = len(out)
				out = append(out, Series{Name: name})
			}
			out[k].Nodes = append(out[k].Nodes, v.Node.ID)
			out[k].Values = append(out[k].Values, text)
		}
	}
	out = slices.DeleteFunc(out, func(s Series) bool {
		return !slices.ContainsFunc(s.Values, func(v string) bool { return v != absent })
	})
	slices.SortStableFunc(out, func(a, b Series) int { return len(b.Values) - len(a.Values) })
	return out
}

// trends says what has a value for each of the nodes, so that it can be followed.
func trends(list []Series) (lines []string) {
	for _, s := range list {
		if len(s.Values) == len(list[0].Values) { // the longest comes first
			values := make([]string, len(s.Values))
			for i, v := range s.Values {
				values[i] = rounded(v)
			}
			lines = append(lines, s.Name+" "+strings.Join(values, " -> "))
		}
	}
	return lines
}

// rounded is a number as people read it, with two decimals at most, or a text as it is.
func rounded(text string) string {
	x, err := strconv.ParseFloat(text, 64)
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
