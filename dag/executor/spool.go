package executor

import (
	"encoding/json"
	"os"
	"path/filepath"

	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
)

// spoolFile is what an attempt's spool says of the attempt beside what comes in.
const spoolFile = "attempt.json"

// mostSpoolFile bounds that file, in bytes: settings as they were resolved.
const mostSpoolFile = 1 << 30

// A spooled is what the next host cannot know of an attempt.
type spooled struct {
	With    json.RawMessage `json:"with"` // resolved
	Scratch string          `json:"scratch"`
}

// spool gives an attempt whose kind can rescue it a folder that outlives this process.
func (h *host) spool(a *attempt, kind nodes.Kind, t *nodes.Task) error {
	if _, able := kind.(nodes.Rescuer); !able || a.undo || a.probe {
		return nil
	}
	dir, err := h.run.Spool(a.id())
	if err != nil {
		return err
	}
	a.spooled, t.Spool = true, dir
	raw, err := json.Marshal(spooled{a.with, a.slot.scratch})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, spoolFile), raw, 0o600)
}

// openSpool takes over what a dead process wrote of an attempt.
func (a *attempt) openSpool(dir string) error {
	raw, err := regular.Read(filepath.Join(dir, spoolFile), mostSpoolFile)
	if err != nil {
		return err
	}
	var s spooled
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	a.with, a.slot.scratch = s.With, s.Scratch
	return nil
}
