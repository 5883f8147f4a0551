package report

import (
	"fmt"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// next is what the user can do: in words, and as commands ready to be typed.
func (s *Status) next(st *machine.State) (words string, commands []string) {
	at := " --output-dir " + s.Dir
	resume := "dagrun resume" + at
	switch {
	case s.Status == machine.RunDone:
		return "", nil
	case s.Status == machine.RunBroken: // an open question waits for a run that goes on
		return "go on all the same, or begin anew", []string{"dagrun resume --again" + at, "dagrun apply --fresh" + at}
	case len(s.Questions) > 0:
		q := s.Questions[0]
		answer := q.Recommended
		if answer == "" {
			answer = "ANSWER"
		}
		return "answer the question, then go on", []string{"dagrun respond " + q.ID + " " + answer + at, resume}
	case s.Status == machine.RunRunning || s.Status == machine.RunEnding:
		return "it is running: an interrupt (Ctrl-C) pauses it, dagrun cancel ends it", nil
	}
	switch s.Reason {
	case machine.PauseUser:
		return "go on; --restart NODE runs a piece anew, --without NODE leaves one out", []string{resume}
	case machine.PauseBudget:
		return "raise the budget: in the specification, then apply it, or just for this run", []string{strings.TrimSpace("dagrun resume "+s.moreBudget(st)) + at}
	case machine.PauseNodeFailed, machine.PauseRepeated:
		return "fix the cause, then go on; if you changed the specification, apply it instead", []string{"dagrun report errors" + at, resume}
	case machine.PauseEscalation:
		return "go on: every question is answered", []string{resume}
	case machine.PausePerson:
		return "do what the reason asks for (log in, pay, allow), then go on", []string{resume}
	case machine.PauseQuota:
		return "go on after that instant; with --longest-wait the run waits for it by itself", []string{resume}
	case machine.PauseDisk:
		return "make room on the disk, then go on", []string{resume}
	}
	return "when the cause is gone, go on", []string{resume}
}

// moreBudget is the flag that raises the limit which holds the run: to twice what it was, or to what the run
// is expected to need if that is more.
func (s *Status) moreBudget(st *machine.State) string {
	l := st.Ledger()
	need := dag.Amount{USD: l.Spent.USD + l.Reserved.USD, Tokens: l.Spent.Tokens + l.Reserved.Tokens}
	if v, ok := st.NodeByID(s.Node); ok {
		need.USD += v.Reserve.USD
		need.Tokens += v.Reserve.Tokens
	}
	b := l.Budget
	switch {
	case b.CapUSD > 0 && need.USD > b.CapUSD:
		usd := max(need.USD, 2*b.CapUSD)
		if s.Projected != nil {
			usd = max(usd, *s.Projected)
		}
		return fmt.Sprintf("--cap-usd %.2f", float64((usd+9_999)/10_000)/100) // cents, rounded up
	case b.CapTokens > 0 && need.Tokens > b.CapTokens:
		return fmt.Sprintf("--cap-tokens %d", max(need.Tokens, 2*b.CapTokens))
	case b.Wall > 0:
		return "--wall " + (2 * b.Wall.D()).String()
	}
	return ""
}
