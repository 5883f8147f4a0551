// Package examples holds the example pipelines as files: `dagrun init --template` copies some of them. Each is run by
// the tests as it stands.
package examples

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed hello data panel deploy fresh cue
var files embed.FS

// A Template is an example to begin a pipeline of one's own with.
type Template struct {
	Name   string `json:"name"`
	Does   string `json:"does"` // what the pipeline does, in a line
	folder string
}

// Templates lists them, the simplest first.
func Templates() []Template {
	return []Template{
		{"hello", "two commands, a file between them", "hello"},
		{"data", "twenty files, a node for each, a report of all; an edited file runs again what it touches", "data"},
		{"agents", "authors and reviewers, a bounded loop, a budget; runs offline with a simulated agent", "panel"},
		{"deploy", "an approval that can say no, undo when it fails, a breaker before a flaky service", "deploy"},
		{"fresh", "a folder of documents and their summaries, kept up to date by small steps: dagrun watch", "fresh"},
		{"cue", "a pipeline in CUE: a definition and a loop in the place of repetition", "cue"},
	}
}

// Files returns the content of a template's files by their paths: all but those of its test.
func (t Template) Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(files, t.folder, func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(path, t.folder+"/")
		if err == nil && !d.IsDir() && name != "test.txtar" {
			out[name], err = files.ReadFile(path)
		}
		return err
	})
	return out, err
}
