package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/reuse"
)

// What is looked for again, because the process that held the run died while it was asked, is told once.
func TestWarningIsToldOnce(t *testing.T) {
	spec := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(spec, []byte(`pipeline:
  name: p
  nodes:
    make: {kind: exec, with: {run: "true"}}
    use: {kind: exec, needs: [make], with: {argv: [tools/x]}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	res, kinds, err := new(specFlags).compile([]string{spec})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c := &cobra.Command{}
	c.SetErr(&said)
	s := &session{cmd: c, runs: &runFlags{state: t.TempDir()}, host: &hostFlags{}, kinds: kinds, dir: t.TempDir()}
	d := reuse.Fresh(res.Graph)
	if err := s.part.take(nil, d); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.lookAhead(d, res.Dir); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(said.String(), "warning: the program tools/x is not there"); n != 1 {
		t.Errorf("told %d times:\n%s", n, said.String())
	}
}

// Nobody is at /dev/null, though it is a device like a terminal: prune says how to go on instead of taking silence for no.
func TestNobodyIsAskedAtDevNull(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	c := &cobra.Command{}
	c.SetIn(null)
	c.SetOut(null)
	if err := canConfirm(c); err == nil || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("it asks: %v", err)
	}
}
