package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"dagrun.dev/dag/machine"
)

// Every command is explained in the README and by its help, and takes --json.
func TestEveryCommandIsExplained(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	story, err := os.ReadFile("testdata/script/json.txtar")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "## Commands")
	for _, c := range newRoot().Commands() {
		if c.Hidden || c.GroupID == "" {
			continue
		}
		if !strings.Contains(table, "`dagrun "+c.Name()) && !strings.Contains(table, "`"+c.Name()+"`") {
			t.Errorf("the README's table does not name %s", c.Name())
		}
		if c.Long == "" || c.Flags().Lookup("json") == nil {
			t.Errorf("%s: want a long help and --json", c.Name())
		}
		if left := regexp.MustCompile(`\{[a-z]+\}`).FindString(c.Long); left != "" {
			t.Errorf("the help of %s holds %s, which no text of commands.txt is called", c.Name(), left)
		}
		if !regexp.MustCompile(`(?m)dagrun ` + c.Name() + `\b.*--json.*\njson `).Match(story) {
			t.Errorf("json.txtar does not hold what %s --json prints to its kind", c.Name())
		}
	}
}

// The reason of a pause decides how the command ends that carried the run on (DESIGN 4b).
func TestPauseExitStatus(t *testing.T) {
	if got := [...]int{pauseExit(machine.PauseUser), pauseExit(machine.PauseNodeFailed), pauseExit(machine.PauseBudget),
		pauseExit(machine.PauseDisk)}; got != [...]int{exitDone, exitBad, exitPaused, exitDisk} {
		t.Errorf("exit statuses %v", got)
	}
}

// Every command has two examples at least, and what they type is understood.
func TestExamplesParse(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.Hidden || c.GroupID == "" {
			continue
		}
		n := 0
		for line := range strings.Lines(c.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  ") // behind two spaces stands what it is for
			line, _, _ = strings.Cut(line, " && ")
			words := strings.Fields(strings.ReplaceAll(line, `"wrong version"`, "wrong"))
			if len(words) == 0 {
				continue
			}
			n++
			if len(words) < 2 || words[0] != "dagrun" || words[1] != c.Name() {
				t.Errorf("%s: %q is no command line of it", c.Name(), line)
				continue
			}
			found, rest, err := newRoot().Find(words[1:])
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: %q: %v", c.Name(), line, err)
			}
		}
		if n < 2 {
			t.Errorf("%s has %d examples", c.Name(), n)
		}
	}
}

// Words that a command does not take are a mistake of every one, whatever flags it has.
func TestEveryCommandRefusesFurtherWords(t *testing.T) {
	t.Chdir(t.TempDir())
	for list := newRoot().Commands(); len(list) > 0; list = list[1:] {
		c := list[0]
		list = append(list, c.Commands()...)
		err := c.ValidateArgs(strings.Fields("a b c d e f g h"))
		if err == nil && !strings.Contains(c.Use, "...") && c.Runnable() && !c.Hidden {
			t.Errorf("%s takes eight words", c.CommandPath())
		}
	}
}
