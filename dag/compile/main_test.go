package compile

import (
	"os"
	"testing"
)

// TestMain lets the test binary be its own child, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		os.Exit(Child(os.Stdin, os.Stdout, testRegistry))
	}
	os.Exit(m.Run())
}
