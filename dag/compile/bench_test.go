package compile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/compile/source"
)

// BenchmarkSchema is what every start of the program costs.
func BenchmarkSchema(b *testing.B) {
	for b.Loop() {
		if _, err := schema.For(builtinSchemas(b)); err != nil { // new kinds: those of a registry are kept
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad reads and checks nodes written out.
func BenchmarkLoad(b *testing.B) {
	s := testSchema(b)
	for _, n := range []int{1_000, 10_000, 100_000} {
		for _, ext := range []string{"json", "yaml"} {
			b.Run(fmt.Sprintf("%s/%d", ext, n), func(b *testing.B) {
				path := filepath.Join(b.TempDir(), "p."+ext)
				if err := os.WriteFile(path, manyNodes(n, ext), 0o600); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					if _, _, err := load(s, path, source.Options{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// manyNodes writes n nodes of about 300 bytes each.
func manyNodes(n int, ext string) []byte {
	var w bytes.Buffer
	if ext == "json" {
		w.WriteString("{\"name\": \"many\", \"nodes\": {\n")
	} else {
		w.WriteString("name: many\nnodes:\n")
	}
	for i := range n {
		if ext == "json" {
			if i > 0 {
				w.WriteString(",\n")
			}
			fmt.Fprintf(&w, `"group/n%d": {"kind": "ask", "needs": ["group/n%d"], "timeout": "10m", "retry": {"attempts": 3, "base": "5s", "factor": 2}, "labels": {"subset": "S%d", "role": "builder"}, "reads": ["in/%d.md"], "writes": ["out/%d.md"], "with": {"provider": "sim", "prompt": "write the part with number %d", "maxTokens": 2000}}`, i, max(i-1, 0), i%7, i, i, i)
			continue
		}
		fmt.Fprintf(&w, "  group/n%d:\n    kind: ask\n    needs: [group/n%d]\n    timeout: 10m\n    retry:\n      attempts: 3\n      base: 5s\n      factor: 2\n    labels:\n      subset: S%d\n      role: builder\n    reads: [in/%d.md]\n    writes: [out/%d.md]\n    with:\n      provider: sim\n      prompt: write the part with number %d\n      maxTokens: 2000\n", i, max(i-1, 0), i%7, i, i, i)
	}
	if ext == "json" {
		w.WriteString("}}\n")
	}
	return w.Bytes()
}
