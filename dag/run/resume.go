package run

import (
	"fmt"
	"slices"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/machine"
)

// A Rescue returns the end of an attempt that a dead process left under way, from what it kept of a
// complete result; nil when there is nothing and the attempt is lost. An error says that the disk fails what there is:
// then nothing is decided.
type Rescue func(node string, generation, attempt int) (*machine.FinishedBody, error)

// Resume records attempts found in flight as lost, where rescue (nil: never) knows no better, and
// RUN_RESUMED, and restores artifacts that a lost attempt had published. A run that is complete stays
// as it is. What is given besides is recorded together with RUN_RESUMED: before it, or after it where a run that had
// failed is cancelled. One that was on its way between two declared states goes back to the last stable one.
func (r *Run) Resume(now time.Time, by string, rescue Rescue, besides ...machine.Body) error {
	if r.state.Run().Status == machine.RunDone && len(index.InFlight(r.state)) == 0 {
		return nil
	}
	lost, err := r.lose(now, rescue)
	if err != nil {
		return err
	}
	resumed := &machine.RunResumedBody{By: by, Lost: lost}
	bodies := append(slices.Clip(besides), resumed)
	if r.state.Run().Status == machine.RunBroken && by == machine.ByCancel {
		bodies = append([]machine.Body{resumed}, besides...)
	} else if r.state.Run().Status == machine.RunBroken {
		if list := r.state.CleanedUp(); len(list) > 0 {
			bodies = append(bodies, &machine.RewoundBody{To: list[0], Nodes: list,
				Reason: "the run was resumed after it had failed: clean-up runs again"})
		}
	}
	if by != machine.ByCancel {
		bodies = append(bodies, r.state.BackToStable()...)
	}
	return r.RecordDurable(now, bodies...)
}

// lose ends the attempts that the last process left under way, and brings the files they had
// published to the version that counts.
func (r *Run) lose(now time.Time, rescue Rescue) (lost int, err error) {
	for _, v := range index.InFlight(r.state) {
		var body *machine.FinishedBody
		if rescue != nil {
			if body, err = rescue(v.Node.ID, v.Generation, v.Attempt); err != nil {
				return lost, err
			}
		}
		if body != nil && body.Status == dag.StatusLost {
			lost++
		}
		if body == nil {
			lost++
			e := r.state.Settle(v.Node.ID, machine.Outcome{Status: dag.StatusLost, Message: "the process that ran it died"}, now)
			body = e.Body.(*machine.FinishedBody)
		}
		a := index.AttemptOf(v)
		files := r.index.WrittenBy(a.Node, a.Generation, index.Open)
		files = slices.DeleteFunc(files, func(f index.Named) bool { return f.Entry })
		for _, f := range files {
			warning, err := r.keepUnknown(f)
			if err != nil {
				return lost, err
			}
			if warning != "" {
				body.Warnings = append(body.Warnings, warning)
			}
		}
		if _, err := r.Record(now, body); err != nil {
			return lost, err
		}
		r.Unspool(a)
		for _, f := range files {
			if err := r.restoreFile(f.Name); err != nil {
				return lost, err
			}
		}
	}
	return lost, nil
}

// keepUnknown stores a live file that is neither the version before the attempt nor the one that the
// attempt had recorded, and says so.
func (r *Run) keepUnknown(f index.Named) (warning string, err error) {
	digest, err := r.tree.Found(f.Name)
	if err != nil || digest == "" || digest == f.Digest || digest == f.Previous {
		return "", err
	}
	kept, _, err := r.tree.Keep(f.Name)
	return fmt.Sprintf("%s was neither the version before nor the recorded one; it is kept as %s",
		f.Name, r.objectPath(kept)), err
}

// restoreFile brings a file to the version that counts now that its attempt has ended. What stands there is kept.
func (r *Run) restoreFile(name string) error {
	want, _ := r.index.Live(name)
	digest, err := r.tree.Found(name)
	if err != nil || digest == want { // both empty: there is none and should be none
		return err
	}
	if digest != "" {
		if _, _, err := r.tree.Keep(name); err != nil {
			return err
		}
	}
	return r.putBack(name, want)
}
