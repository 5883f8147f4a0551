package cli

import (
	"fmt"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
)

// An end is how a run stands when the command that carried it on ends.
type end struct {
	RunID   string            `json:"run_id"`
	Name    string            `json:"name"`
	Dir     string            `json:"dir"`
	Status  machine.RunStatus `json:"status"`
	Reason  machine.Pause     `json:"reason,omitempty"`
	Node    string            `json:"node,omitempty"`
	Message string            `json:"message,omitempty"`
	report.Counts
	CostUSD   dag.USD  `json:"cost_usd"`
	Assumed   dag.USD  `json:"assumed_usd,omitempty"` // part of the cost that nobody has confirmed
	Seconds   float64  `json:"seconds"`               // of activity
	Questions []string `json:"questions,omitempty"`
	Next      string   `json:"next,omitempty"` // what the user can do
	NextSteps []string `json:"next_commands,omitempty"`
	Exit      int      `json:"exit_status"`
	Nothing   bool     `json:"nothing_to_do,omitempty"` // the run was complete before

	Pieces  *report.Pieces  `json:"pieces,omitempty"`
	Summary *report.Summary `json:"summary,omitempty"`
}

// endOf takes from a status what the end of a command says.
func endOf(s *report.Status) end {
	e := end{
		RunID: s.RunID, Name: s.Name, Dir: s.Dir, Status: s.Status, Reason: s.Reason, Node: s.Node, Message: s.Message, Counts: s.Counts,
		CostUSD: s.CostUSD, Assumed: s.Assumed, Seconds: s.Active, Next: s.Next, NextSteps: s.NextSteps, Exit: runExit(s), Pieces: s.Pieces,
	}
	for _, q := range s.Questions {
		e.Questions = append(e.Questions, q.ID)
	}
	return e
}

// runExit returns the exit status of a command that leaves a run so.
func runExit(s *report.Status) int {
	switch {
	case s.Status == machine.RunBroken:
		return exitBad
	case s.Status != machine.RunPause:
		return exitDone
	}
	switch s.Reason {
	case machine.PauseUser:
		return exitDone
	case machine.PauseNodeFailed, machine.PauseRepeated:
		return exitBad
	case machine.PauseDisk:
		return exitDisk
	}
	return exitPaused
}

// tell prints how the run stands and returns the exit status.
func (s *session) tell(st *report.Status, sum *report.Summary) error {
	e := endOf(st)
	e.Summary = sum
	if s.runs.json {
		if err := printJSON(s.cmd.OutOrStdout(), e); err != nil {
			return err
		}
		return exit(e.Exit)
	}
	out := s.cmd.OutOrStdout()
	what := map[machine.RunStatus]string{machine.RunDone: "Done", machine.RunPause: "Paused", machine.RunBroken: "Failed"}[e.Status]
	fmt.Fprintf(out, "%s: %s; %s", what, e.Counts, elapsed(e.Seconds))
	if e.CostUSD > 0 {
		fmt.Fprintf(out, ", $%s", e.CostUSD)
	}
	if e.Assumed > 0 {
		fmt.Fprintf(out, " ($%s of it assumed)", e.Assumed)
	}
	fmt.Fprintf(out, "; run %s in %s\n", e.RunID, e.Dir)
	if why := report.ReasonText(e.Reason, e.Node, e.Message); why != "" {
		fmt.Fprintf(out, "Reason:      %s\n", report.Plain(why))
	}
	if err := e.Pieces.WriteText(out); err != nil {
		return err
	}
	if err := sum.WriteText(out); err != nil {
		return err
	}
	for _, q := range e.Questions {
		fmt.Fprintf(out, "Question:    %s (dagrun escalations shows it)\n", q)
	}
	if err := st.WriteNext(out); err != nil {
		return err
	}
	return exit(e.Exit)
}

// tellNothing says that a run is complete already.
func (s *session) tellNothing(st *report.Status) error {
	if s.runs.json {
		e := endOf(st)
		e.Nothing = true
		return printJSON(s.cmd.OutOrStdout(), e)
	}
	return st.WriteNothing(s.cmd.OutOrStdout())
}
