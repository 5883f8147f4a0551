package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
)

// lookEvery is how often logs -f and status --watch look for what is new.
const lookEvery = 200 * time.Millisecond

func newLogs() *cobra.Command {
	var runs runFlags
	var follow bool
	var tail int
	c := &cobra.Command{
		Use:   "logs [-f] [NODE]",
		Short: "Print what the nodes printed",
		Long: `logs prints what the programs of nodes printed and what services answered: of one node, or of all, with the
name of the node in front of each line. All attempts are printed, in the order in which they ended. Secrets are
masked, and control characters are shown as text. With -f it goes on with what is printed from then on, across
attempts, until the run ends or no process carries it on; Ctrl-C ends the printing, not the run.`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			if tail < 0 {
				return errors.New("--tail must not be negative")
			}
			return runs.read(c, func(r *run.Run, dir string) error {
				p := report.NewPrinted(r, runs.options(dir, c.Name()), dir)
				p.Tail = tail
				if len(args) > 0 {
					id, err := findNode(r, args[0])
					if err != nil {
						return err
					}
					p.Node = id
				}
				return printLogs(c, r, p, follow)
			})
		},
	}
	runs.add(c)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the run ends")
	c.Flags().IntVar(&tail, "tail", 0, "only the last lines of what each attempt that has ended printed (default: all)")
	return c
}

// printLogs prints what the nodes of a run printed, and with follow what they print until the run ends.
func printLogs(c *cobra.Command, r *run.Run, p *report.Printed, follow bool) error {
	out := bufio.NewWriter(c.OutOrStdout())
	defer out.Flush()
	lines := 0
	var last report.PrintedLine
	p.Line = func(l report.PrintedLine) error {
		lines++
		if again := l.Generation != last.Generation || l.Attempt != last.Attempt; again && p.Node != "" && !asJSON(c) &&
			(lines > 1 || l.Attempt > 1) {
			fmt.Fprintf(out, "--- attempt %d\n", l.Attempt)
		}
		last = l
		switch {
		case asJSON(c):
			return writeJSON(out, l, "")
		case p.Node != "":
			_, err := fmt.Fprintln(out, l.Text)
			return err
		}
		_, err := fmt.Fprintf(out, "%s | %s\n", l.Node, l.Text)
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		held := r.Held() // before looking: what it recorded last is then seen
		fresh, err := p.Look()
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
		if !follow || !held && !fresh {
			break
		}
		select {
		case <-tick.C:
		case <-stop:
			return p.Close()
		}
	}
	if err := p.Close(); err != nil {
		return err
	}
	if lines == 0 && !asJSON(c) {
		fmt.Fprintln(c.ErrOrStderr(), "nothing was printed")
	}
	return nil
}
