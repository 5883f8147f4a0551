package agent

import (
	"os"
	"path/filepath"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent/internal/transcript"
	"dagrun.dev/nodes/internal/evidence"
)

// A question is what is asked.
type question struct {
	task     *nodes.Task
	set      *settings
	provider provider
	// blocks are the prompt in parts, as the template's borders divide it; fixed is how many in front hold nothing
	// that a run wrote.
	blocks []string
	fixed  int
	system string
	// folder is the agent's private working folder, with the given files in it.
	folder string
	// session is what the agent works in that outlives the attempt; nil = nothing does.
	session *session
}

// prompt is the whole text that is asked.
func (q *question) prompt() string { return strings.Join(q.blocks, "") }

// add puts a text behind the prompt.
func (q *question) add(text string) { q.blocks[len(q.blocks)-1] += text }

// evidence returns a case about a failure of this question, with the runner's clock.
func (q *question) evidence(from *evidence.Table) evidence.Case {
	return evidence.Case{From: from, Now: q.set.now(), Tries: q.task.Attempt}
}

// withSystem puts the system text before the prompt, for programs that have no place for it.
func withSystem(q *question) string {
	if q.system == "" {
		return q.prompt()
	}
	return q.system + "\n\n---\n\n" + q.prompt()
}

// headed returns the system text and the prompt for a program that keeps what it has read up to the end of its system
// text only: the fixed blocks in front are part of that, unless they are too long for an argument. What a run
// wrote never speaks as the system.
func (q *question) headed() (system, prompt string) {
	n := min(q.fixed, len(q.blocks)-1)
	if n <= 0 {
		return q.system, q.prompt()
	}
	system = strings.Join(q.blocks[:n], "")
	if q.system != "" {
		system = q.system + "\n\n" + system
	}
	if len(system) > mostArgument {
		return q.system, q.prompt()
	}
	return system, strings.Join(q.blocks[n:], "")
}

// mostArgument is the longest argument that can be handed to a program (the kernel takes 128 KiB).
const mostArgument = 120_000

// A reply is what came back from a provider.
type reply = transcript.Reply

// base returns a folder of the attempt, or of the session that it works in.
func (q *question) base(name string) string {
	if q.session != nil {
		return filepath.Join(q.session.dir(), name)
	}
	return filepath.Join(q.task.Scratch, name)
}

// workName is the working folder's name in the scratch folder, or in that of a session.
const workName = "work"

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
