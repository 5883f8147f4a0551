package report

import (
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
	usd        dag.USD
}

// mostShares bounds the values of a label that is worth a summary.
const mostShares = 16

// Shares sums up the nodes that may cost something by every label of theirs that has two to sixteen values, by label,
// values in plan order. What is to come costs what the nodes of the same kind and value did on average, else those of
// the same kind.
func Shares(st *machine.State) (out []Share) {
	by := map[string][]Share{}
	for i := range int32(st.Graph().Len()) {
		n := st.Graph().Node(i)
		if len(n.Labels) == 0 || !n.Paid && n.Reserve.USD == 0 && n.Estimate.USD == 0 {
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
			k.usd += v.Cost
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
			one, ok = k.usd/dag.USD(k.done), true
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

// ShareLines says what the parts of a run cost, a line for each label.
func ShareLines(st *machine.State) []string { return shareLines(Shares(st)) }

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
