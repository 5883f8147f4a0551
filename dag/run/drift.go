package run

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/printable"
)

// A Drift is a live artifact that is not as the run has recorded it, and what Open does about it.
type Drift struct {
	Name   string
	Gone   bool // nothing is there
	Edited bool // somebody changed it, and the changed file counts; otherwise the recorded version is put back

	Readers []string // of what was edited: nodes that have read the version before, and whose results stay

	recorded, found string // digests; empty = none
	ours            bool   // this program or a node wrote what is there
}

// drifts yields what is not as recorded, in plan order, and what keeps an artifact from being looked at.
//
// A file that neither a node nor this program wrote is the user's. But while an attempt that writes the file was under
// way, who changed it is not known, nor is it where events that wrote files may be among those that are lost.
func (r *Run) drifts(yield func(Drift, error) bool) {
	unsure := map[string]bool{}
	for _, v := range index.InFlight(r.state) {
		for _, name := range v.Node.Writes {
			unsure[name] = true
		}
	}
	for _, t := range r.listArtifacts() {
		if t.Pending() {
			continue // Resume decides, when it is known whether the attempt counts
		}
		recorded, previous := r.index.Live(t.Name)
		found, err := r.tree.Found(t.Name)
		if err != nil {
			err = fmt.Errorf("artifact: %s: %w", t.Name, err)
			if !disk.Broken(err) {
				err = fmt.Errorf("%w; move away what is there, and the next start puts the recorded version there", err)
			}
		} else if found == recorded {
			continue
		}
		d := Drift{Name: t.Name, Gone: found == "", recorded: recorded, found: found}
		d.ours = d.Gone || found == previous || r.index.IsVoid(t.Name, found)
		if d.Edited = !d.ours && !r.o.Salvage && !unsure[t.Name]; d.Edited {
			d.Readers = r.readersOf(t.Name)
		}
		if !yield(d, err) {
			return
		}
	}
}

// Drift returns what Open would find to mend, in plan order. It works read-only and reads every
// live artifact. Beside a running attempt it may show what that one is writing.
func (r *Run) Drift() (list []Drift, err error) {
	for d, err := range r.drifts {
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// Disturbed looks, after an attempt whose tools may reach the run's files, for what another program has changed of
// them since the last look: live artifacts, and the event log, whose change is *eventlog.Damaged. What it reports it
// does not report again. On the loop's goroutine only.
func (r *Run) Disturbed() (artifacts []string, err error) {
	if err := r.log.Check(); err != nil {
		return nil, err
	}
	list, err := r.Drift()
	for _, d := range list {
		if (d.Edited || d.Gone) && !slices.Contains(r.disturbed, d.Name) {
			artifacts = append(artifacts, d.Name)
		}
	}
	r.disturbed = append(r.disturbed, artifacts...)
	return artifacts, err
}

// mend brings the live files to what is recorded. What is the user's is kept, adopted and said; where that is not
// known, the recorded version comes back and what was found is kept.
func (r *Run) mend(rep *Report) error {
	for d, err := range r.drifts {
		if err == nil {
			err = r.mendFile(d, rep)
		}
		if err != nil {
			return err
		}
	}
	return r.restoreLive(r.o.Now, r.written()) // where the last process died before it did
}

func (r *Run) mendFile(d Drift, rep *Report) error {
	if d.Edited {
		rep.Edited = append(rep.Edited, d.Name)
		rep.warn("%s was changed outside the run: nodes that run from now on use the changed file "+
			"(the version before is %s)%s", d.Name, r.store.Path(d.recorded), ReadersText(d.Readers))
		return r.adoptEdit(d)
	}
	was := ""
	if !d.ours {
		kept, _, err := r.tree.Keep(d.Name)
		if err != nil {
			return err
		}
		was = fmt.Sprintf(" (the file found there is kept as %s)", r.store.Path(kept))
	}
	if err := r.putBack(d.Name, d.recorded); err != nil {
		return err
	}
	rep.Restored = append(rep.Restored, d.Name)
	rep.warn("%s was restored to the recorded version%s", d.Name, was)
	return nil
}

// putBack makes the recorded version live, or removes the file when there was none: what it holds
// is in the store.
func (r *Run) putBack(name, recorded string) error {
	if recorded != "" {
		return r.promote(name, recorded)
	}
	name = strings.TrimSuffix(name, "/")
	if err := r.out.RemoveAll(name); err != nil { // a folder with all that is in it
		return err
	}
	return r.out.SyncDir(path.Dir(name))
}

// adoptEdit records the live file as it is.
func (r *Run) adoptEdit(d Drift) error {
	b, err := r.take(d.Name, d.recorded, "user-edit")
	if err != nil {
		return err
	}
	if b.Digest != d.found {
		return fmt.Errorf("run: %s is being changed by another program", r.out.Path(d.Name))
	}
	return r.RecordDurable(r.o.Now, b)
}

// take stores a live file as it is and returns the fact that it takes the place of the recorded version.
func (r *Run) take(name, recorded, why string) (*machine.ArtifactWrittenBody, error) {
	kept, size, err := r.tree.Keep(name)
	return &machine.ArtifactWrittenBody{
		Name: name, Path: name, Digest: kept, Size: size, Previous: recorded, Backup: r.objectPath(recorded), Why: why,
	}, err
}

// objectPath is the path of an object relative to the output directory.
func (r *Run) objectPath(digest string) string {
	if digest == "" {
		return ""
	}
	return Dir + "/" + objectsDir + "/" + digest[:2] + "/" + digest[2:]
}

// promote makes a recorded version live; where its object cannot be read, a backup of the same
// content does. With neither the run cannot go on by itself.
func (r *Run) promote(name, digest string) error {
	err := r.tree.Promote(name, digest)
	if err == nil {
		return nil
	}
	for _, t := range r.listArtifacts() {
		for _, v := range t.Versions {
			if v.Previous != digest || v.Backup == "" {
				continue
			}
			if have, _, berr := r.tree.Keep(v.Backup); berr == nil && have == digest {
				return r.tree.Promote(name, digest)
			}
		}
	}
	if disk.Broken(err) {
		return err
	}
	return &eventlog.Damaged{
		File: r.out.Path(name), WayOut: waysOut(r.own, r.head.Seq+1),
		Why: fmt.Sprintf("the recorded version (sha256 %s) is neither in the store nor among the backups: %v", digest, err),
	}
}

// readersOf returns the completed nodes that read the live version of an artifact, in plan order: what a user does to
// the file later changes nothing about them.
func (r *Run) readersOf(name string) (list []string) {
	live, _ := r.index.Live(name)
	g := r.state.Graph()
	for i := range int32(g.Len()) {
		n := g.Node(i)
		if !n.ReadsArtifact(name) || r.state.StatusAt(i) != machine.Completed {
			continue
		}
		if v, ok := r.index.Visible(g, n.ID, name); ok && v.Digest == live {
			list = append(list, n.ID)
		}
	}
	return list
}

// readersMost is how many readers a message names.
const readersMost = 5

// ReadersText says of nodes that they keep what they made of the version before an edit; empty for none.
func ReadersText(readers []string) string {
	if len(readers) == 0 {
		return ""
	}
	return "; results made of the version before stay: " + printable.Some(readers, readersMost)
}
