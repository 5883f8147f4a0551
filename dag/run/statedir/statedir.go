// Package statedir keeps what outlives a run on this machine: how long nodes took and cost, and the
// state of named breakers.
//
// Nothing in it is needed for correctness: a missing or unreadable file is an empty one.
package statedir

import (
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// A Dir is the state directory. All methods may be called from any goroutine and by several
// processes at once.
type Dir struct{ dir string }

// Open uses dir, or when empty $XDG_STATE_HOME/dagrun, or ~/.local/state/dagrun. It is made on the
// first write.
func Open(dir string) (*Dir, error) { panic("contract") }

// A Sample is what one completed attempt took.
type Sample struct {
	Seconds float64
	USD     dag.USD
	Tokens  int64
}

// History returns the samples of a pipeline's nodes by id, newest first, at most 8 a node.
func (d *Dir) History(pipeline string) (map[string][]Sample, error) { panic("contract") }

// AddHistory adds samples, one a node.
func (d *Dir) AddHistory(pipeline string, samples map[string]Sample) error { panic("contract") }

// A Breaker is the kept state of a named breaker.
type Breaker struct {
	State   string         `json:"state"`
	Until   time.Time      `json:"until,omitzero"`
	Counts  machine.Counts `json:"counts,omitzero"`
	Updated time.Time      `json:"updated"`
}

// Breaker returns the state kept under a key (breaker name and provider base URL).
func (d *Dir) Breaker(key string) (Breaker, bool, error) { panic("contract") }

// SetBreaker keeps the state of a breaker.
func (d *Dir) SetBreaker(key string, b Breaker) error { panic("contract") }
