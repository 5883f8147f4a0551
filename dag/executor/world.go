package executor

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
)

// A flight is the World of its attempt: the run's directory, and the loop for what only the owner of the run
// may do.
var _ attempt.World = (*flight)(nil)

func (f *flight) Open(digest string) (io.ReadCloser, error)             { return f.host.run.OpenObject(digest) }
func (f *flight) Store(r io.Reader) (digest string, n int64, err error) { return f.host.run.Store(r) }

func (f *flight) Out() string     { return f.slot.out }
func (f *flight) Scratch() string { return f.slot.scratch }
func (f *flight) Untouched() bool { return len(f.slot.dirs) > 0 && isUntouched(f.slot.dirs[0]) }

func (f *flight) Keep(name string) (io.WriteCloser, error) { return f.host.run.Keep(f.id(), name) }

// roomFile holds room on the disk for what an attempt that costs money leaves; it lies in its spool.
const (
	roomFile = "room"
	roomSize = 4 << 20 // bytes
)

// Yield removes the file that holds room.
func (f *flight) Yield() bool {
	dir := f.host.run.Spooled(f.id())
	return dir != "" && os.Remove(filepath.Join(dir, roomFile)) == nil
}

func (f *flight) TookEffect(how string) error {
	id := f.id()
	return f.Emit(&machine.TookEffectBody{Node: id.Node, Generation: id.Generation, Attempt: id.Attempt, How: how})
}

func (f *flight) Now() time.Time { return f.host.clock.now() }

func (f *flight) Warn(msg string) {
	if f.host.o.Warn != nil {
		f.host.o.Warn(f.job.Node.ID, msg)
	}
}

// Find is asked for names that the node does not declare.
func (f *flight) Find(name string) (read attempt.Reading, err error) {
	err = f.host.onLoop(func() { read = f.host.run.Find(f.job.Node.ID, name) })
	return read, err
}

func (f *flight) Emit(b machine.Body) (err error) {
	mark := run.Mark{}
	gone := f.host.onLoop(func() {
		err = f.host.record(f.host.clock.now(), b)
		mark = f.host.mark
	})
	if err = errors.Join(gone, err); err != nil {
		return err
	}
	return f.host.run.Wait(mark)
}

func (f *flight) Again(category string) (follows bool) {
	if f.ctx.Err() != nil {
		return false // it is being stopped
	}
	_ = f.host.onLoop(func() { // a host that has stopped makes no further attempt
		end := f.host.settled(f, attempt.Failure(category, ""))
		follows = !end.Final && !end.Stop
	})
	return follows
}

func (f *flight) Secret(name string) (string, error) { return f.host.secret(name) }

func (h *host) secret(name string) (string, error) {
	if h.o.Secret == nil {
		return "", nodes.Permanent(nodes.Fail("config", "no secret named "+name))
	}
	v, err := h.o.Secret(name)
	if err == nil {
		h.worker.Mask.Add(v)
	}
	return v, err
}

// knowSecrets makes the secrets that a plan names known before anything is kept: one node may show what another was
// given. One that is not set is the failure of the node that asks for it.
func (h *host) knowSecrets() {
	for i := range h.run.Graph().Plan.Nodes {
		for _, name := range h.run.Graph().Plan.Nodes[i].Secrets {
			_, _ = h.secret(name)
		}
	}
	for _, to := range h.run.Graph().Plan.Notify {
		for _, name := range to.Secrets {
			_, _ = h.secret(name)
		}
	}
}

// spoolFile is what an attempt's spool says of the attempt beside what comes in.
const spoolFile = "attempt.json"

// mostSpoolFile bounds that file, in bytes: settings as they were resolved.
const mostSpoolFile = 1 << 30

// A spooled is what the next host cannot know of an attempt.
type spooled struct {
	With    json.RawMessage `json:"with"` // resolved
	Scratch string          `json:"scratch"`
}

// Spool makes the folder, and finds it for a Rescue.
func (f *flight) Spool() (string, error) {
	if f.job.Purpose == attempt.Rescue {
		return f.host.run.Spooled(f.id()), nil
	}
	dir, err := f.host.run.Spool(f.id())
	if err != nil {
		return "", err
	}
	f.spooled.Store(true)
	room, err := os.OpenFile(filepath.Join(dir, roomFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	if err := errors.Join(disk.Allocate(room, roomSize), room.Close()); err != nil {
		return "", err
	}
	raw, err := json.Marshal(spooled{f.job.With, f.slot.scratch})
	if err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, spoolFile), raw, 0o600)
}

// openSpool takes over what a dead process wrote of an attempt; false when there is nothing.
func (f *flight) openSpool() bool {
	dir := f.host.run.Spooled(f.id())
	if dir == "" {
		return false
	}
	raw, err := regular.Read(filepath.Join(dir, spoolFile), mostSpoolFile)
	if err != nil {
		return false
	}
	var s spooled
	if json.Unmarshal(raw, &s) != nil {
		return false
	}
	f.job.With, f.slot.scratch = s.With, s.Scratch
	return true
}
