package cli

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"dagrun.dev/dag/machine"
)

// A crashPoint is the event at which a process kills itself, for tests: right after it was written, or
// right before, when everything that comes before it was done. The zero crashPoint is none.
type crashPoint struct {
	before bool
	at     func(*machine.Event) bool
	live   bool // what is folded from now on is new, not read back
}

// readCrashPoint reads DAGRUN_CRASH_AT: the number of an event, or its type, then its node and what
// it names there (artifact, gate, checkpoint); "before" may stand in front.
func readCrashPoint(text string) *crashPoint {
	c := &crashPoint{}
	text, c.before = strings.CutPrefix(text, "before ")
	words := strings.Split(text, " ")
	seq, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "" || err == nil && seq <= 0: // none
	case err == nil:
		c.at = func(e *machine.Event) bool { return e.Seq == seq }
	default:
		c.at = func(e *machine.Event) bool {
			node, name := aboutOf(e.Body)
			is := []string{string(e.Type), node, name}
			for i, w := range words {
				if i >= len(is) || is[i] != w {
					return false
				}
			}
			return true
		}
	}
	return c
}

// set reports whether there is a crash point at all.
func (c *crashPoint) set() bool { return c.at != nil }

// recording is called before an event is written, written after.
func (c *crashPoint) recording(e *machine.Event) { c.crash(e, c.before && c.live) }
func (c *crashPoint) written(e *machine.Event)   { c.crash(e, !c.before) }

func (c *crashPoint) crash(e *machine.Event, now bool) {
	if now && c.at != nil && c.at(e) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

// aboutOf returns the node whose work an event tells of, and what it names there.
func aboutOf(b machine.Body) (node, name string) {
	switch b := b.(type) {
	case *machine.StartedBody:
		return b.Node, ""
	case *machine.FinishedBody:
		return b.Node, string(b.Status)
	case *machine.ArtifactWrittenBody:
		return b.Node, b.Name
	case *machine.LLMCallStartedBody:
		return b.Node, ""
	case *machine.LLMCallFinishedBody:
		return b.Node, ""
	case *machine.LLMCallFailedBody:
		return b.Node, ""
	case *machine.GateRunBody:
		return b.Node, b.Gate
	case *machine.IssueBody:
		return b.Node, b.IssueID
	case *machine.CheckpointBody:
		return b.Node, b.ID
	case *machine.CompensationBody:
		return b.Node, string(b.Status)
	case *machine.EscalationOpenedBody:
		return b.Node, string(b.Kind)
	case *machine.PlanExtendedBody:
		return b.Node, ""
	case *machine.QueuedBody:
		if len(b.Nodes) == 1 {
			return b.Nodes[0], b.Reason
		}
	}
	return "", ""
}
