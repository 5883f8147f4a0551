package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
)

// errFresh is that the user at the terminal wants to archive a damaged run and to start over.
var errFresh = errors.New("the damaged run is to be archived")

// Ways to go on with a run whose log is damaged, beside the ids of its checkpoints.
const (
	waySalvage = "salvage"
	wayFresh   = "fresh"
	wayLeave   = "leave"
)

// open opens the run of the session to go on with it. What to do about a damaged log it asks the user at the terminal.
// Where going on with the events before the damage may pay twice, it says so and ends the command.
func (s *session) open(salvage bool) (*run.Run, *run.Report, error) {
	o := s.options()
	o.Salvage = salvage
	r, rep, err := run.Open(o)
	if d := (*eventlog.Damaged)(nil); errors.As(err, &d) && d.Salvage {
		switch way := s.askWayOut(d); way {
		case wayLeave:
		case wayFresh:
			err = errFresh
		default:
			o.Salvage = way == waySalvage
			if !o.Salvage {
				_, warned, failed := revert(s.runs.options(s.dir, "revert"), way, s.specDir, false)
				for _, w := range warned {
					s.warn(w)
				}
				if failed != nil {
					return nil, nil, failed
				}
			}
			r, rep, err = run.Open(o)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	for _, w := range rep.Warnings {
		s.warn(w)
	}
	if d := rep.Dropped; d != nil && (d.Paying() && r.Costly() || len(d.Effects) > 0) {
		s.note("Ready to resume: dagrun resume --output-dir " + s.dir)
		return nil, nil, errors.Join(r.Close(), exitWith(exitPaused))
	}
	s.endLeft()
	s.crash.live = true
	return r, rep, nil
}

// askWayOut asks what to do about a damaged log: whoever is not at a terminal reads in the error what to type.
func (s *session) askWayOut(d *eventlog.Damaged) string {
	if s.host.noInput || s.host.quiet || s.stays || s.name == "cancel" || !canAsk(s.cmd.InOrStdin(), s.screen.out) {
		return wayLeave
	}
	q := machine.EscalationOpenedBody{
		ID: "recovery", Type: "damaged", Message: strings.TrimSuffix(d.Error(), "; "+d.WayOut),
		Options: []string{waySalvage}, Recommended: waySalvage,
		Does: map[string]string{
			waySalvage: "go on from the events before the damage; what followed is kept under archives",
			wayFresh:   "archive this run and start over", wayLeave: "change nothing",
		},
	}
	for _, id := range d.Before {
		q.Options = append(q.Options, id)
		q.Does[id] = "go back to this checkpoint and go on from there"
	}
	if s.name == "apply" {
		q.Options = append(q.Options, wayFresh)
	}
	q.Options = append(q.Options, wayLeave)
	way := wayLeave
	a := &asker{in: s.cmd.InOrStdin().(*os.File), screen: s.screen, flush: func() {}, ctx: context.Background(),
		news: make(chan []machine.EscalationOpenedBody, 1)}
	a.put = func(_ context.Context, r executor.Request) error {
		way = r.Answer.Answer
		a.news <- nil
		return nil
	}
	_, _ = a.ask(q) // whoever leaves the terminal has changed nothing
	return way
}
