package compile

import (
	"sync"
	"testing"

	"dagrun.dev/nodes"
)

// TestSideBySide: specifications in YAML and in CUE may be compiled at the same time with one registry, whose schema is
// made once; the plans are the same. The race stage runs it. (A child with limits is a process of its own.)
func TestSideBySide(t *testing.T) {
	kinds := nodes.NewRegistry(testRegistry.Kinds()...)
	twin := "../../examples/yaml-and-cue/"
	options := []Options{
		{Path: twin + "spec.yaml", Kinds: kinds},
		{Path: twin + "spec.cue", Kinds: kinds},
	}
	digests := make([]string, 2*len(options))
	var wait sync.WaitGroup
	for i := range digests {
		wait.Go(func() {
			res, err := Compile(options[i%len(options)])
			if err != nil {
				t.Error(err)
				return
			}
			digests[i] = res.Plan.Digest()
		})
	}
	wait.Wait()
	for i, d := range digests {
		if d != digests[0] {
			t.Errorf("compilation %d gives the plan %s, want %s", i, d, digests[0])
		}
	}
}
