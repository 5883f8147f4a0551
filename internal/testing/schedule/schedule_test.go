package schedule

import (
	"math"
	"testing"
)

// The recorded workflows have the lower bounds that their README states, and list scheduling keeps them.
func TestRecordedWorkflows(t *testing.T) {
	for name, want := range map[string]struct {
		scale, bound float64
	}{
		"rnaseq-dirt02": {0.008, 6.08}, "atacseq-dirt02": {0.006, 5.85},
		"soykb-chameleon-10fastq-10ch": {0.002, 5.86}, "srasearch-chameleon-50a": {0.0008, 6.59},
	} {
		x, err := Read("../../../testdata/workflows/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		bound, list := want.scale*x.Bound(8), want.scale*x.List(8, x.Graph.Rank)
		if math.Abs(bound-want.bound) > 0.01 || list < bound-1e-6 || list > 1.3*bound {
			t.Errorf("%s: bound %.3f, want %.2f; list scheduling takes %.3f", name, bound, want.bound, list)
		}
	}
}
