package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const stages = `pipeline:
  name: stages
  nodes:
    one: {kind: exec, group: stage-1, with: {run: "echo one >> did; echo 1 > \"$DAGRUN_OUT/one\""}, writes: [one]}
    one-done: {kind: checkpoint, needs: [one], with: {id: stage-1-complete}}
    two: {kind: exec, group: stage-2, needs: [one-done], with: {run: "echo two >> did"}}
    two-done: {kind: checkpoint, needs: [two], with: {id: stage-2-complete}}
    three: {kind: exec, group: stage-3, needs: [two-done], with: {run: "echo three >> did"}}
`

// damagedStages is a run that has ended, with a damage of its log in the last stage.
func damagedStages(t *testing.T) (dir string) {
	dir = t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(stages), 0o600))
	elsewhere(t, dir, "apply", "--quiet")
	own := filepath.Join(dir, "build/stages/_orchestrator")
	log, err := os.ReadFile(filepath.Join(own, "events.ndjson"))
	must(t, err)
	lines := strings.SplitAfter(string(log), "\n")
	k := slices.IndexFunc(lines, func(l string) bool {
		return strings.Contains(l, "WORK_ITEM_STARTED") && strings.Contains(l, `"node":"three"`)
	})
	lines[k] = strings.Replace(lines[k], `"attempt":1`, `"attempt":2`, 1)
	must(t, os.WriteFile(filepath.Join(own, "events.ndjson"), []byte(strings.Join(lines, "")), 0))
	for _, name := range []string{"snapshot.json", "snapshot.json.bak"} {
		must(t, os.Remove(filepath.Join(own, name)))
	}
	return dir
}

// S-4, L-7: at a terminal the ways to go on with a damaged log are asked for: from the events before it, from the end of any stage
// before it, or anew. Nothing is changed by leaving, and without a terminal what to type is said, and does it.
func TestRecoveryIsChosen(t *testing.T) {
	t.Parallel()
	const leave = "Type a number or a name"
	for _, c := range []struct{ command, typed, did, says string }{
		{"resume", "salvage", "one two three three", `the run continues from its first \d+ events`},
		{"resume", "2", "one two three three", `Done: 5 completed`}, // the newest checkpoint
		{"apply", "stage-1-complete", "one two three two three", `Done: 5 completed`},
		{"apply", "fresh", "one two three one two three", `archived the previous run as`},
	} {
		t.Run(c.command+" "+c.typed, func(t *testing.T) {
			t.Parallel()
			dir := damagedStages(t)
			for _, nobody := range []string{"leave\r", "\x04"} {
				a := runAtTerminal(t, 400, 40, dir, c.command)
				a.until(`(?s)recovery \(damaged\).*events.ndjson line \d+ .*1  salvage: .*2  stage-2-complete: .*3  stage-1-complete: .*leave: .*` + leave)
				fmt.Fprint(a.master, nobody)
				if got := a.end(); got != exitDamaged {
					t.Errorf("exit status %d\n%s", got, a.shown)
				}
				a.until(`--salvage --output-dir \S+/build/stages`)
			}
			a := runAtTerminal(t, 400, 40, dir, c.command)
			a.until(leave)
			fmt.Fprint(a.master, c.typed+"\r")
			if got := a.end(); got != exitDone {
				t.Errorf("exit status %d\n%s", got, a.shown)
			}
			a.until(c.says)
			restored(t, a)
			did(t, dir, c.did)
			elsewhere(t, dir, "verify")
		})
	}
	t.Run("typed as it is said", func(t *testing.T) {
		t.Parallel()
		for pattern, want := range map[string]string{
			`dagrun (revert --checkpoint stage-2-complete --output-dir \S+?);`: "one two three three",
			`dagrun (resume --salvage --output-dir \S+?);`:                     "one two three three",
		} {
			dir := damagedStages(t)
			c := exec.Command(binary, "resume")
			c.Dir = dir
			said, _ := c.CombinedOutput()
			m := regexp.MustCompile(pattern).FindStringSubmatch(string(said))
			if m == nil || !strings.Contains(string(said), "or to stage-1-complete") || !strings.Contains(string(said), "apply SPEC --fresh --output-dir "+dir+"/build/stages") {
				t.Fatalf("it says\n%s", said)
			}
			elsewhere(t, dir, strings.Fields(m[1])...)
			elsewhere(t, dir, "resume")
			did(t, dir, want)
		}
		dir := damagedStages(t)
		elsewhere(t, dir, "resume", "--salvage", "--rerun", "stage-2/")
		did(t, dir, "one two three two three")
	})
}

func did(t *testing.T, dir, want string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "did"))
	must(t, err)
	if got := strings.Join(strings.Fields(string(b)), " "); got != want {
		t.Errorf("it did %q, want %q", got, want)
	}
}
