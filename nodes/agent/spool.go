package agent

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"

	"dagrun.dev/internal/disk"
	"dagrun.dev/nodes/internal/httpc"
	"dagrun.dev/nodes/internal/proc"
)

// A spooledAnswer is the copy of an answer that outlives this process: a line with its head, then
// its body as it comes. It is made before the request is sent, so that its times tell how long the
// answer took.
type spooledAnswer struct{ f *os.File }

// spooledName is the copy's name in the spool.
const spooledName = "answer"

// An answerHead is the first line of a spooled answer.
type answerHead struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
}

// newSpooled makes the copy's file; without a spool the copy goes nowhere.
func newSpooled(dir string) (spooledAnswer, error) {
	if dir == "" {
		return spooledAnswer{}, nil
	}
	f, err := os.OpenFile(filepath.Join(dir, spooledName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		if err = disk.Allocate(f, proc.SpoolRoom); err != nil {
			_ = f.Close()
		}
	}
	return spooledAnswer{f}, err
}

func (s spooledAnswer) head(a *httpc.Answer) error {
	raw, err := json.Marshal(answerHead{a.Status, a.Header})
	if err == nil {
		_, err = s.Write(append(raw, '\n'))
	}
	return err
}

func (s spooledAnswer) Write(p []byte) (int, error) {
	if s.f == nil {
		return len(p), nil
	}
	return s.f.Write(p)
}

// Close may be called twice.
func (s spooledAnswer) Close() error {
	if s.f != nil {
		_ = s.f.Close()
	}
	return nil
}

// lasted sets the reply's latency to the time from when the spool was made ready to the last
// change of a file in it.
func lasted(r *reply, spool, name string) error {
	begin, err := os.Stat(spool)
	if err != nil {
		return err
	}
	end, err := os.Stat(filepath.Join(spool, name))
	if err != nil {
		return err
	}
	r.Latency = max(0, end.ModTime().Sub(begin.ModTime()))
	return nil
}
