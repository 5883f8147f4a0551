// Command dagrun plans and runs pipelines that are declared in CUE or YAML.
//
// One file per command reads flags and prints; what the commands do lives in the packages
// under dag.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run carries out one command line and returns the exit status. It is main without the process.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	status := exitBad
	var e *exitError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &e):
		status = e.status
		err = e.err
	}
	if err != nil {
		for _, line := range strings.Split(strings.TrimRight(err.Error(), "\n"), "\n") {
			fmt.Fprintln(stderr, "dagrun: "+line)
		}
	}
	return status
}

// Exit statuses, the same for all commands (see exitHelp).
const (
	exitDone    = 0
	exitBad     = 1
	exitChanges = 2
	exitPaused  = 3
	exitLocked  = 4
	exitDamaged = 5
	exitDisk    = 6
	exitKilled  = 130
)

const exitHelp = `Exit status:
  0    done, nothing to do, or paused by the user
  1    bad input, or a node failed and the run waits
  2    plan: there are changes
  3    paused for budget, a person, a breaker or a quota
  4    another process holds the run
  5    the run's state is damaged
  6    disk full, read-only, or a sync error
  130  second interrupt`

// An exitError ends the program with a status. A nil err prints nothing: everything was said.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exit returns the error that ends the program with a status and no further word; nil for 0.
func exit(status int) error {
	if status == exitDone {
		return nil
	}
	return &exitError{status: status}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "dagrun",
		Short:         "Plan and run pipelines declared in CUE or YAML",
		Long:          "dagrun compiles a specification to a plan, shows what would run, runs it, and\nremembers every step, so that a run goes on where it was stopped.\n\n" + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Suggestions come with the error of an unknown command.
		SuggestionsMinimumDistance: 2,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return err })
	return root
}
