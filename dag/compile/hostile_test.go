package compile

import (
	"fmt"
	"strings"
	"testing"

	"dagrun.dev/dag/compile/source"
)

// TestManyKeys: a wide map is read in time proportional to its size.
func TestManyKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	keys := numbered(50_000, "  n%d: {kind: exec, with: {run: x}}\n")
	must(t, writeFile("p.yaml", []byte("name: demo\nnodes:\n"+keys)))
	must(t, writeFile("twice.yaml", []byte("name: demo\nnodes:\n"+keys+"  n0: {kind: exec}\n")))
	s := testSchema(t)
	v, _, err := load(s, "p.yaml", source.Options{})
	if err != nil || len(v.Get("nodes").Fields) != 50_000 {
		t.Fatal(err)
	}
	if _, _, err := load(s, "twice.yaml", source.Options{}); err == nil || err.Error() != "twice.yaml:50003:3: nodes.n0: duplicate key; first set at twice.yaml:3:3" {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestMistakesWithoutNumber: of a mistake that a generated specification repeats, a person sees a
// hundred lines and the number of the others.
func TestMistakesWithoutNumber(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, writeFile("p.yaml", []byte("name: many\nnodes:\n"+numbered(5_000, "  n%d: {kind: exec, timeot: 1m}\n"))))
	_, _, err := load(testSchema(t), "p.yaml", source.Options{})
	lines := strings.Split(fmt.Sprint(err), "\n")
	if len(lines) != mostShown+1 || !strings.HasPrefix(lines[0], "p.yaml:3:") || lines[mostShown] != fmt.Sprintf("and %d more mistakes", 5_000-mostShown) {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// Values that a row of variables doubles each are refused where they pass what one may hold.
func TestDoublingVariables(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, first := range map[string]string{"texts": "'aaaaaaaaaaaaaaaa'", "lists": "[1, 2]", "nested lists": "[1]"} {
		vars := "v0: " + fmt.Sprintf("%q", first)
		for i := range 40 {
			op := fmt.Sprintf("v%d + v%d", i, i)
			if name == "nested lists" {
				op = fmt.Sprintf("[v%d, v%d]", i, i)
			}
			vars += fmt.Sprintf(", v%02d: %q", i+1, op)
		}
		vars = strings.NewReplacer("v01:", "v1:", "v02:", "v2:", "v03:", "v3:", "v04:", "v4:", "v05:", "v5:", "v06:", "v6:", "v07:", "v7:", "v08:", "v8:", "v09:", "v9:").Replace(vars)
		must(t, writeFile("spec.yaml", []byte("pipeline:\n  name: p\n  foreach:\n    - axes: [{as: s, in: 2}]\n      vars: {"+vars+"}\n      id: 'n${s}'\n      node: {kind: sh}\n")))
		_, err := Compile(Options{Path: "spec.yaml", Kinds: planKinds})
		if err == nil || !strings.Contains(err.Error(), "holds more than 1048576 bytes") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
