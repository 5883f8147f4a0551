// Package changes tells that files below some folders have changed, and of those only the last: whoever is told looks
// again. Nothing is lost: where the system drops notices, or cannot watch all folders, that counts as a change.
package changes

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Options say what is watched.
type Options struct {
	Roots []string               // absolute folders; those that do not exist yet are found when their parents are watched
	Skip  func(path string) bool // folders and files that do not count, with all that is below; nil skips none
	// Poll is how often Changed fires where the system cannot watch; 0 = 10 seconds.
	Poll time.Duration
}

// A Watcher watches until Close. Its channel may be read from any goroutine.
type Watcher struct {
	o      Options
	notify *fsnotify.Watcher // nil: the system cannot watch
	change chan struct{}
	last   atomic.Pointer[string]
	blind  error // why not all is watched; nil: all is
	done   chan struct{}
	ended  chan struct{}
}

// Watch begins. What happens after it has returned is told. The error of a system that cannot watch is told by Blind,
// and changes are supposed every so often then.
func Watch(o Options) *Watcher {
	if o.Poll == 0 {
		o.Poll = 10 * time.Second
	}
	w := &Watcher{o: o, change: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	w.notify, w.blind = fsnotify.NewWatcher()
	for _, root := range o.Roots {
		w.blind = cmp.Or(w.blind, w.add(root))
	}
	go w.loop()
	return w
}

// Changed fires when something may have changed since it fired last.
func (w *Watcher) Changed() <-chan struct{} { return w.change }

// Last is the path that changed last, for a message; empty where none is known.
func (w *Watcher) Last() string {
	if path := w.last.Load(); path != nil {
		return *path
	}
	return ""
}

// Blind says why not all folders are watched when Watch returned; nil: all are.
func (w *Watcher) Blind() error {
	if errors.Is(w.blind, syscall.ENOSPC) || errors.Is(w.blind, syscall.EMFILE) {
		return fmt.Errorf("%w (the system watches only so many: sysctl fs.inotify.max_user_watches, max_user_instances)",
			w.blind)
	}
	return w.blind
}

// Close ends it. It may be called once.
func (w *Watcher) Close() error {
	close(w.done)
	<-w.ended
	if w.notify == nil {
		return nil
	}
	return w.notify.Close()
}

func (w *Watcher) loop() {
	defer close(w.ended)
	var events chan fsnotify.Event
	var faults chan error
	if w.notify != nil {
		events, faults = w.notify.Events, w.notify.Errors
	}
	poll := time.NewTicker(w.o.Poll)
	defer poll.Stop()
	if w.blind == nil {
		poll.Stop()
	}
	for {
		select {
		case e := <-events:
			if e.Op == fsnotify.Chmod || w.skips(e.Name) {
				continue
			}
			if e.Has(fsnotify.Create) {
				if err := w.add(e.Name); err != nil {
					poll.Reset(w.o.Poll) // from now on
				}
			}
			w.last.Store(&e.Name)
			w.fire()
		case <-faults: // notices were dropped, or something cannot be watched any more
			w.fire()
		case <-poll.C:
			w.fire()
		case <-w.done:
			return
		}
	}
}

func (w *Watcher) fire() {
	select {
	case w.change <- struct{}{}:
	default: // it has not been read since
	}
}

func (w *Watcher) skips(path string) bool { return w.o.Skip != nil && w.o.Skip(path) }

// add watches a folder and all folders below it; what is no folder is watched with its own.
func (w *Watcher) add(root string) (failed error) {
	if w.notify == nil {
		return nil
	}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || !d.IsDir():
			return nil // it has gone again, or cannot be read
		case w.skips(path):
			return fs.SkipDir
		}
		if err := w.notify.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = err
			return fs.SkipAll
		}
		return nil
	})
	return failed
}
