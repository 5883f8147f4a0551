package run

import (
	"fmt"
	"path"
	"strings"

	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/artifact/index"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// mend brings the live files to what is recorded. A file that neither a node nor this program wrote
// is the user's: it is kept, adopted and said. But while an attempt that writes the file was under way,
// who changed it is not known: then the recorded version comes back and what was found is kept.
func (r *Run) mend(rep *Report) error {
	unsure := r.unsure()
	for _, t := range r.listArtifacts() {
		if t.Pending() {
			continue // Resume decides, when it is known whether the attempt counts
		}
		if err := r.mendFile(t.Name, unsure[t.Name], rep); err != nil {
			return err
		}
	}
	return r.restoreLive(r.o.Now, r.written()) // where the last process died before it did
}

func (r *Run) mendFile(name string, unsure bool, rep *Report) error {
	recorded, _ := r.index.Live(name)
	digest, fine, ours, err := r.look(name)
	switch {
	case err != nil || fine:
		return err
	case !ours && !unsure:
		rep.Edited = append(rep.Edited, name)
		rep.warn("%s was changed outside the run: nodes that run from now on use the changed file "+
			"(the version before is %s)%s", name, r.store.Path(recorded), ReadersText(r.readersOf(name)))
		return r.adoptEdit(name, digest, recorded)
	}
	was := ""
	if !ours {
		kept, _, err := r.tree.Keep(name)
		if err != nil {
			return err
		}
		was = fmt.Sprintf(" (the file found there is kept as %s)", r.store.Path(kept))
	}
	if err := r.putBack(name, recorded); err != nil {
		return err
	}
	rep.Restored = append(rep.Restored, name)
	rep.warn("%s was restored to the recorded version%s", name, was)
	return nil
}

// unsure names the artifacts that may hold what an attempt wrote of which there is no record.
func (r *Run) unsure() map[string]bool {
	unsure := map[string]bool{}
	if r.o.Salvage { // events that wrote files may be among those that are lost
		for _, t := range r.listArtifacts() {
			unsure[t.Name] = true
		}
	}
	for _, v := range index.InFlight(r.state) {
		for _, name := range v.Node.Writes {
			unsure[name] = true
		}
	}
	return unsure
}

// look returns the digest of a live file (empty = none), whether it is the recorded one, and whether this
// program or a node wrote it.
func (r *Run) look(name string) (digest string, fine, ours bool, err error) {
	recorded, previous := r.index.Live(name)
	found, digest, err := r.tree.Look(name, recorded, previous)
	fine = found == artifact.Fine || recorded == "" && digest == ""
	return digest, fine, found != artifact.Edited || r.index.IsVoid(name, digest), err
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
func (r *Run) adoptEdit(name, digest, previous string) error {
	kept, size, err := r.tree.Keep(name)
	if err != nil {
		return err
	}
	if kept != digest {
		return fmt.Errorf("run: %s is being changed by another program", r.out.Path(name))
	}
	return r.RecordDurable(r.o.Now, &machine.ArtifactWrittenBody{
		Name: name, Path: name, Digest: kept, Size: size,
		Previous: previous, Backup: r.objectPath(previous), Why: "user-edit",
	})
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
