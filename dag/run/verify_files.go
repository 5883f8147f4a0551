package run

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// artifacts: each live file is the recorded version, and every version is in the store.
func (v *verification) artifacts() error {
	var errs []error
	for _, t := range v.listArtifacts() {
		for _, w := range t.Versions {
			if err := v.store.VerifyVersion(t.Name, w.Digest); err != nil {
				errs = append(errs, fmt.Errorf("%s, event %d: %w", t.Name, w.Seq, err))
			}
		}
	}
	for d, err := range v.drifts {
		switch {
		case err != nil:
		case d.Gone:
			err = pendingf("%s is missing, recorded is sha256 %s; the next start brings it back", d.Name, d.recorded)
		case d.ours:
			err = pendingf("%s is another version than the recorded one, sha256 %s; "+
				"the next start brings that back", d.Name, d.recorded)
		default:
			err = fmt.Errorf("%s has sha256 %s, recorded is %s", d.Name, d.found, d.recorded)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// accumulators: each live file shows the entries that count.
func (v *verification) accumulators() error {
	var errs []error
	for _, t := range v.listAccumulators() {
		name, want, ok := v.projection("", t.Name)
		if !ok {
			continue
		}
		b, err := want.render(v.store)
		if err == nil {
			same, e := disk.Holds(v.own, name, b)
			if errors.Is(e, fs.ErrNotExist) || e == nil && !same {
				err = pendingf("%s does not show the recorded entries; the next start renews it", path.Join(Dir, name))
			} else {
				err = e
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// backups: whatever was replaced is kept, unchanged, under the recorded name.
func (v *verification) backups() error {
	var errs []error
	for _, t := range v.listArtifacts() {
		for _, w := range t.Versions {
			if w.Previous == "" {
				continue
			}
			have, _, err := v.tree.Live(w.Backup)
			if err == nil && have != w.Previous {
				err = fmt.Errorf("%s has sha256 %s, it was made of %s", w.Backup, have, w.Previous)
			}
			if w.Backup == "" {
				err = fmt.Errorf("no backup was recorded")
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s, event %d: %w", t.Name, w.Seq, err))
			}
		}
	}
	return errors.Join(errs...)
}

// besides: what was replaced beside the specification is kept, and nothing is left to do there.
func (v *verification) besides() (any bool, err error) {
	earlier, err := v.readEarlier()
	errs := []error{err}
	one, _ := disk.ReadFile(v.own, publishedFile)
	if two, _ := disk.ReadFile(v.own, eventlog.BackupName(publishedFile)); err == nil && !bytes.Equal(one, two) {
		errs = append(errs, pendingf("%s is not the same as its second copy: a process died between them, or one was "+
			"damaged or removed; the first that can be read counts, and the next run that is put away writes both",
			v.own.Path(publishedFile)))
	}
	kept := func(f machine.PublishedFile, by string) {
		any = true
		if f.Previous == "" {
			return
		}
		if err := v.store.Verify(f.Previous); err != nil {
			errs = append(errs, fmt.Errorf("%s beside the specification, put there by %s: what was replaced cannot be "+
				"put back: %w", f.Path, by, err))
		}
	}
	for _, b := range v.published {
		for _, f := range b.Files {
			kept(f, "node "+b.Node)
		}
	}
	list := slices.Clone(v.state.Published())
	for _, w := range earlier {
		if at(list, w.Path) == nil {
			kept(w.PublishedFile, "an earlier run")
			list = append(list, w)
		}
	}
	if _, held, _ := eventlog.ReadLock(v.own, lockFile); held {
		return any, errors.Join(errs...) // a writer may be about to do it
	}
	for _, w := range list {
		switch w.Standing {
		case machine.PublishedOpen, machine.PublishedVoid:
			errs = append(errs, pendingf("%s beside the specification may be there although its attempt, of node %s, does not "+
				"count or has not ended; the next start (dagrun resume or apply) puts it back or counts it", w.Path, w.Node))
		case machine.PublishedDue:
			errs = append(errs, pendingf("%s beside the specification is to be there and may not be, of node %s; the next "+
				"start (dagrun resume or apply) puts it there", w.Path, w.Node))
		}
	}
	return any || err != nil, errors.Join(errs...)
}

// answers: each answer of a model is on disk, those of failed attempts too: as raw-output*, or, when
// its process died before it was written out, within the transcript*.
func (v *verification) answers() error {
	var errs []error
	attempts := slices.SortedFunc(maps.Keys(v.answered), func(a, b Attempt) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), a.Generation-b.Generation)
	})
	for _, a := range attempts {
		had := v.answered[a]
		list, err := disk.List(v.own, had.dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		outputs, transcripts := 0, 0
		for _, e := range list {
			if strings.HasPrefix(e.Name(), "raw-output") {
				outputs++
			}
			if strings.HasPrefix(e.Name(), "transcript") {
				transcripts++
			}
		}
		for _, k := range v.kept {
			if k.dir == had.dir && strings.HasPrefix(k.Name, "raw-output") && k.Digest != "" && v.store.Has(k.Digest) {
				outputs++
			}
		}
		if kept := max(outputs, transcripts); kept < had.calls {
			errs = append(errs, fmt.Errorf("node %s, generation %d: %d calls answered, %d answers kept",
				a.Node, a.Generation, had.calls, kept))
		}
	}
	return errors.Join(errs...)
}

// keptFiles: what attempts left in the folders of their nodes is there, unchanged: under its name, or under
// the one that it was given when a later attempt kept another of that name. Logs of earlier versions name none.
func (v *verification) keptFiles() error {
	var errs []error
	for _, k := range v.kept {
		if k.Digest == "" {
			continue // its attempt never closed it
		}
		names, err := v.asides(path.Join(k.dir, k.Name))
		found := slices.ContainsFunc(names, func(name string) bool {
			have, _, bad := v.tree.Live(path.Join(Dir, name))
			return bad == nil && have == k.Digest
		})
		if !found && v.store.Verify(k.Digest) == nil {
			continue // it went there when its folder did not take it
		}
		if !found {
			name := path.Join(Dir, k.dir, k.Name)
			err = errors.Join(err, fmt.Errorf("%s with sha256 %s is gone or was changed", name, k.Digest))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// asides returns the names of a file and of those that setAside gives it.
func (v *verification) asides(full string) (names []string, err error) {
	list, err := disk.List(v.own, path.Dir(full))
	ext := path.Ext(full)
	stem := path.Base(strings.TrimSuffix(full, ext))
	for _, e := range list {
		if e.Name() == path.Base(full) || strings.HasPrefix(e.Name(), stem+"-FAILED-") && strings.HasSuffix(e.Name(), ext) {
			names = append(names, path.Join(path.Dir(full), e.Name()))
		}
	}
	return names, err
}

// callGeneration takes the generation out of a call id, node.generation.attempt.
func callGeneration(id string) (int, bool) {
	parts := strings.Split(id, ".")
	if len(parts) < 3 {
		return 0, false
	}
	n, err := strconv.Atoi(parts[len(parts)-2])
	return n, err == nil
}
