package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/nodes"
)

// A Target is a file that an attempt is to put beside the specification.
type Target struct {
	dag.Publication
	known machine.PublishedView // what is recorded of its path
	mine  bool                  // by this very attempt
}

// Targets returns what an attempt of a node is to put beside the specification.
func (r *Run) Targets(n *dag.Node, a Attempt) (list []Target) {
	for _, p := range n.Publish {
		t := Target{Publication: p}
		if v := at(r.earlier, p.To); v != nil {
			t.known = *v
		}
		if v := at(r.state.Published(), p.To); v != nil {
			counted := cmp.Or(v.Counted, t.known.Counted)
			t.known = *v
			t.known.Counted = counted
			by := Attempt{Node: v.Node, Generation: v.Generation, Attempt: v.Attempt}
			t.mine = v.Standing == machine.PublishedOpen && by == a
		}
		list = append(list, t)
	}
	return list
}

// at returns what is known of a path beside the specification; nil = nothing.
func at(list []machine.PublishedView, name string) *machine.PublishedView {
	i := slices.IndexFunc(list, func(v machine.PublishedView) bool { return v.Path == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// handDown keeps what a run has put beside the specification for those after it, when it is archived. An attempt that
// had not ended does not count.
func (r *Run) handDown(list []machine.PublishedView) (err error) {
	if len(list) == 0 {
		return nil
	}
	if r.earlier, err = r.readEarlier(); err != nil {
		return err
	}
	for _, v := range list {
		if v.Standing == machine.PublishedOpen {
			v.Standing = machine.PublishedVoid
		}
		if old := at(r.earlier, v.Path); old != nil {
			v.Counted = cmp.Or(v.Counted, old.Counted)
			*old = v
		} else {
			r.earlier = append(r.earlier, v)
		}
	}
	return r.writeEarlier()
}

func (r *Run) readEarlier() (list []machine.PublishedView, err error) {
	for _, name := range []string{publishedFile, eventlog.BackupName(publishedFile)} {
		b, bad := disk.ReadFile(r.own, name)
		if bad == nil {
			list = nil
			bad = dag.DecodeJSON(b, &list)
		}
		if bad == nil {
			return list, nil
		}
		if !errors.Is(bad, fs.ErrNotExist) {
			err = &eventlog.Damaged{File: r.own.Path(name), Why: bad.Error(), WayOut: "restore a copy, or move it away " +
				"with its second copy: then what earlier runs have put beside the specification counts as the user's"}
		}
	}
	return nil, err
}

func (r *Run) writeEarlier() error {
	b, err := dag.AppendJSON(nil, r.earlier)
	if err != nil {
		return err
	}
	return eventlog.WriteTwice(r.own, publishedFile, append(b, '\n'))
}

// Beside says in which folder the specification lies, where nodes publish, and does what is left to do there of
// attempts that have ended (SettleBeside). It is to be called before Resume, so that what a dead process has left is
// tidied up; until then nothing is published. Of a run that is open for reading only it does no more than say so.
func (r *Run) Beside(now time.Time, dir string) error {
	fsys, err := disk.OpenShared(dir)
	if err != nil {
		return err
	}
	return r.besideIn(now, fsys)
}

func (r *Run) besideIn(now time.Time, fsys disk.FS) error {
	var err error
	if r.earlier, err = r.readEarlier(); err != nil {
		return errors.Join(err, fsys.Close())
	}
	b := &beside{fsys, r.own, r.out.Path("."), r.store, artifact.NewTree(fsys, r.store, Dir)}
	if old := r.beside.Swap(b); old != nil {
		defer old.fsys.Close()
	}
	if r.readOnly {
		return nil
	}
	return r.SettleBeside(now)
}

// SettleBeside does what is left to do beside the specification of attempts that have ended: files of those that do not
// count go back, and those of attempts that were lost and count after all are put there. A file that somebody has
// changed meanwhile stays as it is.
func (r *Run) SettleBeside(now time.Time) error {
	b := r.beside.Load()
	if b == nil {
		return nil
	}
	var bodies []machine.Body
	for _, v := range slices.Clone(r.state.Published()) {
		how, err := b.settle(&v)
		if err != nil {
			return err
		}
		if how != "" {
			bodies = append(bodies, &machine.PublishedBody{Node: v.Node, Generation: v.Generation, Attempt: v.Attempt,
				Files: []machine.PublishedFile{v.PublishedFile}, Settled: how})
		}
	}
	changed := false
	for i := range r.earlier {
		v := &r.earlier[i]
		if at(r.state.Published(), v.Path) != nil {
			continue
		}
		how, err := b.settle(v)
		if err != nil {
			return err
		}
		if how != "" {
			v.Standing, changed = machine.PublishedGone, true
		}
	}
	if changed {
		if err := r.writeEarlier(); err != nil {
			return err
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	return r.RecordDurable(now, bodies...)
}

// settle does what is left to do about a file of an attempt that has ended, and says what that was.
func (b *beside) settle(v *machine.PublishedView) (how string, err error) {
	from, to := v.Digest, v.Previous
	there := b.inFolders(v.Path)
	switch v.Standing {
	case machine.PublishedOpen:
		if there {
			err = b.tidy(v.Path)
		}
		return "", err
	case machine.PublishedVoid:
		how = machine.SettledBack
	case machine.PublishedDue:
		from, to, how = v.Previous, v.Digest, machine.SettledPut
	default:
		return "", nil
	}
	if !there {
		return how, nil
	}
	if err = errors.Join(b.replace(v.Path, from, to), b.tidy(v.Path)); err != nil {
		return "", fmt.Errorf("run: %s: %w", b.fsys.Path(v.Path), err)
	}
	return how, nil
}

// inFolders reports whether all above a path that is there is a folder. Somebody may have put a file or a link in the
// place of one meanwhile: then the path is another one, at which nothing was put.
func (b *beside) inFolders(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if st, err := b.fsys.Lstat(dir); err == nil && !st.IsDir() {
			return false
		}
	}
	return true
}

// CheckTargets says why a file beside the specification cannot be replaced, before any work is done for it. Any
// goroutine.
func (r *Run) CheckTargets(list []Target) error {
	b := r.beside.Load()
	for _, t := range list {
		if b == nil {
			return errNoBeside
		}
		have, err := b.look(t.To)
		if err != nil {
			return err
		}
		if !t.expects(have) && t.Over != dag.OverKeep {
			return t.conflict(have)
		}
	}
	return nil
}

var errNoBeside = errors.New("run: it is not known where the specification is, beside which files are to be published")

// expects reports whether a digest is that of the file which may be replaced.
func (t *Target) expects(have string) bool {
	known := t.known
	switch {
	case t.Over == dag.OverReplace:
		return true
	case t.mine && (have == known.Previous || have == known.Digest):
		return true // this attempt was publishing when its process died
	case t.Expect != nil && have == *t.Expect:
		return true
	case known.Standing == machine.PublishedVoid && have == known.Digest:
		return true // an attempt that does not count has left it
	}
	return t.Expect == nil && (have == "" || have == known.Counted)
}

// conflict is that somebody's file stands where another is expected.
func (t *Target) conflict(have string) error {
	found, want := "has the sha256 "+short(have), "none is expected there"
	if have == "" {
		found = "is not there"
	}
	switch {
	case t.Expect != nil && *t.Expect != "":
		want = "the work is based on the sha256 " + short(*t.Expect)
	case t.Expect == nil && t.known.Counted != "":
		want = "what this pipeline put there last has the sha256 " + short(t.known.Counted)
	case t.Expect == nil:
		want = "this pipeline has not put it there"
	}
	return nodes.Permanent(nodes.Fail(dag.OverCategory, fmt.Sprintf(
		"%s beside the specification %s, and %s: it was left as it is; keep what you need of it and move it away, "+
			"or write over: replace", t.To, found, want)))
}

// short is the beginning of a digest, enough for people to tell it from others.
func short(digest string) string { return digest[:min(12, len(digest))] }

// beside is the folder of the specification, which is the user's.
type beside struct {
	fsys  disk.FS
	own   disk.FS // of the run
	run   string  // id
	store *artifact.Store
	tree  *artifact.Tree
}

// temp is the name of the file in which the next content of a path is made ready: the same in every process, so that
// the next one finds what a dead one has left.
func (b *beside) temp(name string) string {
	sum := sha256.Sum256([]byte(b.run + "/" + name))
	return path.Join(path.Dir(name), ".tmp-"+hex.EncodeToString(sum[:6]))
}

func (b *beside) tidy(name string) error {
	if err := b.fsys.Remove(b.temp(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func notThere(format string, args ...any) error {
	return nodes.Permanent(nodes.Fail("config", fmt.Sprintf(format, args...)))
}

// look returns the digest of what stands where a file may be put, empty for nothing.
func (b *beside) look(name string) (string, error) {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00\n") {
		return "", notThere("%q is no path below the folder of the specification", name)
	}
	if sources, err := b.sources(); err != nil {
		return "", err
	} else if slices.ContainsFunc(sources, func(s string) bool { return strings.EqualFold(s, name) }) {
		return "", notThere("%s is the specification itself, or holds values for it: nothing is published over it", name)
	}
	for at, part := "", ""; ; at = path.Join(at, part) {
		part, _, _ = strings.Cut(strings.TrimPrefix(name[len(at):], "/"), "/")
		inRun := strings.EqualFold(part, Dir)
		if _, err := b.fsys.Lstat(path.Join(at, Dir)); err == nil && at != "" {
			inRun = true
		}
		if inRun {
			return "", notThere("%s lies in the folder of a run, where nothing is published", name)
		}
		if strings.EqualFold(part, ".git") {
			return "", notThere("%s lies in a folder that git keeps for itself, where nothing is published", name)
		}
		// Through a link a path means another one, which may be the specification, or lie in the folder of a run.
		st, err := b.fsys.Lstat(path.Join(at, part))
		switch here := path.Join(at, part); {
		case err == nil && st.Mode()&fs.ModeSymlink != 0:
			return "", notThere("%s leads through the link %s, and nothing is published through links: name the place itself",
				name, here)
		case err == nil && here == name && st.IsDir():
			return "", notThere("%s is a folder, over which nothing is published: name a file in it", name)
		case err == nil && here != name && !st.IsDir():
			return "", notThere("%s lies below %s, which is a file: move that away, or publish elsewhere", name, here)
		}
		if path.Join(at, part) == name {
			return b.tree.Found(name)
		}
	}
}

// sources returns the files that the specification was made of, as whoever began the run has noted them.
func (b *beside) sources() ([]string, error) {
	var origin struct {
		Sources []string `json:"sources"`
	}
	_, err := readJSON(b.own, dag.OwnOrigin, &origin)
	return origin.Sources, err
}

// stage makes a stored content ready to be the next one of a path, durable.
func (b *beside) stage(name, digest string) error {
	src, err := b.store.Open(digest)
	if err != nil {
		return err
	}
	defer src.Close()
	if _, err := b.fsys.Lstat(path.Dir(name)); errors.Is(err, fs.ErrNotExist) {
		if err := disk.MakeDirs(b.fsys, path.Dir(name)); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	mode := fs.FileMode(0o666) // as far as the umask lets it
	if st, err := b.fsys.Lstat(name); err == nil {
		mode = st.Mode().Perm()
	}
	if err := b.tidy(name); err != nil {
		return err
	}
	f, err := b.fsys.OpenFile(b.temp(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, src); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// put makes what was made ready the file.
func (b *beside) put(name string) error {
	if err := b.fsys.Rename(b.temp(name), name); err != nil {
		return err
	}
	return b.fsys.SyncDir(path.Dir(name))
}

// replace makes one stored content the file that holds another; with none, the file is removed. Whatever else stands
// there when the new one is ready stays.
func (b *beside) replace(name, from, to string) error {
	if has, err := b.holds(name, from); !has || err != nil || from == to {
		return err
	}
	if to != "" {
		if err := b.stage(name, to); err != nil {
			return err
		}
		if has, err := b.holds(name, from); !has || err != nil {
			return err
		}
		return b.put(name)
	}
	if err := b.fsys.Remove(name); err != nil {
		return err
	}
	return b.fsys.SyncDir(path.Dir(name))
}

// holds reports whether a path has a content. What is no file, such as a folder, has another one.
func (b *beside) holds(name, digest string) (bool, error) {
	if st, err := b.fsys.Lstat(name); err == nil && !st.Mode().IsRegular() {
		return false, nil
	}
	have, err := b.tree.Found(name)
	return have == digest, err
}

// beside prepares the record of what is put beside the specification. What it replaces is stored.
func (p *publication) beside(out Output) error {
	b := p.r.beside.Load()
	body := &machine.PublishedBody{Node: p.a.Node, Generation: p.a.Generation, Attempt: p.a.Attempt}
	recorded := true
	for _, t := range out.Beside {
		if b == nil {
			return errNoBeside
		}
		i := slices.IndexFunc(out.Artifacts, func(o attempt.Object) bool { return o.Name == t.File })
		if i < 0 {
			return nodes.Fail("no_artifact", "the node did not leave "+t.File+", which is to be published")
		}
		have, err := b.look(t.To)
		if err == nil && have != "" {
			have, _, err = b.tree.Keep(t.To)
		}
		if err != nil {
			return err
		}
		f := machine.PublishedFile{Path: t.To, Digest: out.Artifacts[i].Digest, Size: out.Artifacts[i].Size, Previous: have}
		switch {
		case t.expects(have) || have == f.Digest:
		case t.Over != dag.OverKeep:
			return t.conflict(have)
		default:
			f.Left = true
		}
		if t.mine && t.known.Digest == f.Digest {
			f.Previous = t.known.Previous
		} else {
			recorded = false
		}
		body.Files = append(body.Files, f)
	}
	p.public = body.Files
	if len(body.Files) > 0 && !recorded {
		p.bodies = append(p.bodies, body)
	}
	return nil
}

// release puts the files that are prepared and recorded beside the specification: all of them, or none.
func (p *publication) release() (err error) {
	b := p.r.beside.Load()
	var did []machine.PublishedFile
	defer func() {
		if err == nil {
			return
		}
		for _, f := range did { // the next process does it otherwise
			_ = b.replace(f.Path, f.Digest, f.Previous)
		}
	}()
	changes := func(f machine.PublishedFile) (bool, error) {
		have, err := b.tree.Found(f.Path)
		if err == nil && have != f.Digest && have != f.Previous {
			err = nodes.Permanent(nodes.Fail(dag.OverCategory,
				f.Path+" was changed while it was to be replaced: it was left as it is"))
		}
		return have != f.Digest, err
	}
	files := slices.DeleteFunc(slices.Clone(p.public), func(f machine.PublishedFile) bool { return f.Left })
	for _, f := range files {
		if change, err := changes(f); err != nil || !change {
			if err != nil {
				return err
			}
			continue
		}
		defer b.tidy(f.Path)
		if err := b.stage(f.Path, f.Digest); err != nil {
			return err
		}
	}
	for _, f := range files {
		change, err := changes(f)
		if err == nil && change {
			err = b.put(f.Path)
			did = append(did, f)
		}
		if err != nil {
			return fmt.Errorf("run: publish %s of %s: %w", f.Path, p.a.Node, err)
		}
	}
	return nil
}
