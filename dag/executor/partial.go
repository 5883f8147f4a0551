package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dagrun.dev/dag/run"
)

// aside puts what an attempt kept aside under the name of a failed one, and what it had staged
// with it when it was stopped: that may be the work of hours. It returns
// the paths in the output folder.
func (h *host) aside(a *attempt) (kept []string) {
	cause := context.Cause(a.ctx)
	if errors.Is(cause, ErrHard) {
		return nil // its end is not recorded: a finished result must stay where Adopt finds it
	}
	if errors.Is(cause, errStopped) || errors.Is(cause, errCancel) {
		for _, name := range a.node.Writes {
			abs := filepath.Join(a.slot.out, filepath.FromSlash(name))
			st, err := os.Lstat(abs)
			if err != nil || !st.Mode().IsRegular() || st.Size() == 0 {
				continue
			}
			if err = h.mask.File(abs); err == nil {
				err = h.run.KeepFile(a.id(), name, abs)
			}
			if err != nil {
				h.log(a.node.ID, "WARN", "keep "+name+": "+err.Error())
				continue
			}
			a.kept = append(a.kept, name)
		}
	}
	for _, name := range a.kept {
		path, err := h.run.Failed(a.id(), name)
		if err != nil {
			h.log(a.node.ID, "WARN", "keep "+name+": "+err.Error())
		} else if path != "" {
			kept = append(kept, run.Dir+"/"+path)
		}
	}
	return kept
}

// partial says what is there of an attempt that was stopped (L-5).
func partial(kept []string) string {
	if len(kept) == 0 {
		return "it left nothing"
	}
	const most = 5
	more := ""
	if len(kept) > most {
		more = fmt.Sprintf(" and %d more", len(kept)-most)
		kept = kept[:most]
	}
	return "kept in " + strings.Join(kept, ", ") + more
}
