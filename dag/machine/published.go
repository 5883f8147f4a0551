package machine

import (
	"fmt"
	"time"

	"dagrun.dev/dag"
)

// A PublishedView is a path beside the specification, and what was last put there.
type PublishedView struct {
	PublishedFile `json:"file"`
	Node          string         `json:"node"`
	Generation    int            `json:"generation"`
	Attempt       int            `json:"attempt"`
	Time          time.Time      `json:"time"`
	Before        string         `json:"before_sha256,omitempty"`  // what stood there before the run put anything there
	Counted       string         `json:"counted_sha256,omitempty"` // what the last attempt that counts put there
	Standing      PublishedState `json:"standing"`
}

// PublishedState says what becomes of a file.
//
//	        attempt completed
//	open -----------------------> done <---- put ---- due
//	  |                            | reverted
//	  `-- lost or failed --> void <'--- back ---> gone
type PublishedState string

const (
	PublishedOpen PublishedState = "open" // its attempt is under way
	PublishedDone PublishedState = "done" // it counts
	PublishedVoid PublishedState = "void" // its attempt does not count: the file is to go back
	PublishedGone PublishedState = "gone" // it was put back
	PublishedDue  PublishedState = "due"  // its attempt counts after all: the file is to be put there
)

// Published returns what was put beside the specification, by path, in the order of the first event about each.
func (s *State) Published() []PublishedView { return s.observed.Published }

// Stands is the digest of what is to stand at the path, empty for no file.
func (v *PublishedView) Stands() string {
	if v.Standing == PublishedDone || v.Standing == PublishedDue {
		return v.Digest
	}
	return v.Previous
}

// takeBack notes that files are to be as they were at a checkpoint.
func (s *State) takeBack(list []PublishedFile) {
	for _, f := range list {
		if f.Left {
			continue
		}
		v := s.publishedAt(f.Path)
		v.PublishedFile, v.Standing, v.Counted = f, PublishedVoid, f.Previous
		if v.Previous == v.Before { // it is no work of the run
			v.Counted = ""
		}
	}
}

func (s *State) onPublished(e Event, b *PublishedBody) error {
	if b.Settled != "" {
		return s.settleFiles(b)
	}
	if _, err := s.underWay(b.Node, b.Generation, b.Attempt); err != nil {
		return err
	}
	for _, f := range b.Files {
		if f.Left {
			continue
		}
		v := PublishedView{PublishedFile: f, Node: b.Node, Generation: b.Generation, Attempt: b.Attempt, Time: e.Time,
			Before: f.Previous, Standing: PublishedOpen}
		if old := s.publishedAt(f.Path); old != nil {
			v.Before, v.Counted = old.Before, old.Counted
		}
		same := func(o *PublishedView) bool { return o.Path == f.Path }
		s.observed.Published = put(s.observed.Published, v, same)
	}
	return nil
}

func (s *State) publishedAt(path string) *PublishedView {
	for k := range s.observed.Published {
		if v := &s.observed.Published[k]; v.Path == path {
			return v
		}
	}
	return nil
}

// settleFiles notes what was done about files of an attempt that had ended.
func (s *State) settleFiles(b *PublishedBody) error {
	want, then := PublishedVoid, PublishedGone
	if b.Settled == SettledPut {
		want, then = PublishedDue, PublishedDone
	}
	for _, f := range b.Files {
		v := s.publishedAt(f.Path)
		if v == nil || v.Standing != want {
			return fmt.Errorf("nothing was to be done about %s", f.Path)
		}
	}
	for _, f := range b.Files {
		v := s.publishedAt(f.Path)
		if v.Standing = then; then == PublishedDone {
			v.Counted = v.Digest
		}
	}
	return nil
}

// publishedBy notes whether the files of an attempt count, now that it has ended.
func (s *State) publishedBy(b *FinishedBody) {
	for k := range s.observed.Published {
		v := &s.observed.Published[k]
		if v.Node != b.Node || v.Generation != b.Generation || v.Attempt != b.Attempt {
			continue
		}
		switch completed := b.Status == dag.StatusCompleted; {
		case v.Standing == PublishedOpen && completed:
			v.Standing, v.Counted = PublishedDone, v.Digest
		case v.Standing == PublishedOpen:
			v.Standing = PublishedVoid
		case completed && (v.Standing == PublishedVoid || v.Standing == PublishedGone): // it was lost, and did its work
			v.Standing = PublishedDue
		}
	}
}
