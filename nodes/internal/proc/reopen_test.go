package proc

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"testing"
	"time"
)

// What a child printed can be read by the next process, whole when the child outlived its supervisor and
// ends soon.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	if _, err := Reopen(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("an empty folder: %v", err)
	}
	r, err := Run(context.Background(), &Spec{Argv: []string{"/bin/sh", "-c", "echo out; echo err >&2"}, Dir: dir, Named: dir})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	check := func(stdout string) {
		t.Helper()
		r, err := Reopen(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		out, _ := io.ReadAll(r.Stdout.UntilExit())
		errs, _ := io.ReadAll(r.Stderr.Open())
		if string(out) != stdout || string(errs) != "err\n" || r.Cause != Orphaned {
			t.Errorf("%q %q %q", out, errs, r.Cause)
		}
	}
	check("out\n")
	defer func(d time.Duration) { orphanWait = d }(orphanWait)
	orphanWait = time.Minute
	c, err := namedCapture(dir, stdoutName)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", "echo begun; sleep 0.3; echo over")
	cmd.Stdout = c.f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.release(false) // as when the supervisor dies
	check("begun\nover\n")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A file with a name is not used for another child, even when nothing was printed.
func TestNamedCaptureIsNotReused(t *testing.T) {
	for range 2 {
		dir := t.TempDir()
		r, err := Run(context.Background(), &Spec{Argv: []string{"/bin/true"}, Dir: dir, Named: dir})
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if r, err := Reopen(dir); err != nil {
			t.Error(err)
		} else {
			r.Close()
		}
	}
}
