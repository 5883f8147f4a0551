package compile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// T-4: a mistake in a file of values is one line with its place, whatever the language of the specification.
func TestMistakesInValues(t *testing.T) {
	specs := map[string]string{
		"spec.cue":  "pipeline: {name: \"p\", params: limit: {type: \"number\", default: 3}, nodes: a: {kind: \"exec\", with: run: \"true\"}}\n",
		"spec.yaml": "pipeline: {name: p, params: {limit: {type: number, default: 3}}, nodes: {a: {kind: exec, with: {run: 'true'}}}}\n",
	}
	for values, want := range map[string]string{
		"limits: 4\n":      `no parameter "limits"`,
		"limit: much\n":    "number",
		"[1]\n":            "v.yaml:1:1",
		"limit: [\n":       "v.yaml:",
		"limit: {a: 1}\n":  "v.yaml:1:",
		"a: 1\nb: 2\n":     `no parameter "b"`,
		"limit: 1\nx: y\n": "v.yaml:2:1",
		"\x00":             "v.yaml",
	} {
		for name, text := range specs {
			dir := t.TempDir()
			for file, content := range map[string]string{name: text, "v.yaml": values} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Compile(Options{Path: filepath.Join(dir, name), Values: []string{filepath.Join(dir, "v.yaml")}, Kinds: planKinds})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %q: %v, want %q", name, values, err, want)
			}
		}
	}
}
