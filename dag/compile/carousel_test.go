package compile

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A carousel declared as data: subsets, rhythm and shifts are parameters.
const carouselSpec = `pipeline:
  name: carousel
  params:
    subsets: {type: list}
    rhythm: {type: list, default: [bA, vA, bA, bB, vB, bB, bC, vC]}
    times: {type: map, default: {A: 0, B: 2, C: 4}}
    over: {type: int, default: 5}
  foreach:
    - axes: [{as: s, in: "${params.subsets}"}, {as: p, in: "${params.rhythm}", key: "string(p.n)"}]
      vars:
        rot: "p.value.substring(1)"
        n: "size(s.value.files)"
        per: "size(params.rhythm)"
        pass: "per * (s.n - 1) + p.n"
      id: "${s.key}/p${p.n}"
      node:
        kind: ask
        needs: "${pass == 1 ? [] : p.first ? [params.subsets[s.index - 1].id + '/p' + string(per)] : [s.key + '/p' + string(p.n - 1)]}"
        with: {list: "${rotate(s.value.files, floor(n * params.times[rot] / params.over))}"}
        labels: {pass: "${pass}", subset: "${s.key}", rotation: "${rot}", role: "${p.value.startsWith('b') ? 'builder' : 'verifier'}"}
`

func carousel(t *testing.T, subsets []int, set ...string) *Result {
	t.Helper()
	dir := t.TempDir()
	type subset struct {
		ID    string   `json:"id"`
		Files []string `json:"files"`
	}
	var all []subset
	for i, n := range subsets {
		s := subset{ID: fmt.Sprintf("S%d", i+1)}
		for f := range n {
			s.Files = append(s.Files, fmt.Sprintf("F%d", f+1))
		}
		all = append(all, s)
	}
	values, _ := json.Marshal(map[string]any{"subsets": all})
	for name, data := range map[string][]byte{"spec.yaml": []byte(carouselSpec), "values.json": values} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	res, err := compileIn(dir, "spec.yaml", append([]string{"@values.json"}, set...)...)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func listOf(t *testing.T, with json.RawMessage) string {
	t.Helper()
	var w struct{ List []string }
	if err := json.Unmarshal(with, &w); err != nil {
		t.Fatal(err)
	}
	return strings.Join(w.List, " ")
}

// C-1: seven subsets of eight passes, 56 in one chain, numbered through.
// C-2: the rhythm of roles and rotations.
func TestCarouselIsOneChain(t *testing.T) {
	res := carousel(t, []int{5, 5, 5, 4, 5, 6, 5})
	if res.Graph.Len() != 56 {
		t.Fatalf("%d nodes, want 56", res.Graph.Len())
	}
	rhythm := []string{"builder A", "verifier A", "builder A", "builder B", "verifier B", "builder B", "builder C", "verifier C"}
	for i := range res.Plan.Nodes {
		n := &res.Plan.Nodes[i]
		subset, pass := i/8+1, i%8+1
		if want := fmt.Sprintf("S%d/p%d", subset, pass); n.ID != want {
			t.Fatalf("node %d is %s, want %s", i, n.ID, want)
		}
		if want := fmt.Sprint(8*(subset-1) + pass); n.Labels["pass"] != want {
			t.Errorf("%s is pass %s, want %s", n.ID, n.Labels["pass"], want)
		}
		if got := n.Labels["role"] + " " + n.Labels["rotation"]; got != rhythm[pass-1] {
			t.Errorf("%s is %s, want %s", n.ID, got, rhythm[pass-1])
		}
		needs := []string{}
		if i > 0 {
			needs = []string{res.Plan.Nodes[i-1].ID}
		}
		if !slices.Equal(append([]string{}, n.Needs...), needs) {
			t.Errorf("%s needs %v, want %v", n.ID, n.Needs, needs)
		}
	}
}

// C-3: B shifts by floor(n*2/5), C by floor(n*4/5): 0, 2, 4 of five files.
func TestCarouselRotatesFiles(t *testing.T) {
	for files, want := range map[int][2]string{
		1: {"F1", "F1"},
		3: {"F2 F3 F1", "F3 F1 F2"},
		4: {"F2 F3 F4 F1", "F4 F1 F2 F3"},
		5: {"F3 F4 F5 F1 F2", "F5 F1 F2 F3 F4"},
		6: {"F3 F4 F5 F6 F1 F2", "F5 F6 F1 F2 F3 F4"},
		7: {"F3 F4 F5 F6 F7 F1 F2", "F6 F7 F1 F2 F3 F4 F5"},
	} {
		res := carousel(t, []int{files})
		base := listOf(t, res.Plan.Nodes[0].With)
		if strings.Count(base, "F") != files || !strings.HasPrefix(base, "F1") {
			t.Errorf("%d files: rotation A is %s", files, base)
		}
		if got := listOf(t, res.Plan.Nodes[3].With); got != want[0] {
			t.Errorf("%d files: rotation B is %s, want %s", files, got, want[0])
		}
		if got := listOf(t, res.Plan.Nodes[7].With); got != want[1] {
			t.Errorf("%d files: rotation C is %s, want %s", files, got, want[1])
		}
	}
}

// D-2: the layout is data; another one needs no other program.
func TestCarouselLayoutIsData(t *testing.T) {
	five := carousel(t, []int{5, 5, 5, 5, 5})
	if five.Graph.Len() != 40 {
		t.Errorf("five subsets make %d passes, want 40", five.Graph.Len())
	}
	short := carousel(t, []int{5, 5}, `rhythm=["bA","vB"]`)
	if got := ids(short); got != "S1/p1 S1/p2 S2/p1 S2/p2" {
		t.Errorf("a rhythm of two makes %s", got)
	}
	if got := short.Plan.Nodes[2].Needs; !slices.Equal(got, []string{"S1/p2"}) {
		t.Errorf("the chain of a short rhythm goes on from %v", got)
	}
	thirds := carousel(t, []int{5}, "over=3", `times={"A":0,"B":1,"C":2}`)
	if got := listOf(t, thirds.Plan.Nodes[3].With); got != "F2 F3 F4 F5 F1" {
		t.Errorf("another shift makes %s", got)
	}
	if five.Plan.Digest() == carousel(t, []int{5, 5, 5, 5, 4}).Plan.Digest() {
		t.Error("another layout has the same digest")
	}
}

func ids(res *Result) string {
	var out []string
	for i := range res.Plan.Nodes {
		out = append(out, res.Plan.Nodes[i].ID)
	}
	return strings.Join(out, " ")
}
