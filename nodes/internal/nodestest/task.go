// Package nodestest gives tests a Task whose world is a few maps. It is for tests only.
package nodestest

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"

	"dagrun.dev/nodes"
)

// A World is everything an attempt may see, and what it said.
type World struct {
	Files     map[string]string
	Artifacts map[string]string
	Entries   map[string][]nodes.Entry
	Log       []string // "LEVEL text"
}

// Task returns a task of a kind with these settings in the world. Files are staged in a
// folder of the test.
func (w *World) Task(t testing.TB, kind, with string) *nodes.Task {
	t.Helper()
	return &nodes.Task{
		Node: "n", Kind: kind, Attempt: 1, Generation: 1,
		With:     json.RawMessage(with),
		Out:      t.TempDir(),
		File:     w.open(w.Files),
		Artifact: w.open(w.Artifacts),
		Entries:  func(name string) ([]nodes.Entry, error) { return w.Entries[name], nil },
		Log:      func(level, msg string) { w.Log = append(w.Log, level+" "+msg) },
	}
}

// OpenFile opens one of the world's input files.
func (w *World) OpenFile(name string) (io.ReadCloser, error) { return w.open(w.Files)(name) }

func (w *World) open(m map[string]string) func(string) (io.ReadCloser, error) {
	return func(name string) (io.ReadCloser, error) {
		text, ok := m[name]
		if !ok {
			return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
		}
		return io.NopCloser(strings.NewReader(text)), nil
	}
}
