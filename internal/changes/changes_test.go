package changes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// told waits for a notice, and for those that are still to come.
func told(t *testing.T, w *Watcher, what string) {
	t.Helper()
	select {
	case <-w.Changed():
	case <-time.After(5 * time.Minute):
		t.Fatal("nothing was told of: " + what)
	}
	for {
		select {
		case <-w.Changed():
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Every kind of change is told, in folders that come later too, and what is skipped is not.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/b/file"), "1")
	w := Watch(Options{Roots: []string{dir}, Skip: func(p string) bool { return strings.Contains(p, "/build") }})
	defer w.Close()
	if err := w.Blind(); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"a write", func() error { return os.WriteFile(filepath.Join(dir, "a/b/file"), []byte("2"), 0o600) }},
		{"a rename", func() error { return os.Rename(filepath.Join(dir, "a/b/file"), filepath.Join(dir, "a/file")) }},
		{"a new tree", func() error { write(t, filepath.Join(dir, "n/e/w/file"), "1"); return nil }},
		{"a write in it", func() error { return os.WriteFile(filepath.Join(dir, "n/e/w/file"), []byte("2"), 0o600) }},
		{"a removal", func() error { return os.RemoveAll(filepath.Join(dir, "n")) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatal(err)
		}
		told(t, w, s.what)
	}
	last := filepath.Join(dir, "last") // behind it nothing comes late of what was done before
	write(t, last, "1")
	for w.Last() != last {
		told(t, w, "a last write")
	}
	write(t, filepath.Join(dir, "build/x/file"), "1")
	if err := os.Chmod(filepath.Join(dir, "a/file"), 0o400); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond)
	if w.Last() != last {
		t.Errorf("what is skipped, or only has other permissions, was told: %s", w.Last())
	}
}

// A flood is told at least once after its last change, however many notices the system drops.
func TestAFlood(t *testing.T) {
	dir := t.TempDir()
	w := Watch(Options{Roots: []string{dir}})
	defer w.Close()
	for i := range 10000 { // more than the queue of the system holds
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i%100)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	told(t, w, "a flood")
	write(t, filepath.Join(dir, "last"), "1")
	told(t, w, "a change behind a flood")
}

// Where the system cannot watch, changes are supposed now and then, and the reason is told.
func TestBlind(t *testing.T) {
	w := &Watcher{o: Options{Poll: time.Millisecond}, change: make(chan struct{}, 1), done: make(chan struct{}),
		ended: make(chan struct{}), blind: os.ErrPermission}
	go w.loop()
	told2 := func() {
		select {
		case <-w.Changed():
		case <-time.After(5 * time.Minute):
			t.Fatal("nothing was told")
		}
	}
	told2()
	told2()
	if w.Blind() == nil {
		t.Error("no reason")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
