package agent

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"dagrun.dev/internal/disk"
	"dagrun.dev/nodes/internal/httpc"
	"dagrun.dev/nodes/internal/proc"
)

// A sideFile takes what is written as far as the disk does: what comes in is worth more than it. Without a place it
// takes everything.
type sideFile struct {
	name string
	to   io.WriteCloser
	err  error
}

func (f *sideFile) Write(p []byte) (int, error) {
	if f.err == nil && f.to != nil {
		_, f.err = f.to.Write(p)
	}
	return len(p), nil
}

// Close returns the first error. It may be called twice.
func (f *sideFile) Close() error {
	if f.to != nil {
		f.err = errors.Join(f.err, f.to.Close())
		f.to = nil
	}
	return f.err
}

// spooledName is the name in the spool of the copy of an answer that outlives this process: a line with its head, then
// its body as it comes.
const spooledName = "answer"

// An answerHead is the first line of a spooled answer.
type answerHead struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
}

// newSpooled makes the copy's file, before the request is sent, so that its times tell how long the answer took.
// Without a spool the copy goes nowhere.
func newSpooled(dir string) (*sideFile, error) {
	s := &sideFile{name: "the copy for the next process"}
	if dir == "" {
		return s, nil
	}
	f, err := os.OpenFile(filepath.Join(dir, spooledName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	s.to = f
	if err := disk.Allocate(f, proc.SpoolRoom); err != nil {
		_ = f.Close()
		return nil, err
	}
	return s, nil
}

func (f *sideFile) head(a *httpc.Answer) {
	raw, err := json.Marshal(answerHead{a.Status, a.Header})
	_, _ = f.Write(append(raw, '\n'))
	f.err = errors.Join(f.err, err)
}
