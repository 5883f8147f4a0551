package nodetest

import (
	"os"
	"syscall"
	"testing"
)

// Script writes a file that can be executed at once: no child that is started meanwhile, by a test beside this one,
// holds it open for writing, for which the system would refuse to execute it.
func Script(t testing.TB, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(text), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
