package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/executor"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/printable"
	"dagrun.dev/internal/tree"
)

//go:embed views.tmpl
var viewsText string

// views are the templates of what commands print. They are read when the first is needed.
var views = sync.OnceValue(func() *template.Template { return report.Templates(viewsText) })

// show prints what a command found: as JSON where the command line asks for it, else by the template of its kind.
func show(c *cobra.Command, v any) error { return showAs(c, v, kindOf(v)) }

// showAs is show with another template.
func showAs(c *cobra.Command, v any, form string) error {
	return showBy(c, v, func(w io.Writer) error { return writeView(w, v, form) })
}

// writeView prints a view by a template. What stands between tabs is a column.
func writeView(w io.Writer, v any, form string) error {
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if err := views().ExecuteTemplate(columns, form, v); err != nil {
		return err
	}
	return columns.Flush()
}

// showBy is show for what no template prints.
func showBy(c *cobra.Command, v any, text func(io.Writer) error) error {
	if asJSON(c) {
		return printJSON(c.OutOrStdout(), v)
	}
	return text(c.OutOrStdout())
}

// showText is showBy for a text that is known already.
func showText(c *cobra.Command, v any, text string) error {
	return showBy(c, v, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

func asJSON(c *cobra.Command) bool {
	asked, err := c.Flags().GetBool("json")
	return err == nil && asked
}

func warn(c *cobra.Command, text string) { say(c.ErrOrStderr(), "warning: "+text) }

// say prints a message, in which others may have written something: no terminal acts on it.
func say(w io.Writer, text string) { fmt.Fprintln(w, printable.Text(text)) }

// printErrorJSON prints what ended a command that was asked for JSON, beside the lines for people on stderr: one
// object with the text, the exit status and the mistakes of a specification by place.
func printErrorJSON(w io.Writer, err error) {
	out := failure{err.Error(), exitStatus(err), nil}
	var found tree.Diagnostics
	if errors.As(err, &found) {
		out.Mistakes = mistakes(found)
	}
	_ = printJSON(w, out) // stdout is all there is to tell it to
}

// printError prints one line for each mistake. Those of a specification begin with the place.
func printError(w io.Writer, err error) {
	var mistakes tree.Diagnostics
	if errors.As(err, &mistakes) {
		for _, m := range mistakes {
			say(w, m.Error())
		}
		return
	}
	for _, line := range strings.Split(strings.TrimSpace(err.Error()), "\n") {
		say(w, "dagrun: "+line)
	}
}

func mistakes(found tree.Diagnostics) []mistake {
	out := []mistake{}
	for _, d := range found {
		out = append(out, mistake{d.Pos.File.String(), int(d.Pos.Line), int(d.Pos.Col), d.Path, d.Text})
	}
	return out
}

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

// exits are the exit statuses, the same for all commands: what --help says of each, the errors that end a command with
// it, and the reasons of a pause that do.
var exits = []struct {
	status int
	means  string
	is     func(error) bool
	pauses []machine.Pause
}{
	{exitDone, "done, a selected part done, nothing to do, handed to the running process, or paused by the user", nil,
		[]machine.Pause{machine.PauseUser, machine.PausePart}},
	{exitBad, "bad input, a node failed and the run waits, or the run has failed", nil,
		[]machine.Pause{machine.PauseNodeFailed, machine.PauseRepeated}},
	{exitChanges, "plan: there is something to do", nil, nil},
	{exitPaused, "paused for the budget, the user, an answer, a breaker or a quota", isA[*dayIsOver], nil},
	{exitLocked, "another process holds the run", isA[*eventlog.Locked], nil},
	{exitDamaged, "the run's record is damaged",
		func(err error) bool { return isA[*eventlog.Damaged](err) || isA[*run.Newer](err) }, nil},
	// Whatever is wrong with reading a specification is reported otherwise.
	{exitDisk, "disk full, read-only, or a sync error",
		func(err error) bool {
			return (disk.Broken(err) || errors.Is(err, fs.ErrPermission)) && !errors.Is(err, executor.ErrHard)
		}, []machine.Pause{machine.PauseDisk}},
	{exitKilled, "stopped at once by a second interrupt",
		func(err error) bool { return errors.Is(err, executor.ErrHard) }, nil},
}

func isA[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// dayIsOver is that the ticks of a day have spent what they may.
type dayIsOver struct {
	text  string
	until time.Time
}

func (d *dayIsOver) Error() string {
	return fmt.Sprintf("%s: the next tick begins after %s", d.text, report.Instant(d.until))
}

// exitHelp explains the exit statuses.
var exitHelp = func() string {
	text := "Exit status:"
	for _, x := range exits {
		text += fmt.Sprintf("\n  %-4d %s", x.status, x.means)
	}
	return text
}()

// exitStatus says which status an error ends the program with.
func exitStatus(err error) int {
	var status exit
	if errors.As(err, &status) {
		return int(status)
	}
	for _, x := range exits {
		if x.is != nil && x.is(err) {
			return x.status
		}
	}
	return exitBad
}

// pauseExit is the exit status of a command that leaves a run paused for a reason.
func pauseExit(reason machine.Pause) int {
	for _, x := range exits {
		if slices.Contains(x.pauses, reason) {
			return x.status
		}
	}
	return exitPaused
}

// An exit is the error that ends the program with a status and no further word: everything was said.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// exitWith returns the exit of a status; nil for 0.
func exitWith(status int) error {
	if status == exitDone {
		return nil
	}
	return exit(status)
}
