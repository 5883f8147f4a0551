package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/transcript"
)

// cutShort is the category of work that a limit of turns or money ended before there was an answer, and that the
// next attempt continues.
const cutShort = "cut_short"

// A session is the memory that an agent has of its work, and its working folder. Both outlive the attempt, so that
// the next one can go on where a limit cut the work.
type session struct {
	ID       string `json:"id"`       // by which the agent knows it
	Question string `json:"question"` // digest of what was asked
	Cut      bool   `json:"cut"`      // the next attempt continues it

	carried string // folder that the node's attempts hand on
	resumed bool   // this attempt continues it
}

// open returns the session for an attempt at a question: the one before where that was cut, else a new one. nil says
// that the settings want none.
func (s *settings) open(t *nodes.Task, question string) (x *session, warning string, err error) {
	if s.Session == "" || t.Carry == nil {
		return nil, "", nil
	}
	last, err := lastSession(t)
	if err != nil {
		return nil, "", err
	}
	switch {
	case last.ID == "" && t.FailedWith[cutShort] > 0:
		warning = "the interrupted work was lost with the temporary files; it starts over"
	case !last.Cut:
	case last.Question != question:
		warning = "the question has changed since the work was interrupted; it starts over"
	default:
		there, err := last.uncount(s)
		if there || err != nil {
			last.resumed = true
			return last, "", err
		}
		warning = "the agent's session is gone; the interrupted work starts over"
	}
	x = &session{ID: sessionID(t), Question: question, carried: last.carried}
	_ = os.RemoveAll(last.carried) // what cannot be removed does no harm
	return x, warning, errors.Join(os.MkdirAll(x.dir(), 0o700), x.save())
}

// lastSession returns the session that the last attempt had; one without an ID where there is none.
func lastSession(t *nodes.Task) (*session, error) {
	carried, err := t.Carry()
	if err != nil {
		return nil, err
	}
	x := &session{carried: carried}
	raw, err := os.ReadFile(x.file())
	if err != nil || json.Unmarshal(raw, x) != nil || filepath.Base(x.ID) != x.ID {
		return &session{carried: carried}, nil // nothing there can be continued
	}
	return x, nil
}

func (x *session) file() string { return filepath.Join(x.carried, "session.json") }

// dir is the folder that holds the agent's memory and its working folder. Each session has its own: what a process of
// the one before may still write is not in the way.
func (x *session) dir() string { return filepath.Join(x.carried, x.ID) }

func (x *session) save() error {
	raw, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return replace(x.file(), raw)
}

// replace puts content in the place of a file, whole or not at all.
func replace(file string, content []byte) error {
	part := file + ".part"
	if err := os.WriteFile(part, content, 0o600); err != nil {
		return err
	}
	return os.Rename(part, file)
}

// end notes how an attempt ended: whether there is work to go on with. A call that the service refused has changed
// nothing.
func (x *session) end(r *transcript.Reply, res *nodes.Result, err error) {
	if x == nil {
		return
	}
	var e *nodes.Error
	cut := errors.As(err, &e) && (e.Category == cutShort || x.Cut && r.Refused && r.Usage == nodes.Usage{})
	if x.Cut == cut {
		return
	}
	x.Cut = cut
	if err := x.save(); err != nil {
		res.Warnings = append(res.Warnings, "the interrupted work cannot be continued: "+err.Error())
	}
}

// uncount takes out of the agent's memory what it has spent so far, and reports whether there is such a memory: claude
// 2.1.332 takes these sums up again and would report them once more as its own.
func (x *session) uncount(s *settings) (there bool, err error) {
	if s.Provider != "claude" {
		return true, nil // the simulated agent remembers nothing
	}
	files, err := fs.Glob(os.DirFS(x.dir()), path.Join(claudeHome, "projects", "*", x.ID+".jsonl"))
	for _, file := range files {
		file = filepath.Join(x.dir(), file)
		raw, failed := os.ReadFile(file)
		if failed != nil {
			return false, failed
		}
		var kept []byte
		for line := range bytes.Lines(raw) {
			var o struct{ Type string }
			if json.Unmarshal(line, &o) != nil || o.Type != "cost-state" {
				kept = append(kept, line...)
			}
		}
		if err := replace(file, kept); err != nil {
			return false, err
		}
	}
	return len(files) > 0, err
}

// claudeHome is the folder of claude's own files in that of a session.
const claudeHome = "claude"

// args are the arguments that say which session claude works in.
func (x *session) args() []string {
	switch {
	case x == nil:
		return []string{"--no-session-persistence"}
	case x.resumed:
		return []string{"--resume", x.ID}
	}
	return []string{"--session-id", x.ID}
}

// sessionID is a UUID that no other attempt of the run has.
func sessionID(t *nodes.Task) string {
	b := sha256.Sum256(fmt.Appendf(nil, "%d %d %d %s", t.Seed, t.Generation, t.Attempt, t.Node))
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
