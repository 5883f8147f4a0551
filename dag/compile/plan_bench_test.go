package compile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// foreachSpec makes n nodes: chains of eight, with conditions over recorded values, rotated
// lists, settings and artifacts of their own.
func foreachSpec(n int) string {
	return fmt.Sprintf(`pipeline:
  name: big
  pools: {llm: 8}
  nodes: {start: {kind: sh, with: {values: {ok: bool}}}}
  foreach:
    - axes:
        - {as: s, in: %d, key: "'S' + string(s.n)"}
        - {as: p, in: [A, A, A, B, B, B, C, C], key: "string(p.n)"}
      vars:
        k: "{'A': 0, 'B': floor(5 * 2 / 5), 'C': floor(5 * 4 / 5)}[p.value]"
      id: "car/${s.key}/p${p.n}"
      node:
        kind: ask
        pool: llm
        needs: "${p.first ? ['start'] : ['car/' + s.key + '/p' + string(p.n - 1)]}"
        when: "nodes['start'].out.ok"
        with: {cmd: "prompt for ${s.key}", list: "${rotate(['F1', 'F2', 'F3', 'F4', 'F5'], k)}", writes: ["out/${s.key}.md"]}
        labels: {subset: "${s.key}", pass: "${p.n}"}
`, n/8)
}

// Growth from 1k to 100k nodes is linear. B-11.
func BenchmarkForeach(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(foreachSpec(n)), 0o644); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				res, err := compileIn(dir, "spec.yaml")
				if err != nil {
					b.Fatal(err)
				}
				if res.Graph.Len() != n+1 {
					b.Fatalf("%d nodes", res.Graph.Len())
				}
				if res.Plan.Digest() == "" {
					b.Fatal("no digest")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "us/node")
		})
	}
}

// listedSpec writes n nodes out, each with three needs, as JSON or, with a comment before it, as YAML.
func listedSpec(n int, ext string) []byte {
	var w bytes.Buffer
	if ext == "yaml" {
		w.WriteString("# JSON is YAML\n")
	}
	w.WriteString(`{"name": "listed", "nodes": {`)
	for i := range n {
		if i > 0 {
			w.WriteString(",\n")
		}
		fmt.Fprintf(&w, `"n%d": {"kind": "sh", "with": {"cmd": "true"}`, i)
		if i > 100 {
			fmt.Fprintf(&w, `, "needs": ["n%d", "n%d", "n%d"]`, i-100, i-50, i-7)
		}
		w.WriteString("}")
	}
	w.WriteString("}}\n")
	return w.Bytes()
}

// Ten thousand nodes written out: what a large generated graph costs before its first node starts.
func BenchmarkListed(b *testing.B) {
	for _, ext := range []string{"json", "yaml"} {
		b.Run(ext, func(b *testing.B) {
			dir := b.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "spec."+ext), listedSpec(10_000, ext), 0o644); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compileIn(dir, "spec."+ext); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
