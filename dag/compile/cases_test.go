package compile

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dagrun.dev/dag/compile/source"
	"dagrun.dev/internal/tree"
)

// TestLanguagesAgree (D-3): the same pipeline as CUE, YAML and JSON is the same tree.
func TestLanguagesAgree(t *testing.T) {
	t.Chdir(t.TempDir())
	s := testSchema(t)
	g := &generator{r: rand.New(rand.NewPCG(7, 0))}
	agreed := 0
	for agreed < 40 {
		v := g.value(s.Rule("Pipeline"), 0)
		if !s.Rule("Pipeline").Valid(v) || v.Get("use") != nil { // CUE has another word for that
			continue
		}
		var indented bytes.Buffer
		must(t, json.Indent(&indented, v.AppendJSON(nil), "", "  "))
		text := indented.String()
		must(t, writeFile("p.json", []byte(text)))
		must(t, writeFile("p.yaml", []byte("pipeline:\n  "+strings.ReplaceAll(text, "\n", "\n  ")+"\n")))
		must(t, writeFile("p.cue", []byte("import \"dagrun.dev/spec\"\n\npipeline: spec.#Pipeline & "+text+"\n")))
		var trees []*tree.Value
		for _, path := range []string{"p.json", "p.yaml", "p.cue"} {
			v, _, err := load(s, path, source.Options{})
			if err != nil {
				t.Fatalf("%s: %v\n%s", path, err, text)
			}
			trees = append(trees, v)
		}
		if !tree.Equal(trees[0], trees[1]) || !tree.Equal(trees[0], trees[2]) {
			t.Fatalf("%s\n%s\n%s", trees[0].AppendJSON(nil), trees[1].AppendJSON(nil), trees[2].AppendJSON(nil))
		}
		places(t, trees[0], trees[2], "", 3)
		agreed++
	}
}

// places holds that CUE gives every value written out the line it stands in.
func places(t *testing.T, j, c *tree.Value, path string, ahead int) {
	for i := range j.Items {
		places(t, j.Items[i], c.Items[i], tree.At(path, i), ahead)
	}
	for _, f := range j.Fields {
		x := c.Get(f.Name)
		if x != nil && f.Pos != j.Pos { // not a default, which has the place of its map
			places(t, f.Value, x, tree.Join(path, f.Name), ahead)
		}
	}
	if int(j.Pos.Line)+ahead-1 != int(c.Pos.Line) {
		t.Errorf("%s: %s in JSON, %s in CUE", path, j.Pos, c.Pos)
	}
}

// FuzzLoadCUE: arbitrary text as a CUE file is a tree or diagnostics, and never panics. What
// can take long without bound (comprehensions, builtins, long files) is not evaluated.
func FuzzLoadCUE(f *testing.F) {
	for _, s := range []string{
		"pipeline: {name: \"a\"}", "name: \"a\"\nnodes: x: kind: \"exec\"", "pipeline: {name: x}\nx: \"y\"", "a: [...a]", "{}", "#a: 1\n_b: #a",
		"pipeline: {name: \"a\" | \"b\", nodes: [string]: {kind: \"exec\"}}", "a: b: c: \"\\(d)\"\nd: 1", "x: {y: x}", "import \"dagrun.dev/spec\"\nspec.#Pipeline",
	} {
		f.Add(s)
	}
	s := testSchema(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 300 || strings.Contains(src, "for") || strings.Contains(src, "(") || strings.Contains(src, "*") {
			return
		}
		path := filepath.Join(dir, "p.cue")
		must(t, os.WriteFile(path, []byte(src), 0o600))
		v, _, err := load(s, path, source.Options{})
		if ds, ok := err.(tree.Diagnostics); err != nil && (!ok || len(ds) == 0) {
			t.Fatalf("%q: %v is no diagnostic", src, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n\n") {
			t.Fatalf("%q: %s", src, err)
		}
		if err == nil && !json.Valid(v.AppendJSON(nil)) {
			t.Fatalf("%q became %s", src, v.AppendJSON(nil))
		}
	})
}
