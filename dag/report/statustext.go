package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// barWidth is the length of progress bars, in characters.
const barWidth = 30

// bar draws a share of a whole.
func bar(part, whole float64) string {
	n := 0
	if whole > 0 {
		n = int(barWidth*min(1, max(0, part/whole)) + 0.5)
	}
	return strings.Repeat("█", n) + strings.Repeat("░", barWidth-n)
}

func percent(part, whole int) int { return 100 * part / max(1, whole) }

// A rows prints rows of a name and a text, what others wrote made plain.
type rows struct{ out *bufio.Writer }

func (r rows) row(name, format string, args ...any) {
	if name != "" {
		name += ":"
	}
	fmt.Fprintf(r.out, "%-12s %s\n", name, Plain(fmt.Sprintf(format, args...)))
}

// list prints a row of names; nothing without any.
func (r rows) list(name string, names []string) {
	if len(names) > 0 {
		r.row(name, "%s", strings.Join(names, ", "))
	}
}

// paths prints a row of paths, not too many of them; nothing without any.
func (r rows) paths(name string, paths []string, what string) {
	n := len(paths)
	if n == 0 {
		return
	}
	more := ""
	if n > mostWarnings {
		more = fmt.Sprintf(" and %d more", n-mostWarnings)
	}
	r.row(name, "%s%s%s", strings.Join(paths[:min(n, mostWarnings)], ", "), more, what)
}

// WriteText prints the status for people.
func (s *Status) WriteText(w io.Writer) error {
	r := rows{bufio.NewWriter(w)}
	r.row("Pipeline", "%s", s.Name)
	r.row("Run", "%s in %s", s.RunID, s.Dir)
	status := strings.ToUpper(string(s.Status))
	switch {
	case s.Stopped:
		status = "STOPPED: no process runs it"
	case s.Reason != "":
		status += " " + ReasonInBrackets(s.Reason, s.Node, s.Message)
	case s.Message != "":
		status += ": " + s.Message
	}
	r.row("Status", "%s", status)
	r.row("Started", "%s", Instant(s.Created))
	active := Duration(max(s.Active, 0.01))
	if s.Wall > 0 {
		active += " of at most " + Duration(s.Wall)
	}
	r.row("Last event", "%s; active for %s", Instant(s.Updated), active)
	s.writeProgress(r)
	s.writeMoney(r)
	s.writeNodes(r)
	if s.Status == machine.RunDone {
		r.paths("Artifacts", s.Artifacts, "")
	}
	s.writeNext(r)
	return r.out.Flush()
}

// WriteNothing says of a run that is complete that there is nothing to do, and where what it made is.
func (s *Status) WriteNothing(w io.Writer) error {
	r := rows{bufio.NewWriter(w)}
	fmt.Fprintf(r.out, "Nothing to do: %s is complete in %s; dagrun apply --fresh begins anew.\n", s.Name, s.Dir)
	r.paths("Artifacts", s.Artifacts, "")
	return r.out.Flush()
}

// WriteNext prints what the user can do; nothing when there is nothing to do.
func (s *Status) WriteNext(w io.Writer) error {
	r := rows{bufio.NewWriter(w)}
	s.writeNext(r)
	return r.out.Flush()
}

func (s *Status) writeNext(r rows) {
	if s.Next == "" {
		return
	}
	r.row("Next", "%s", s.Next)
	for _, c := range s.NextSteps {
		r.row("", "  %s", c)
	}
}

// ReasonText says why a run pauses, and at which node unless the message names it.
func ReasonText(reason machine.Pause, node, message string) string {
	if reason == "" {
		return message
	}
	text := string(reason)
	if node != "" && !strings.Contains(message, node) {
		text += " at " + node
	}
	return strings.TrimSuffix(text+": "+message, ": ")
}

// ReasonInBrackets is ReasonText with the reason itself in brackets and what follows behind them.
func ReasonInBrackets(reason machine.Pause, node, message string) string {
	head, message, more := strings.Cut(ReasonText(reason, node, message), ": ")
	if !more {
		return "(" + head + ")"
	}
	return "(" + head + "): " + message
}

// Instant prints an instant for people: local time and its zone. Logs and JSON have UTC.
func Instant(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

func (s *Status) writeProgress(r rows) {
	ended := s.Nodes - s.Open - (s.Failed - s.Allowed) // what failed for good is not done
	r.row("Progress", "%s %d/%d nodes (%d%%)", bar(float64(ended), float64(s.Nodes)), ended, s.Nodes, percent(ended, s.Nodes))
	r.row("Nodes", "%s", s.Counts)
	for _, p := range s.Phases {
		mark := ""
		if p.Name == s.Phase {
			mark = "  <- now"
		}
		r.row("Phase", "%s %d/%d (%d%%)%s", p.Name, p.Ended, p.Nodes, percent(p.Ended, p.Nodes), mark)
	}
	if s.State != "" {
		r.row("State", "%s", s.State)
	}
	if s.Open > 0 && s.Status != machine.RunBroken {
		left := "not known yet"
		if s.ETA != nil {
			left = "about " + Duration(max(*s.ETA, 0.01))
		}
		r.row("Remaining", "%s", left)
	}
}

func (s *Status) writeMoney(r rows) {
	cost := "$" + s.CostUSD.String()
	if s.CapUSD > 0 {
		cost += fmt.Sprintf(" / $%s (%d%%)  %s", s.CapUSD, 100*s.CostUSD/s.CapUSD, bar(s.CostUSD.Float(), s.CapUSD.Float()))
	}
	if s.Reserved > 0 {
		cost += ", $" + s.Reserved.String() + " reserved"
	}
	if s.Assumed > 0 {
		cost += ", $" + s.Assumed.String() + " of it assumed"
	}
	if s.Projected != nil && *s.Projected > s.CostUSD {
		cost += ", about $" + s.Projected.String() + " in the end"
	}
	r.row("Cost", "%s", cost)
	if s.CapTokens > 0 {
		r.row("Tokens", "%d / %d (%d%%)", s.Tokens, s.CapTokens, 100*s.Tokens/s.CapTokens)
	}
	writeShares(r, s.Shares)
	writeSeries(r, s.Series)
}

// writeShares prints cost by label, a row for each.
func writeShares(r rows, list []Share) {
	for _, line := range shareLines(list) {
		r.row("", "%s", line)
	}
}

// SharesLine is cost by one label on one line: by the one that tells most of the money apart, and of
// such the one with the fewest values.
func SharesLine(list []Share) string {
	best, most, fewest := "", dag.USD(-1), 0
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Label == list[0].Label {
			n++
		}
		var sum dag.USD
		for i := range list[:n] {
			sum += list[i].CostUSD
		}
		if lines := shareLines(list[:n]); len(lines) > 0 && (sum > most || sum == most && n < fewest) {
			best, most, fewest = lines[0], sum, n
		}
		list = list[n:]
	}
	return best
}

// shareLines says for each label what its values cost; values that cost nothing and labels that only
// count are left out.
func shareLines(list []Share) (lines []string) {
	for len(list) > 0 {
		n := 0
		var parts []string
		counts := true
		for ; n < len(list) && list[n].Label == list[0].Label; n++ {
			s := &list[n]
			_, err := strconv.Atoi(s.Value)
			counts = counts && err == nil
			if s.CostUSD == 0 && s.Projected == 0 {
				continue
			}
			part := s.Value + " $" + s.CostUSD.String()
			if s.Projected > s.CostUSD {
				part += " of about $" + s.Projected.String()
			}
			parts = append(parts, part)
		}
		if !counts {
			lines = append(lines, "by "+list[0].Label+": "+strings.Join(parts, ", "))
		}
		list = list[n:]
	}
	return lines
}

// writeSeries prints what has a value for each of the nodes, so that it can be followed.
func writeSeries(r rows, list []Series) {
	for _, s := range list {
		if len(s.Values) < len(list[0].Values) { // the longest comes first
			break
		}
		r.row("Trend", "%s %s", s.Name, strings.Join(s.Values, " -> "))
	}
}

func (s *Status) writeNodes(r rows) {
	running := "Running"
	if len(s.Running) > 0 && s.Running[0].Status != "running" {
		running = "Interrupted"
	}
	writeList(r, running, s.Running)
	writeList(r, "Waiting", s.Waiting)
	writeList(r, "Last ended", s.Recent)
	writeList(r, "Failed", s.Failures)
	writeList(r, "Cancelled", s.Cut)
	_ = s.Pieces.WriteText(r.out) // a bufio.Writer keeps its error for Flush
	if len(s.Checkpoint) > 0 {
		r.row("Checkpoints", "%d (%s)", len(s.Checkpoint), strings.Join(s.Checkpoint, ", "))
	}
	r.row("Errors", "%s; %s", s.Errors, Count(s.Warnings, "warning"))
	for _, d := range s.Drifted {
		r.row("Artifact", "%s", d)
	}
	r.list("Degraded", s.Degraded)
	for _, b := range s.Breakers {
		r.row("Breaker", "%s", b)
	}
	for _, q := range s.Questions {
		r.row("Question", "%s: %s [%s]%s", q.ID, q.Message, strings.Join(q.Options, ", "), untilText(q.Deadline))
	}
}

// String says how many errors there were, by category those that are not recovered.
func (e Errors) String() string {
	text := fmt.Sprintf("%d recovered, %d unrecovered%s", e.Recovered, e.Unrecovered, categoriesText(e.Open))
	if e.Recovered+e.Unrecovered == machine.ErrorsKept {
		text += ", of the last " + strconv.Itoa(machine.ErrorsKept)
	}
	return text
}

func categoriesText(m map[string]int) string {
	if len(m) == 0 {
		return ""
	}
	var parts []string
	for _, k := range sortedNames(m) {
		name := k
		if name == "" {
			name = "lost"
		}
		parts = append(parts, fmt.Sprintf("%s %d", name, m[k]))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func writeList(r rows, title string, nodes []NodeStatus) {
	if len(nodes) == 0 {
		return
	}
	fmt.Fprintf(r.out, "%s:\n", title)
	for _, n := range nodes {
		line := fmt.Sprintf("  %s (%s)", n.ID, n.Kind)
		if n.Seconds > 0 {
			line += "  " + Duration(n.Seconds)
		}
		if n.Attempt > 1 {
			line += fmt.Sprintf("  attempt %d", n.Attempt)
		}
		if n.CostUSD > 0 {
			line += "  $" + n.CostUSD.String()
		}
		if n.Allowed {
			line += "  allowed"
		}
		if n.Why != "" {
			line += "  " + n.Why
		}
		if !n.Until.IsZero() {
			line += "; not before " + Instant(n.Until)
		}
		fmt.Fprintln(r.out, Plain(line))
	}
}

func untilText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " until " + Instant(t)
}
