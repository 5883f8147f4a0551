package agent

import (
	"os"
	"testing"
	"time"
)

// TestMain lets the test binary be the simulated agent, as the dagrun binary is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "sim-agent" {
		os.Exit(SimMain(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // else each simulated agent would linger for a second
	time.Local = time.UTC                        // the zone of "resets 3pm"
	os.Exit(m.Run())
}
