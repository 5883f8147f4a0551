package executor

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/regular"
)

// inboxDir is the folder, in the run's own, through which other processes reach the one that
// holds the run. A request is a file; its reply is a file beside it.
const inboxDir = dag.OwnInbox

// mostRequest bounds a request and a reply, in bytes.
const mostRequest = 1 << 20

// How often the folder is looked at, and how long a request waits for its reply.
const (
	inboxEvery = 200 * time.Millisecond
	inboxWait  = 15 * time.Second
)

// A message is a Request as a file. A plan is too big for it, and lies in the store of the run.
type message struct {
	Request
	Plan     string                   `json:"plan,omitempty"` // digest
	SpecDir  string                   `json:"spec_dir,omitempty"`
	Selected machine.PartSelectedBody `json:"selected,omitzero"`
}

// A reply is what came of a request; no error is success.
type reply struct {
	Error string `json:"error,omitempty"`
	Taken *Taken `json:"taken,omitempty"` // of a plan
}

// An Inbox takes requests of other processes for the run in a directory.
type Inbox struct {
	output   string // directory
	dir      string
	requests chan Request
	stop     chan struct{}
	done     chan struct{}
}

// OpenInbox begins to take requests for the run in an output directory, whose lock the caller
// holds. Requests that an earlier process did not take are removed: those who asked were told.
func OpenInbox(output string) (*Inbox, error) {
	in := &Inbox{
		output: output, dir: filepath.Join(output, run.Dir, inboxDir), requests: make(chan Request),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err := os.RemoveAll(in.dir); err != nil {
		return nil, err
	}
	go in.watch()
	return in, nil
}

// Requests returns the channel of what is asked.
func (in *Inbox) Requests() <-chan Request { return in.requests }

// Close takes no more requests. Once the run is let go, those who ask find it free. Replies stay for who asked, so that
// they are there before that: close the inbox first, then the run.
func (in *Inbox) Close() {
	close(in.stop)
	<-in.done
}

var errEnded = errors.New("the run has just ended or paused")

func (in *Inbox) watch() {
	defer close(in.done)
	t := time.NewTicker(inboxEvery)
	defer t.Stop()
	for {
		select {
		case <-in.stop:
			return
		case <-t.C:
		}
		entries, err := os.ReadDir(in.dir)
		if err != nil {
			continue // usually there is none
		}
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && !in.take(name) {
				return
			}
		}
	}
}

// take hands one request to the host and files the reply; false when the inbox was closed.
func (in *Inbox) take(name string) bool {
	file := filepath.Join(in.dir, name+".json")
	data, err := regular.Read(file, mostRequest)
	if err != nil {
		return true
	}
	os.Remove(file)
	var m message
	if err = json.Unmarshal(data, &m); err == nil && m.Plan != "" {
		m.Taken = new(Taken)
		m.Submit, err = m.submission(in.output)
	}
	if err == nil {
		err = in.Put(context.Background(), m.Request)
	}
	if errors.Is(err, errEnded) {
		return false
	}
	r := reply{Taken: m.Taken}
	if err != nil {
		r.Error = err.Error()
	}
	data, _ = json.Marshal(r) // texts and numbers cannot fail
	_ = writeWhole(filepath.Join(in.dir, name+".reply"), data)
	return true
}

// Put hands a request to the host and waits for the outcome: until ctx ends, or the inbox is closed because the host
// has ended over it. The request's Reply is its own.
func (in *Inbox) Put(ctx context.Context, r Request) error {
	result := make(chan error, 1)
	r.Reply = result
	select {
	case in.requests <- r:
	case <-ctx.Done():
		return ctx.Err()
	case <-in.stop:
		return errEnded
	}
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-in.stop:
	}
	select { // the host has ended: what it said of the request it said before
	case err := <-result:
		return err
	default:
		return errEnded
	}
}

// ErrNoAnswer says that the process that holds a run did not take a request, or holds it no more.
var ErrNoAnswer = errors.New("the process that holds the run does not answer")

// Ask sends a request to the process that holds the run in an output directory and waits for
// its reply. held reports whether it still does. A plan is handed over by Submit.
func Ask(output string, r Request, held func() bool) error {
	_, err := ask(output, message{Request: r}, held)
	return err
}

// ask files a request and waits for the reply, as long as the process holds the run.
func ask(output string, m message, held func() bool) (reply, error) {
	dir := filepath.Join(output, run.Dir, inboxDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return reply{}, err
	}
	name := filepath.Join(dir, rand.Text())
	data, err := json.Marshal(m)
	if err != nil {
		return reply{}, err
	}
	if err := writeWhole(name+".json", data); err != nil {
		return reply{}, err
	}
	for deadline, holds := time.Now().Add(inboxWait), true; holds && time.Now().Before(deadline); {
		time.Sleep(inboxEvery / 4)
		holds = held() // before the last look: who lets the run go has replied before that
		data, err := regular.Read(name+".reply", mostRequest)
		if err != nil {
			continue
		}
		os.Remove(name + ".reply")
		var back reply
		if err = json.Unmarshal(data, &back); err == nil && back.Error != "" {
			err = errors.New(back.Error)
		}
		return back, err
	}
	os.Remove(name + ".json")
	return reply{}, ErrNoAnswer
}

// writeWhole writes a file that nobody sees half written.
func writeWhole(name string, data []byte) error {
	if err := os.WriteFile(name+".tmp", data, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}
