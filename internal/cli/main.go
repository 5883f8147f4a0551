// Package cli is the command line of dagrun: one file per command reads flags and prints; what the
// commands do lives in the packages under dag. It is a package of its own so that another program
// can offer the same commands beside its own.
package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/compile/source"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/all"
)

// Main carries out the command line of the process and ends it with the exit status. It is called
// once, from main, on the main thread.
func Main() {
	if len(os.Args) > 1 && os.Args[1] == source.ChildCommand {
		os.Exit(source.Child(os.Stdin, os.Stdout, nodes.NewRegistry(all.Kinds()...)))
	}
	boundMemory()
	runtime.LockOSThread() // children are started from the other threads: see package proc
	status := make(chan int)
	go func() { status <- command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr) }()
	os.Exit(<-status)
}

// command carries out one command line and returns the exit status. It is main without the
// process.
func command(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := knownCommand(root, args)
	if err == nil {
		err = root.Execute()
	}
	if err == nil {
		return exitDone
	}
	if slices.Contains(args, "--json") || slices.Contains(args, "--json=true") { // flags may be what is wrong
		printErrorJSON(stdout, err)
	}
	printError(stderr, err)
	return exitStatus(err)
}

// printErrorJSON prints what ended a command that was asked for JSON, beside the lines for people on
// stderr: one object with the text, the exit status and the mistakes of a specification by place.
func printErrorJSON(w io.Writer, err error) {
	var status *statusError
	if errors.As(err, &status) && status.err == nil {
		return // everything was said
	}
	out := struct {
		Error    string    `json:"error"`
		Exit     int       `json:"exit_status"`
		Mistakes []mistake `json:"mistakes,omitempty"`
	}{err.Error(), exitStatus(err), nil}
	var found tree.Diagnostics
	if errors.As(err, &found) {
		out.Mistakes = mistakes(found)
	}
	_ = printJSON(w, out) // stdout is all there is to tell it to
}

// printError prints one line for each mistake. Those of a specification begin with the place.
func printError(w io.Writer, err error) {
	var status *statusError
	if errors.As(err, &status) && status.err == nil {
		return
	}
	var mistakes tree.Diagnostics
	if errors.As(err, &mistakes) {
		for _, m := range mistakes {
			fmt.Fprintln(w, m.Error())
		}
		return
	}
	for _, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		fmt.Fprintln(w, "dagrun: "+line)
	}
}

// Exit statuses, the same for all commands; exitHelp explains them.
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
  1    bad input, a node failed and the run waits, or the run has failed
  2    plan: there is something to do
  3    paused for the budget, a person, an answer, a breaker or a quota
  4    another process holds the run
  5    the run's record is damaged
  6    disk full, read-only, or a sync error
  130  stopped at once by a second interrupt`

const jsonHelp = `With --json stdout holds one JSON value (log: one for each line); progress and warnings go to stderr. Names
are snake_case and only ever added to; inside of plans and budgets stand the names of the specification.
An error is an object: error, exit_status, and mistakes with their places.`

// exitStatus says which status an error ends the program with.
func exitStatus(err error) int {
	var status *statusError
	var locked *eventlog.Locked
	var damaged *eventlog.Damaged
	var newer *run.Newer
	switch {
	case errors.As(err, &status):
		return status.status
	case errors.As(err, &locked):
		return exitLocked
	case errors.As(err, &damaged), errors.As(err, &newer):
		return exitDamaged
	case errors.Is(err, executor.ErrHard):
		return exitKilled
	case disk.Broken(err), errors.Is(err, fs.ErrPermission): // what is wrong with a specification is said otherwise
		return exitDisk
	}
	return exitBad
}

// A statusError ends the program with a status. A nil err prints nothing: everything was said.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// exit returns the error that ends the program with a status and no further word; nil for 0.
func exit(status int) error {
	if status == exitDone {
		return nil
	}
	return &statusError{status: status}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "dagrun",
		Short: "Plan and run pipelines declared in CUE or YAML",
		Long: `dagrun compiles a specification to a plan, shows what would run and what it would
cost, runs it, and remembers every step, so that a run goes on where it was stopped.

` + exitHelp + `

` + jsonHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	cobra.EnableCommandSorting = false
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Before anything is spent:", []*cobra.Command{newInit(), newVet(), newPlan(), newGraph(), newProviders()}},
		{"Run:", []*cobra.Command{newApply(), newResume(), newCancel(), newEscalations(), newRespond()}},
		{"Look:", []*cobra.Command{newStatus(), newReport(), newLog()}},
		{"Go back, prove:", []*cobra.Command{newCheckpoints(), newRevert(), newVerify(), newReplay(), newSelftest()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(newVersion(), newSimAgent())
	return root
}
