package compile

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// What is skipped together, and what is read too early, is found without going over the graph anew for each reading:
// the memory that it takes in all grows with the nodes alone, however many nodes lie between who reads and what is read.
func TestReadingsFarBehindGrowWithTheGraph(t *testing.T) {
	behind := func(n int, first, each string) string {
		var w strings.Builder
		w.WriteString("pipeline:\n  name: far\n  nodes:\n" + first)
		for i := 1; i < n; i++ {
			fmt.Fprintf(&w, "    n%d: {kind: sh, needs: [n%d], %s}\n", i, i-1, each)
		}
		return w.String()
	}
	for name, spec := range map[string]func(n int) string{
		"behind a condition": func(n int) string {
			return behind(n, "    p: {kind: sh, with: {values: {ok: bool}}}\n"+
				"    n0: {kind: sh, needs: [p], when: \"nodes['p'].out.ok\", with: {values: {x: string}}}\n",
				`with: {cmd: "${nodes['n0'].out.x}"}`)
		},
		"behind an early start": func(n int) string {
			return behind(n, "    a: {kind: sh, with: {writes: [page]}}\n    b: {kind: sh}\n"+
				"    j: {kind: join, needs: {of: [a, b], atLeast: 1}}\n    n0: {kind: sh, needs: [a, j]}\n", "with: {reads: [page]}")
		},
	} {
		size := func(n int) float64 {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(spec(n)), 0o644); err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			res, err := compileIn(dir, "spec.yaml")
			runtime.ReadMemStats(&after)
			if err != nil || res.Graph.Len() < n {
				t.Fatalf("%s: %v", name, err)
			}
			return float64(after.TotalAlloc - before.TotalAlloc)
		}
		size(10) // what is built once
		if small, large := size(400), size(1600); large > 5*small {
			t.Errorf("%s: four times the nodes take %.1f times the memory", name, large/small)
		}
	}
}
