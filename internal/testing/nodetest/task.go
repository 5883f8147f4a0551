// Package nodetest makes tasks for tests of kinds of node: a host with folders and a record of
// what the kind did, and nothing else.
package nodetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dagrun.dev/nodes"
)

// A Host records what a kind did with its task.
type Host struct {
	mu sync.Mutex
	// Kept holds the files made by Task.Keep, by name; each call replaces the content.
	Kept map[string]string
	// Facts holds the payloads given to Task.Emit, in order, each with its "type".
	Facts []map[string]any
	// Warned holds the lines of Task.Warn.
	Warned []string
	// Masked holds the values given to Task.Mask, in order.
	Masked []string
	// Beats counts the calls of Task.Beat.
	Beats int

	// Artifacts, Files, Accumulators and Secrets are what the task may read, by name.
	Artifacts, Files, Secrets map[string]string
	Accumulators              map[string][]nodes.Entry
}

// New returns a task with empty folders and its host.
func New(t testing.TB, kind string, with any) (*nodes.Task, *Host) {
	t.Helper()
	h := &Host{Artifacts: map[string]string{}, Files: map[string]string{}, Secrets: map[string]string{},
		Accumulators: map[string][]nodes.Entry{}}
	return h.Task(t, kind, with), h
}

// Task returns a task of the host with empty folders. with is JSON text when it is a string, else
// marshalled.
func (h *Host) Task(t testing.TB, kind string, with any) *nodes.Task {
	t.Helper()
	text, ok := with.(string)
	raw := json.RawMessage(text)
	if !ok {
		var err error
		if raw, err = json.Marshal(with); err != nil {
			t.Fatal(err)
		}
	}
	h.Kept = map[string]string{}
	return &nodes.Task{
		Node: "n", Generation: 1, Attempt: 1, Kind: kind, With: raw, Labels: map[string]string{}, Seed: 1,
		Effect: "idempotent", Grace: time.Second,
		SpecDir: t.TempDir(), Out: t.TempDir(), Scratch: t.TempDir(), Binary: os.Args[0],
		File: h.OpenFile,
		Artifact: func(name string) (io.ReadCloser, error) {
			if list := h.Accumulators[name]; len(list) > 0 {
				return io.NopCloser(strings.NewReader(nodes.Accumulated(name, list))), nil
			}
			return open(h.Artifacts, name)
		},
		Entries: func(name string) ([]nodes.Entry, error) { return h.Accumulators[name], nil },
		Secret: func(name string) (string, error) {
			if v, ok := h.Secrets[name]; ok {
				return v, nil
			}
			return "", nodes.Permanent(nodes.Fail("config", "no secret named "+name))
		},
		Mask: func(value string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.Masked = append(h.Masked, value)
		},
		Keep: func(name string) (io.WriteCloser, error) { return &keeper{host: h, name: name}, nil },
		Emit: h.emit,
		Warn: func(msg string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.Warned = append(h.Warned, msg)
		},
		Beat: func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.Beats++
		},
	}
}

// OpenFile opens one of the host's input files.
func (h *Host) OpenFile(name string) (io.ReadCloser, error) { return open(h.Files, name) }

// Stage returns the content of an artifact that a result stages, failing the test when it is not there.
func Stage(t testing.TB, task *nodes.Task, res *nodes.Result, name string) string {
	t.Helper()
	path, ok := res.Writes[name]
	if !ok {
		t.Fatalf("artifact %s is not among the writes %v", name, res.Writes)
	}
	b, err := os.ReadFile(filepath.Join(task.Out, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Category returns the category of an error, "" for nil and "(no *nodes.Error)" for foreign ones.
func Category(err error) string {
	var e *nodes.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Category
	}
	return "(no *nodes.Error)"
}

// Types returns the types of the emitted facts, in order, with blanks between.
func (h *Host) Types() string {
	var types []string
	for _, f := range h.Facts {
		types = append(types, fmt.Sprint(f["type"]))
	}
	return strings.Join(types, " ")
}

func (h *Host) emit(typ string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	fact := map[string]any{}
	if err := json.Unmarshal(raw, &fact); err != nil {
		return err
	}
	fact["type"] = typ
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Facts = append(h.Facts, fact)
	return nil
}

func open(from map[string]string, name string) (io.ReadCloser, error) {
	content, ok := from[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return io.NopCloser(strings.NewReader(content)), nil
}

type keeper struct {
	bytes.Buffer
	host *Host
	name string
}

func (k *keeper) Close() error {
	k.host.mu.Lock()
	defer k.host.mu.Unlock()
	k.host.Kept[k.name] = k.String()
	return nil
}
