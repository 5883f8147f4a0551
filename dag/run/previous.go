package run

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// previousFile names the tick that was put away last, and what the ticks of its day have spent. It is written before
// that is moved, so that the next one names it whatever happens in between.
const previousFile = dag.OwnPrevious

// A LastTick is the tick that was put away last.
type LastTick struct {
	machine.Ended         // the last that is kept; RunID "" = none
	Away          string  `json:"put_away"` // id of the run, which may have been idle
	Day           string  `json:"day"`      // on which it ended, UTC: 2006-01-02
	Spent         dag.USD `json:"spent_usd"`
	Garbage       int     `json:"garbage,omitempty"` // ticks that were removed since the store was looked through
}

// On is what the ticks that were put away have spent on a day.
func (t *LastTick) On(now time.Time) dag.USD {
	if t == nil || t.Day != day(now) {
		return 0
	}
	return t.Spent
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// LastTickOf reads which tick was put away last in an output directory; nil: none was.
func LastTickOf(o Options) (*LastTick, error) {
	r, err := attach(o, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.closeTrees()
	return r.lastTick()
}

func (r *Run) lastTick() (*LastTick, error) {
	t := new(LastTick)
	found, err := readJSON(r.own, previousFile, t)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w (remove the file: the log of a tick that is there names the one "+
			"before, without one the chain begins anew; what the ticks of the day have spent is not known then)",
			r.own.Path(previousFile), err)
	}
	if !found {
		return nil, nil
	}
	return t, nil
}
