package cli

import (
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/runlog"
)

func newRespond() *cobra.Command {
	var runs runFlags
	var a machine.EscalationAnsweredBody
	c := &cobra.Command{
		Use:   "respond [ID] ANSWER",
		Short: "Answer a question of the run",
		Long: `respond answers a question that dagrun escalations lists. ID may be left out when one question is open.
It reaches a running apply; when none runs, the answer is recorded for the next resume or apply. An answer that
refuses an approval (escalations marks it) ends its node as failed: its onFail decides what follows, by default
the run pauses, and resuming it asks again. --text says why, or gives the text that an option asks for.`,
		Args: oneOrTwo,
		RunE: func(c *cobra.Command, args []string) error {
			a.Answer = args[len(args)-1]
			if len(args) == 2 {
				a.ID = args[0]
			}
			dir, err := runs.existing()
			if err != nil {
				return err
			}
			r, _, err := run.Open(runs.options(dir, "respond"))
			if asked, err := askHolder(err, dir, executor.Request{Answer: &a}); asked || err != nil {
				return errors.Join(err, done(c, err, "Answered: "+a.Answer))
			}
			said := "Answered: " + a.Answer
			body, err := executor.Answer(r.State(), a)
			if err == nil {
				if q, ok := r.State().Escalation(body.ID); ok && slices.Contains(q.Question.Refuses, a.Answer) {
					said += ", which refuses: " + q.Question.Node + " fails, and its onFail decides"
				}
				err = r.RecordDurable(time.Now(), body)
			}
			if err = errors.Join(err, r.Close()); err == nil {
				_ = runlog.Update(runs.options(dir, "respond")) // the next start does it otherwise
			}
			return errors.Join(err, done(c, err, said+". Ready to resume: dagrun resume --output-dir "+dir))
		},
	}
	runs.add(c)
	c.Flags().StringVar(&a.Text, "text", "", "why, or the text that the option asks for")
	c.Flags().StringVar(&a.By, "by", "user", "who answers")
	return c
}

// done prints what was done, unless it was not.
func done(c *cobra.Command, err error, text string) error {
	if err != nil {
		return nil
	}
	return showText(c, result{text}, "%s\n", text)
}

// askHolder passes a request to the process that holds the run, when opening it failed for that
// reason. It reports whether it did; any other error of opening is returned.
func askHolder(opening error, dir string, req executor.Request) (asked bool, err error) {
	var locked *eventlog.Locked
	if !errors.As(opening, &locked) {
		return false, opening
	}
	err = executor.Ask(dir, req)
	if errors.Is(err, executor.ErrNoAnswer) {
		return false, opening // it is busy with something else than carrying the run on
	}
	return true, err
}
