package manual

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"dagrun.dev/dag/compile"
	"dagrun.dev/nodes/all"
)

// placed are specifications with an expression at each of places, in their order; %s is a condition, and what gives
// anything else is made of one.
var placed = []string{
	`  b: {kind: exec, needs: [a], when: "%s", with: {run: "true"}}`,
	`  b: {kind: route, needs: [a], with: {rules: [{name: r, when: "%s", then: x}], else: y}}`,
	`  b: {kind: route, needs: [a], with: {rules: [], else: y, values: {v: "%s"}}}`,
	`  b: {kind: exec, needs: [a], with: {run: "true", env: {V: "${%s}"}}}`,
	`  b: {kind: approval, needs: [a], with: {message: "${string(%s)}"}}`,
	`  b: {kind: exec, needs: [a], title: "${string(%s)}", with: {run: "true"}}`,
	`  b: {kind: join, needs: [a], foreach: {in: "[%s]", as: x, key: "'k'", node: {kind: exec, with: {run: "true"}}}}`,
	`  b: {kind: join, needs: [a], foreach: {in: "[1]", as: x, key: "'%%s'.format([%s])", node: {kind: exec, with: {run: "true"}}}}`,
	`  b: {kind: join, needs: [a], foreach: {in: "[1]", as: x, key: "'k'", node: {kind: exec, with: {run: "true", env: {V: "${%s}"}}}}}`,
	` foreach: [{axes: [{as: y, in: [1]}, {as: x, in: "${[%s]}"}], id: "b/${x.index}", node: {kind: exec, with: {run: "true"}}}]`,
	` foreach: [{axes: [{as: x, in: [1]}], id: "b/${%s ? 'k' : 'l'}", node: {kind: exec, with: {run: "true"}}}]`,
}

// What is said to be readable at a place is so for the compiler, and nothing else is.
func TestPlaces(t *testing.T) {
	if len(placed) != len(places) {
		t.Fatalf("%d places, %d specifications", len(places), len(placed))
	}
	for i, p := range places {
		for _, read := range []struct {
			what, condition string
			may             bool
		}{
			{"params", "params.p", true},
			{"nodes", "nodes['a'].out.ok", p.nodes},
			{"run", "run.failed > 0", p.run},
			{"an item", "x.first", p.items == "the item" || p.items == "axes and vars"},
			{"the axis before", "y.first", p.items == "the axes before"},
		} {
			dir := t.TempDir()
			spec := "pipeline:\n name: p\n params: {p: {type: bool, default: true}}\n nodes:\n" +
				"  a: {kind: exec, outputs: {ok: bool}, with: {run: \"true\"}}\n" + fmt.Sprintf(placed[i], read.condition) + "\n"
			if err := os.WriteFile(filepath.Join(dir, "spec.yaml"), []byte(spec), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := compile.Compile(compile.Options{Path: dir, Kinds: all.Registry()})
			if (err == nil) != read.may {
				t.Errorf("%s may read %s: %v, says the manual; the compiler says %v", p.where, read.what, read.may, err)
			}
		}
	}
}
