package agent

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes/internal/httpc"
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

func (s spooledAnswer) Close() {
	if s.f != nil {
		_ = s.f.Close()
	}
}

// recall reads an answer again that was being read when the process died.
func (a httpAPI) recall(q *question) (*reply, error) {
	if err := a.authorize(q, &httpc.Request{Header: http.Header{}}); err != nil { // so that the key is masked
		return nil, err
	}
	f, err := regular.Open(filepath.Join(q.task.Spool, spooledName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from := bufio.NewReader(f)
	line, err := from.ReadBytes('\n')
	if err != nil {
		return nil, err // no answer had begun
	}
	var head answerHead
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, err
	}
	answer := httpc.Reread(head.Status, head.Header, from)
	defer answer.Close()
	r := &reply{Status: head.Status}
	if a.read(q, answer, answer, r); !r.Ended {
		return r, nil
	}
	err = q.task.KeepFrom("transcript.txt", io.NewSectionReader(f, int64(len(line)), 1<<62))
	return r, errors.Join(err, lasted(r, q.task.Spool, spooledName))
}
