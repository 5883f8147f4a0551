package compile

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/dag/compile/source"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

// TestDiagnostics loads every specification p*.cue, p*.yaml and p*.json of the archives in
// testdata/diagnostics and compares what is said with the file of that name below want/.
func TestDiagnostics(t *testing.T) {
	archives, _ := filepath.Glob("testdata/diagnostics/*.txtar")
	if len(archives) == 0 {
		t.Fatal("no archives")
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) { golden(t, path) })
	}
}

func golden(t *testing.T, path string) {
	ar, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	abs, _ := filepath.Abs(path)
	t.Chdir(t.TempDir())
	want := map[string]string{}
	var input []txtar.File
	for _, f := range ar.Files {
		if name, ok := strings.CutPrefix(f.Name, "want/"); ok {
			want[name] = string(f.Data)
			continue
		}
		input = append(input, f)
		if err := writeFile(f.Name, f.Data); err != nil {
			t.Fatal(err)
		}
	}
	ar.Files = input
	s := testSchema(t)
	for _, f := range input {
		if strings.HasPrefix(f.Name, "p") && !strings.Contains(f.Name, "/") {
			got := said(s, f.Name)
			ar.Files = append(ar.Files, txtar.File{Name: "want/" + f.Name, Data: []byte(got)})
			if got != want[f.Name] && !*update {
				t.Errorf("%s: got\n%swant\n%s", f.Name, got, want[f.Name])
			}
		}
	}
	if *update {
		if err := os.WriteFile(abs, txtar.Format(ar), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// said loads a specification and prints what a user sees: mistakes, or warnings and the tree.
func said(s *schema.Schema, path string) string {
	v, src, err := load(s, path, source.Options{})
	if err != nil {
		return err.Error() + "\n"
	}
	out := ""
	if len(src.Warnings) > 0 {
		out = "warning: " + src.Warnings.Error() + "\n"
	}
	return out + string(v.AppendJSON(nil)) + "\n"
}
