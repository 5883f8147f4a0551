package compile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"dagrun.dev/internal/tree"
)

// FuzzCompile: whatever a YAML specification says, the answer is a plan with a digest or
// mistakes on one line each, never a panic.
func FuzzCompile(f *testing.F) {
	files, _ := filepath.Glob("testdata/plan/*.txtar")
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if m := member(a, "spec.yaml"); m != nil {
			f.Add(string(m.Data))
		}
	}
	f.Add(outlineSpec)
	f.Add(carouselSpec)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, spec string) {
		if len(spec) > 4000 {
			return
		}
		path := filepath.Join(dir, "spec.yaml")
		if err := os.WriteFile(path, []byte(spec), 0o644); err != nil {
			t.Fatal(err)
		}
		res, err := compileIn(dir, "spec.yaml")
		if err != nil {
			var ds tree.Diagnostics
			if !errors.As(err, &ds) {
				t.Fatalf("no diagnostics: %v", err)
			}
			for _, d := range ds {
				if strings.ContainsAny(d.Error(), "\n\x00") {
					t.Fatalf("a mistake on several lines: %q", d.Error())
				}
			}
			return
		}
		if res.Plan.Digest() == "" {
			t.Fatal("a plan without a digest")
		}
	})
}
