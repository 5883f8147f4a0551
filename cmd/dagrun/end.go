package main

import (
	"fmt"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

// An end is how a run stands when its process ends.
type end struct {
	RunID     string   `json:"run_id"`
	Name      string   `json:"name"`
	Dir       string   `json:"dir"`
	Status    string   `json:"status"`
	Reason    string   `json:"reason,omitempty"`
	Node      string   `json:"node,omitempty"`
	Message   string   `json:"message,omitempty"`
	Completed int      `json:"completed"`
	Failed    int      `json:"failed"`
	Skipped   int      `json:"skipped"`
	Open      int      `json:"open"` // nodes that have not ended
	CostUSD   dag.USD  `json:"cost_usd"`
	Assumed   dag.USD  `json:"assumed_usd,omitempty"` // part of the cost that nobody has confirmed
	Seconds   float64  `json:"seconds"`               // of activity
	Questions []string `json:"questions,omitempty"`
	Next      string   `json:"next,omitempty"` // what the user can do
	Exit      int      `json:"exit_status"`

	Pieces  *report.Pieces  `json:"pieces,omitempty"`
	Summary *report.Summary `json:"summary,omitempty"`
}

// endOf reads how a run stands.
func endOf(r *run.Run) end {
	st := r.State()
	v := st.Run()
	e := end{RunID: v.ID, Name: v.Name, Status: string(v.Status), Seconds: v.Active.Seconds(), CostUSD: st.Ledger().Spent.USD, Assumed: st.Ledger().Assumed}
	for i := range int32(st.Graph().Len()) {
		n := st.NodeAt(i)
		switch n.Status {
		case machine.Completed:
			e.Completed++
		case machine.Skipped:
			e.Skipped++
		case machine.Failed, machine.Cancelled:
			e.Failed++
		default:
			e.Open++
		}
	}
	for _, q := range st.Escalations() {
		e.Questions = append(e.Questions, q.ID)
	}
	switch v.Status {
	case machine.RunPause:
		e.Pieces = report.NewPieces(st)
		e.Reason, e.Node, e.Message = v.Pause.Reason, v.Pause.Node, v.Pause.Message
		e.Exit, e.Next = pauseExit(e.Reason)
	case machine.RunBroken:
		e.Message, e.Exit = v.Failed, exitBad
		e.Next = "go on with: dagrun apply --again; begin anew with: dagrun apply --fresh"
	}
	return e
}

// pauseExit returns the exit status of a pause and what the user can do.
func pauseExit(reason string) (int, string) {
	switch reason {
	case "user":
		return exitDone, "go on with: dagrun resume (--restart NODE runs a piece anew, --without NODE leaves one out)"
	case "node-failed", "repeated-failure":
		return exitBad, "mend the cause, then go on with: dagrun resume (or apply, after a change of the spec)"
	case "budget":
		return exitPaused, "raise the budget in the spec, then: dagrun apply; or: dagrun resume --cap-usd N (or --cap-tokens, --wall)"
	case "person":
		return exitPaused, "do what the reason asks for (log in, pay, allow), then go on with: dagrun resume"
	case "escalation":
		return exitPaused, "answer with: dagrun respond ID ANSWER; then: dagrun resume"
	case "disk":
		return exitDisk, "make room, then go on with: dagrun resume"
	}
	return exitPaused, "when the cause is gone, go on with: dagrun resume"
}

// tell prints how the run stands and returns the exit status.
func (s *session) tell(e end, sum *report.Summary) error {
	e.Dir, e.Summary = s.dir, sum
	if s.runs.json {
		if err := printJSON(s.cmd.OutOrStdout(), e); err != nil {
			return err
		}
		return exit(e.Exit)
	}
	out := s.cmd.OutOrStdout()
	what := map[string]string{string(machine.RunDone): "Done", string(machine.RunPause): "Paused", string(machine.RunBroken): "Failed"}[e.Status]
	fmt.Fprintf(out, "%s: %d completed", what, e.Completed)
	for _, c := range []struct {
		n    int
		what string
	}{{e.Failed, "failed"}, {e.Skipped, "skipped"}, {e.Open, "not run"}} {
		if c.n > 0 {
			fmt.Fprintf(out, ", %d %s", c.n, c.what)
		}
	}
	fmt.Fprintf(out, "; %s", elapsed(e.Seconds))
	if e.CostUSD > 0 {
		fmt.Fprintf(out, ", $%s", e.CostUSD)
	}
	if e.Assumed > 0 {
		fmt.Fprintf(out, " ($%s of it assumed)", e.Assumed)
	}
	fmt.Fprintf(out, "; run %s in %s\n", e.RunID, s.dir)
	if e.Reason != "" {
		at := ""
		if e.Node != "" {
			at = " at " + e.Node
		}
		fmt.Fprintf(out, "Reason: %s%s: %s\n", e.Reason, at, report.Plain(e.Message))
	} else if e.Message != "" {
		fmt.Fprintf(out, "Reason: %s\n", report.Plain(e.Message))
	}
	if err := e.Pieces.WriteText(out); err != nil {
		return err
	}
	if err := sum.WriteText(out); err != nil {
		return err
	}
	for _, q := range e.Questions {
		fmt.Fprintf(out, "Question: %s (dagrun escalations shows it)\n", q)
	}
	if e.Next != "" {
		fmt.Fprintf(out, "Next: %s\n", e.Next)
	}
	return exit(e.Exit)
}
