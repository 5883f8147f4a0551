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
			r, err := openOrAsk(dir, executor.Request{Answer: &a}, func() (*run.Run, *run.Report, error) {
				return run.Open(runs.options(dir, "respond"))
			})
			if r == nil {
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

// openOrAsk opens a run, or has the process that holds it take a request: then there is no run and no error. A process
// that ends before it takes the request leaves the run free, or to another.
func openOrAsk(dir string, req executor.Request, open func() (*run.Run, *run.Report, error)) (*run.Run, error) {
	for {
		r, _, err := open()
		var locked *eventlog.Locked
		if !errors.As(err, &locked) {
			return r, err
		}
		asked := executor.Ask(dir, req, locked.Held)
		if !errors.Is(asked, executor.ErrNoAnswer) {
			return nil, asked
		}
		if locked.Held() {
			return nil, err // it is busy with something else than carrying the run on
		}
	}
}
