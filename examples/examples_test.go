// Package examples_test runs every example as its text says. It does not test the program beyond
// what the examples teach.
package examples_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"dagrun.dev/internal/testing/program"
)

func TestMain(m *testing.M) { program.Main(m) }

// TestExamples runs the script test.txtar of each folder in a copy of the folder.
func TestExamples(t *testing.T) {
	scripts, err := filepath.Glob("*/test.txtar")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts found: %v", err)
	}
	for _, script := range scripts {
		dir := filepath.Dir(script)
		t.Run(dir, func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Files:               []string{script},
				RequireExplicitExec: true,
				Setup: func(env *testscript.Env) error {
					env.Setenv("PATH", program.Folder(t)+string(os.PathListSeparator)+env.Getenv("PATH"))
					env.Setenv("HOME", env.WorkDir)
					env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
					return os.CopyFS(env.WorkDir, os.DirFS(dir))
				},
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"status": status, "sameplan": samePlan, "serve": serve,
				},
			})
		})
	}
}

// status N command... runs a command that must end with status N.
func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N command [arguments]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		got = exit.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("%s ended with status %d, want %d", args[1], got, want)
	}
}

// sameplan a.json b.json compares two outputs of plan --json but for the name of the spec's file.
func samePlan(ts *testscript.TestScript, neg bool, args []string) {
	var sums [2][32]byte
	for i := range sums {
		var v map[string]any
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[i])), &v))
		if v["plan_digest"] == "" || v["plan_digest"] == nil {
			ts.Fatalf("%s holds no plan_digest", args[i])
		}
		sums[i] = sha256.Sum256(bytes.TrimSpace([]byte(v["plan_digest"].(string))))
	}
	if (sums[0] == sums[1]) == neg {
		ts.Fatalf("the plans of %s and %s: equal is %v", args[0], args[1], !neg)
	}
}

// serve NAME STATUS... starts a service at a loopback address that answers one request with each status, and all further
// ones with 200 and a JSON object. Its address is then in the variable NAME.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serve NAME [status...]")
	}
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		if n < int64(len(args)) {
			code, _ := strconv.Atoi(args[n])
			w.WriteHeader(code)
			return
		}
		fmt.Fprintf(w, `{"path": %q, "request": %d}`, r.URL.Path, n)
	}))
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}
