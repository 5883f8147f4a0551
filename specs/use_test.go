package specs_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/tools/txtar"
)

// D-5: a specification in YAML or JSON that uses templates of the vocabulary is the plan that CUE makes of them.
func TestTemplatesInEveryLanguage(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("testdata/use.txtar")
	if err != nil {
		t.Fatal(err)
	}
	first := ""
	for _, f := range a.Files {
		name := filepath.Join(t.TempDir(), f.Name)
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		p := compiled(t, name).Plan
		if first == "" {
			if first = p.Digest(); node(t, p, "stage-1/complete").Kind != "checkpoint" || node(t, p, "b").OnFail != "compensate" {
				t.Error("the templates have made nothing")
			}
		}
		if got := p.Digest(); got != first {
			t.Errorf("the plan of %s is another one", f.Name)
		}
	}
}
