package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A Quality is how the quality of a run's work went.
type Quality struct {
	Types   []QualityType  `json:"types"` // in order of first appearance
	Series  []Series       `json:"series,omitempty"`
	Entries []QualityEntry `json:"entries"`
}

// A QualityType sums up the entries of one type.
type QualityType struct {
	Type    string         `json:"type"`
	Entries int            `json:"entries"`
	Results map[string]int `json:"results,omitempty"` // by the entries' result
	Numbers []Numbers      `json:"numbers,omitempty"`
}

// Numbers are the values of one numeric field, oldest first.
type Numbers struct {
	Name   string    `json:"name"`
	Values []float64 `json:"values"`
	Mean   float64   `json:"mean"`
}

// NewQuality sums up what a history says of quality.
func NewQuality(st *machine.State, h *History) *Quality {
	q := &Quality{Entries: h.Quality, Series: seriesOf(st)}
	if q.Entries == nil {
		q.Entries = []QualityEntry{}
	}
	for i := range h.Quality {
		e := &h.Quality[i]
		k := slices.IndexFunc(q.Types, func(t QualityType) bool { return t.Type == e.Type })
		if k < 0 {
			k = len(q.Types)
			q.Types = append(q.Types, QualityType{Type: e.Type, Results: map[string]int{}})
		}
		q.Types[k].add(e)
	}
	for i := range q.Types {
		for k := range q.Types[i].Numbers {
			n := &q.Types[i].Numbers[k]
			sum := 0.0
			for _, v := range n.Values {
				sum += v
			}
			n.Mean = sum / float64(len(n.Values))
		}
	}
	return q
}

func (t *QualityType) add(e *QualityEntry) {
	t.Entries++
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Fields, &fields) != nil {
		return
	}
	for _, name := range sortedNames(fields) {
		if name == "result" {
			t.Results[ValueText(fields[name])]++
			continue
		}
		v, err := strconv.ParseFloat(string(fields[name]), 64)
		if err != nil {
			continue
		}
		k := slices.IndexFunc(t.Numbers, func(n Numbers) bool { return n.Name == name })
		if k < 0 {
			k = len(t.Numbers)
			t.Numbers = append(t.Numbers, Numbers{Name: name})
		}
		t.Numbers[k].Values = append(t.Numbers[k].Values, v)
	}
}

// Field is a field of an object as text; empty when it has none of the name.
func Field(fields json.RawMessage, name string) string {
	var m map[string]json.RawMessage
	if json.Unmarshal(fields, &m) != nil {
		return ""
	}
	return ValueText(m[name])
}

// shownValues is how many of the last values a line shows.
const shownValues = 12

// WriteText prints the sums for people.
func (q *Quality) WriteText(w io.Writer) error {
	r := rows{bufio.NewWriter(w)}
	if len(q.Entries) == 0 {
		r.row("Quality", "nothing was said of it")
	}
	for _, t := range q.Types {
		text := Count(t.Entries, "time")
		for _, k := range sortedNames(t.Results) {
			text += fmt.Sprintf(", %s %d", k, t.Results[k])
		}
		fmt.Fprintf(r.out, "%s: %s\n", Plain(t.Type), Plain(text))
		for _, n := range t.Numbers {
			var last []string
			for _, v := range n.Values[max(0, len(n.Values)-shownValues):] {
				last = append(last, strconv.FormatFloat(v, 'g', 6, 64))
			}
			fmt.Fprintf(r.out, "  %-20s mean %-8s last %s\n", Plain(n.Name), strconv.FormatFloat(n.Mean, 'g', 4, 64), strings.Join(last, " "))
		}
	}
	writeSeries(r, q.Series)
	return r.out.Flush()
}

// A Budget is how a run stands with its limits.
type Budget struct {
	CapUSD    dag.USD    `json:"cap_usd"` // 0 = none
	WarnUSD   dag.USD    `json:"warn_usd"`
	CapTokens int64      `json:"cap_tokens"`
	SpentUSD  dag.USD    `json:"spent_usd"`
	Tokens    int64      `json:"tokens"`
	Reserved  dag.USD    `json:"reserved_usd"`
	Assumed   dag.USD    `json:"assumed_usd"` // part of spent that nobody has confirmed
	Kinds     []CostKind `json:"by_cost_kind"`
	Shares    []Share    `json:"by_label,omitempty"`
}

// NewBudget reads how a run stands with its limits.
func NewBudget(st *machine.State, h *History) *Budget {
	l := st.Ledger()
	var p Progress
	p.Start(st)
	kinds := h.CostKinds
	if kinds == nil {
		kinds = []CostKind{}
	}
	return &Budget{l.Budget.CapUSD, l.WarnUSD, l.Budget.CapTokens, l.Spent.USD, l.Spent.Tokens, l.Reserved.USD, l.Assumed, kinds, p.Shares(st)}
}

// WriteText prints it for people.
func (b *Budget) WriteText(w io.Writer) error {
	r := rows{bufio.NewWriter(w)}
	text := "$" + b.SpentUSD.String()
	if b.CapUSD > 0 {
		text += fmt.Sprintf(" of $%s (%d%%), warning at $%s  %s", b.CapUSD, 100*b.SpentUSD/b.CapUSD, b.WarnUSD, bar(b.SpentUSD.Float(), b.CapUSD.Float()))
	}
	r.row("Spent", "%s", text)
	tokens := fmt.Sprint(b.Tokens)
	if b.CapTokens > 0 {
		tokens += fmt.Sprintf(" of %d", b.CapTokens)
	}
	r.row("Tokens", "%s", tokens)
	r.row("Reserved", "$%s for attempts under way", b.Reserved)
	for _, k := range b.Kinds {
		r.row(string(k.Kind), "$%s in %s", k.CostUSD, Count(k.Attempts, "attempt"))
	}
	writeShares(r, b.Shares)
	return r.out.Flush()
}

// AttemptText names an attempt behind a node; nothing where there was none.
func AttemptText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (attempt %d)", n)
}

// WriteErrors prints the errors of a run for people.
func WriteErrors(w io.Writer, list []ErrorEntry) error {
	r := rows{bufio.NewWriter(w)}
	if len(list) == 0 {
		r.row("Errors", "none")
	}
	for _, e := range list {
		what := "not recovered"
		if e.Recovered {
			what = fmt.Sprintf("recovered at attempt %d", e.At)
		}
		kind := e.Category
		if e.Class != "" {
			kind += " (" + string(e.Class) + ")"
		}
		fmt.Fprintf(r.out, "%s  #%d %s %s%s: %s (%s)\n", Instant(e.Time), e.Seq, Plain(e.Node), e.Status, AttemptText(e.Attempt),
			Plain(strings.TrimPrefix(kind+": "+e.Message, ": ")), what)
		for line := range strings.Lines(e.Diagnostics) {
			if line = strings.TrimRight(line, "\r\n"); !jsonPiece(line) {
				fmt.Fprintf(r.out, "    %s\n", Plain(line))
			}
		}
	}
	return r.out.Flush()
}

// jsonPiece reports whether a line of diagnostics is JSON or the end of some, as programs print it for
// programs: it is in the JSON view.
func jsonPiece(line string) bool {
	return strings.Contains(line, `":`) && strings.ContainsAny(line, "{}")
}
