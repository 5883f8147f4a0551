package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"dagrun.dev/dag/machine"
)

// A crashPoint is the event at which a process kills itself, for tests: right after it was written, or right before,
// when everything that comes before it was done. The zero crashPoint is none.
type crashPoint struct {
	before bool
	at     func(*machine.Event) bool
	live   bool // what is folded from now on is new, not read back
}

// readCrashPoint reads DAGRUN_CRASH_AT: the number of an event, or its type and then texts that fields of its payload
// hold, as its node, an artifact, a gate; "before" may stand in front.
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
			missing := func(w string) bool { return !holds(e.Body, w) }
			return string(e.Type) == words[0] && !slices.ContainsFunc(words[1:], missing)
		}
	}
	return c
}

// holds reports whether a field of a payload is a text, or a list of that text alone.
func holds(b machine.Body, text string) bool {
	raw, err := json.Marshal(b)
	var fields map[string]json.RawMessage
	if err != nil || json.Unmarshal(raw, &fields) != nil {
		return false
	}
	for _, v := range fields { // any of them
		if s := string(v); s == strconv.Quote(text) || s == "["+strconv.Quote(text)+"]" {
			return true
		}
	}
	return false
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
