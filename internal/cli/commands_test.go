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
