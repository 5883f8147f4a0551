package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/program"
)

// killSpec is three chains of short commands that meet: enough happens at once for a kill to hit
// writing, renaming, starting and waiting.
func killSpec() string {
	var b strings.Builder
	b.WriteString("pipeline:\n  name: crash\n  nodes:\n")
	for chain := range 3 {
		for i := range 7 {
			needs, from := "", "echo start"
			if i > 0 {
				needs = fmt.Sprintf("needs: [c%d-%d], reads: [c%d-%d.txt], ", chain, i-1, chain, i-1)
				from = fmt.Sprintf(`cat "$DAGRUN_IN/c%d-%d.txt"`, chain, i-1)
			}
			fmt.Fprintf(&b, "    c%d-%d: {kind: exec, %swrites: [c%d-%d.txt], with: {run: '(%s; echo c%d-%d) > \"$DAGRUN_OUT/c%d-%d.txt\"'}}\n",
				chain, i, needs, chain, i, from, chain, i, chain, i)
		}
	}
	b.WriteString("    save: {kind: checkpoint, needs: [c0-6, c1-6, c2-6]}\n")
	return b.String()
}

// The program killed at any instant leaves a state that verifies and goes on to the end of an
// undisturbed run. DAGRUN_KILLS says how often it is killed; make faults does it 200 times
// (S-5, S-7).
func TestKilledAtRandom(t *testing.T) {
	t.Parallel()
	kills := 20
	if s := os.Getenv("DAGRUN_KILLS"); s != "" {
		var err error
		if kills, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	whole := newCrashOf(t, killSpec())
	began := time.Now()
	if err := whole.dagrun(0, "apply", "-j", "2"); err != nil {
		t.Fatalf("%v\n%s", err, whole.output.String())
	}
	took, want := time.Since(began), whole.artifacts()
	seed := rand.Uint64()
	t.Logf("seed %d, an undisturbed run takes %v", seed, took)
	random := rand.New(rand.NewPCG(seed, 1))
	c := newCrashOf(t, killSpec())
	for killed := 0; killed < kills; {
		ended := c.killedWithin(time.Duration(random.Int64N(int64(took))))
		if !c.begun() { // killed before there was anything
			killed++
			continue
		}
		if err := c.dagrun(0, "verify"); err != nil {
			t.Fatalf("after kill %d: %v\n%s", killed, err, c.output.String())
		}
		if !ended {
			killed++
			continue
		}
		if got := c.artifacts(); got != want {
			t.Errorf("artifacts\n%s\nwant\n%s", got, want)
		}
		if err := c.dagrun(0, "apply"); err != nil { // the kill may have come behind the last event
			t.Errorf("%v\n%s", err, c.output.String())
		}
		// Before anything is recorded nobody can know of a folder for temporary files that a kill left.
		early := func(name string) bool { return strings.HasPrefix(filepath.Base(name), "dagrun-preflight-") }
		if left := slices.DeleteFunc(c.leftovers(), early); len(left) > 0 {
			t.Errorf("the run has ended, and left %v", left)
		}
		c = newCrashOf(t, killSpec())
	}
	if err := c.goOn(); err != nil {
		t.Fatalf("%v\n%s", err, c.output.String())
	}
	if got := c.artifacts(); got != want {
		t.Errorf("artifacts\n%s\nwant\n%s", got, want)
	}
	if err := c.dagrun(0, "verify"); err != nil {
		t.Errorf("%v\n%s", err, c.output.String())
	}
}

// goOn carries the run on to its end. A node that was under way at three kills in a row is taken for one that kills
// its host: then the run pauses for a person, once, who lets it go on.
func (c *crash) goOn() error {
	err := c.dagrun(0, "apply", "-j", "2")
	if err != nil && strings.Contains(c.output.String(), "node-failed") && strings.Contains(c.output.String(), "the process that ran it died") {
		return c.dagrun(0, "apply", "-j", "2")
	}
	return err
}

func (c *crash) begun() bool {
	_, err := os.Stat(filepath.Join(c.dir, "build/crash/_orchestrator/events.ndjson"))
	return !errors.Is(err, fs.ErrNotExist)
}

// killedWithin starts or goes on with the run and kills it after a time; it reports whether the run
// had ended well before.
func (c *crash) killedWithin(d time.Duration) (ended bool) {
	cmd := program.Command(c.t.Context(), binary, "apply", "-j", "2")
	cmd.Dir = c.dir
	cmd.Env = c.env()
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	timer := time.AfterFunc(d, func() { cmd.Process.Kill() })
	defer timer.Stop()
	return cmd.Wait() == nil
}
