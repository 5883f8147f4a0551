package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/nodes"
)

// Who is to be told of events is told beside the run, of one after the other: nothing waits for it but the end of Run,
// and that not for long. What they were not told of by then, or by a process that was killed, the next one tells.
const (
	noticeTries = 5
	noticeWait  = 10 * time.Second // at the end of Run
	noticeGrace = time.Second      // from the polite signal to the hard one
)

// noticeDelay is waited after the first try that failed; it doubles. A variable for tests.
var noticeDelay = time.Second

// A told is the message, in JSON.
type told struct {
	Kind     string          `json:"kind"` // notice
	On       string          `json:"on"`
	Pipeline string          `json:"pipeline"`
	RunID    string          `json:"run_id"`
	Dir      string          `json:"dir"`
	Stage    string          `json:"stage,omitempty"`
	Seq      int64           `json:"seq"`
	Time     time.Time       `json:"time"`
	Type     machine.Type    `json:"type"`
	Event    json.RawMessage `json:"event"`
	Missed   int             `json:"missed,omitempty"` // events before it that nobody is told any more
}

// tell begins to tell whoever is not being told of something already.
func (h *host) tell() {
	plan := h.run.Graph().Plan
	for _, n := range h.state().Notices() {
		if h.telling[n.To] {
			continue
		}
		if h.telling == nil {
			h.telling, h.unreached = map[int]bool{}, map[int]bool{}
		}
		h.telling[n.To] = true
		to, tries := plan.Notify[n.To], noticeTries
		if h.unreached[n.To] { // what comes after something in vain is tried once
			tries = 1
		}
		v := h.state().Run()
		message, err := json.Marshal(told{Kind: "notice", On: n.On, Pipeline: v.Name, RunID: v.ID, Dir: h.run.Output(),
			Stage: n.Stage, Seq: n.Of, Time: n.Time, Type: n.Type, Event: n.Payload, Missed: n.Missed})
		if err != nil {
			panic(err) // it is made of texts, and of what was decoded
		}
		dir := filepath.Join(h.scratch, fmt.Sprintf("notify%d", n.To))
		h.aside.Go(func() {
			b := &machine.NotifiedBody{Of: n.Of, To: n.To, Missed: n.Missed}
			var err error
			for delay := noticeDelay; b.Tries < tries; delay *= 2 {
				b.Tries++
				if err = h.hand(&to, dir, message); err == nil || b.Tries == tries || !pause(h.asideCtx, delay) {
					break
				}
			}
			if h.asideCtx.Err() != nil && err != nil {
				return // the next process tells it
			}
			if err != nil {
				b.Error = h.worker.Line(err.Error())
			}
			_ = h.onLoop(func() { // a host that has stopped records nothing: it is told again
				h.telling[n.To], h.unreached[n.To] = false, err != nil
				_ = h.record(h.clock.now(), b) // a log that cannot be written ends the run elsewhere
				h.tell()
			})
		})
	}
}

// pause waits, and reports false when ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// hand gives a message to somebody, once.
func (h *host) hand(to *dag.Notify, dir string, message []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the kind %s panicked: %v", to.Kind, p)
		}
	}()
	kind, _ := h.o.Kinds.Kind(to.Kind)
	messenger, ok := nodes.Able[nodes.Messenger](kind, to.With)
	if !ok {
		return fmt.Errorf("the kind %s takes no message", to.Kind)
	}
	with, err := messenger.Message(to.With, message)
	if err != nil {
		return err
	}
	out, scratch := filepath.Join(dir, "out"), filepath.Join(dir, "scratch")
	defer os.RemoveAll(dir)
	for _, d := range []string{out, scratch} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeoutCause(h.asideCtx, to.Timeout.D(), fmt.Errorf("took longer than %s", to.Timeout.D()))
	defer cancel()
	_, err = kind.Run(ctx, &nodes.Task{
		Node: "notify", Generation: 1, Attempt: 1, Kind: to.Kind, With: with, SpecDir: h.o.SpecDir, Out: out,
		Scratch: scratch, Timeout: to.Timeout.D(), Grace: noticeGrace, Secret: h.secret, Mask: h.worker.Mask.Add,
		Binary: h.o.Binary,
		Keep:   func(string) (io.WriteCloser, error) { return discard{}, nil },
		Emit:   func(string, any) error { return nil }, Warn: func(string) {}, Beat: func() {},
	})
	return cmp.Or(context.Cause(ctx), err)
}

// discard keeps nothing of what is printed.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) Close() error                { return nil }

// tellRest waits until everybody was told of everything, but not for long.
func (h *host) tellRest() error {
	h.tell()
	limit := time.After(noticeWait)
	for len(h.state().Notices()) > 0 {
		select {
		case call := <-h.calls:
			call()
			continue
		case <-limit:
		case <-h.o.Interrupt:
		case <-h.ctx.Done():
		}
		if h.o.Warn != nil {
			n := h.state().Notices()[0]
			text := fmt.Sprintf("nobody could be told of event %d (%s) yet; the next start tells it", n.Of, n.On)
			h.o.Warn("notify", text)
		}
		break
	}
	return h.run.Wait(h.mark)
}
