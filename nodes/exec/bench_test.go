package exec

import (
	"context"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
)

// One attempt of a silent command, with everything that a node of kind exec does.
func BenchmarkSilentCommand(b *testing.B) {
	task, _ := nodetest.New(b, "exec", m{"argv": []string{"/bin/true"}})
	for b.Loop() {
		if _, err := (Kind).Run(context.Background(), task); err != nil {
			b.Fatal(err)
		}
	}
}
