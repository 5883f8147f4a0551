package run

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/artifact"
	"dagrun.dev/dag/attempt"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
	"dagrun.dev/nodes"
)

// site is a plan whose only node publishes two files, of which one replaces another.
func site(t *testing.T, change func(*dag.Publication)) *dag.Graph {
	t.Helper()
	list := []dag.Publication{{File: "a.md", To: "docs/a.md"}, {File: "b.md", To: "docs/new/b.md"}}
	before := artifact.Digest([]byte("before\n"))
	list[0].Expect = &before
	if change != nil {
		change(&list[0])
	}
	g, err := dag.NewGraph(&dag.Plan{Format: dag.Format, Name: "site", Nodes: []dag.Node{{
		ID: "make", Kind: "exec", Effect: "idempotent", Writes: []string{"a.md", "b.md"}, Publish: list,
		Retry: dag.Retry{Attempts: 2},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// user makes the folder of the specification, in one tree with the run's.
func user(t *testing.T, m *disktest.Mem) {
	t.Helper()
	fsys := m.FS()
	for _, dir := range []string{"out", "spec/docs"} {
		if err := fsys.MkdirAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := disk.WriteFile(fsys, "spec/docs/a.md", []byte("before\n")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"spec", "."} {
		if err := fsys.SyncDir(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// shown is what stands in the folder of the specification.
func shown(t *testing.T, fsys disk.FS) string {
	t.Helper()
	var b strings.Builder
	var visit func(dir string)
	visit = func(dir string) {
		list, err := fsys.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			name := dir + "/" + e.Name()
			if e.IsDir() {
				visit(name)
				continue
			}
			text, err := disk.ReadFile(fsys, name)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s: %s", strings.TrimPrefix(name, "spec/"), text)
		}
	}
	visit("spec")
	return b.String()
}

const (
	siteBefore = "docs/a.md: before\n"
	siteAfter  = "docs/a.md: a\ndocs/new/b.md: b\n"
)

// publishSite opens or creates the run and carries out the next attempt of the node; hook is called when what is to be
// published is recorded.
func publishSite(t *testing.T, g *dag.Graph, fsys disk.FS, at time.Time, hook func()) (r *Run, err error) {
	out, err := fsys.Sub("out")
	if err != nil {
		return nil, err
	}
	spec, err := fsys.Sub("spec")
	if err != nil {
		return nil, err
	}
	has := false
	if own, bad := out.Sub(Dir); bad == nil {
		if has, err = hasRun(own); err != nil {
			return nil, err
		}
	}
	if has {
		r, _, err = Open(memOptions(out))
	} else {
		r, err = Create(memOptions(out), New{Graph: g, RunID: "run-1", Seed: 1})
	}
	if err != nil {
		return nil, err
	}
	err = r.besideIn(at, spec)
	if err == nil {
		err = r.Resume(at, "resume", nil)
	}
	if err != nil {
		return r, err
	}
	v, _ := r.State().NodeByID("make")
	if v.Status.Ended() {
		return r, nil
	}
	a := Attempt{Node: "make", Generation: v.Generation, Attempt: v.Attempt + 1}
	if _, err := r.Record(at, &machine.StartedBody{Node: a.Node, Generation: a.Generation, Attempt: a.Attempt}); err != nil {
		return r, err
	}
	err = r.CheckTargets(r.Targets(v.Node, a))
	var o Output
	for _, name := range []string{"a", "b"} {
		if err != nil {
			break
		}
		object := attempt.Object{Name: name + ".md"}
		object.Digest, object.Size, err = r.Store(strings.NewReader(name + "\n"))
		o.Artifacts = append(o.Artifacts, object)
	}
	if err == nil {
		o.Beside = r.Targets(v.Node, a)
		err = r.Publish(a, o, func(bodies ...machine.Body) error {
			_, err := r.Record(at, bodies...)
			if hook != nil {
				hook()
			}
			return err
		})
	}
	end := machine.Outcome{Status: dag.StatusCompleted}
	var failed *nodes.Error
	switch {
	case errors.As(err, &failed):
		end = machine.Outcome{Status: dag.StatusFailed, Category: failed.Category, Message: failed.Error(),
			Permanent: failed.Permanent}
	case err != nil:
		end = machine.Outcome{Status: dag.StatusFailed, Category: "file_io", Message: err.Error()}
	}
	_, recorded := r.Record(at, r.State().Settle("make", end, at).Body)
	return r, errors.Join(err, recorded)
}

// M-7, S-12: the process dies, or the power fails, at every single step on the disk while a node publishes, in its
// run's folder or beside the specification. What stands there then is what was, or a part of what is to be, each file
// whole; the next process leaves all of it there or nothing, no file of its own, and the record says which.
func TestPublishingIsKilledAtEveryStep(t *testing.T) {
	g := site(t, nil)
	m := disktest.NewMem()
	user(t, m)
	count, fsys := disktest.NewFaulty(m.FS(), nil)
	if r, err := publishSite(t, g, fsys, start0, nil); err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	if got := shown(t, m.FS()); got != siteAfter {
		t.Fatalf("got\n%s", got)
	}
	var halves int
	for n := 1; n <= count.Steps(); n++ {
		m := disktest.NewMem()
		user(t, m)
		_, fsys := disktest.NewFaulty(m.FS(), disktest.CrashAt(n))
		if r, _ := publishSite(t, g, fsys, start0, nil); r != nil {
			r.Abandon()
		}
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil),
			"half kept": m.PowerLoss(func(n int) int { return n / 2 })} {
			when := fmt.Sprintf("step %d of %d, %s", n, count.Steps(), name)
			if _, err := after.FS().Sub("out/" + Dir); err != nil {
				continue // nothing had begun
			}
			for _, line := range strings.SplitAfter(shown(t, after.FS()), "\n") {
				if !strings.Contains(line, ".tmp-") && !strings.Contains(siteBefore+siteAfter, line) {
					t.Fatalf("%s: in the folder of the specification stands %q", when, line)
				}
			}
			if got := shown(t, after.FS()); got != siteBefore && got != siteAfter {
				halves++
			}
			// The next process does nothing but look what has become of the attempt.
			out, _ := after.FS().Sub("out")
			seen := checkOf(t, out, "published")
			spec, _ := after.FS().Sub("spec")
			if own, _ := out.Sub(Dir); own != nil {
				if has, err := hasRun(own); err != nil || !has {
					continue
				}
			}
			r, _, err := Open(memOptions(out))
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			open := slices.ContainsFunc(r.State().Published(), func(v machine.PublishedView) bool {
				return v.Standing == machine.PublishedOpen || v.Standing == machine.PublishedVoid
			})
			if open != seen.Pending || open && !strings.Contains(seen.Detail, "docs/new/b.md") || !open && !seen.Pass {
				t.Fatalf("%s: something is left to do: %v; verify says %+v", when, open, seen)
			}
			err = errors.Join(r.besideIn(start0, spec), r.Resume(start0, "resume", nil), r.SettleBeside(start0))
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			want := siteBefore
			if v, _ := r.State().NodeByID("make"); v.Status == machine.Completed {
				want = siteAfter
			}
			if got := shown(t, after.FS()); got != want {
				t.Fatalf("%s: got\n%swant\n%s", when, got, want)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			r, err = publishSite(t, g, after.FS(), start0.Add(time.Minute), nil)
			if err != nil {
				t.Fatalf("%s: again: %v", when, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if got := shown(t, after.FS()); got != siteAfter {
				t.Fatalf("%s: in the end\n%s", when, got)
			}
			verified(t, out, when)
		}
	}
	if halves == 0 {
		t.Error("no kill came between the two files, or left a file of the program's own")
	}
}

// checkOf is what verify says under a name once the process is gone, nothing where it does not say it.
func checkOf(t *testing.T, out disk.FS, name string) Check {
	t.Helper()
	_ = out.Remove(Dir + "/" + lockFile) // it names the process of the test, which is alive
	list, err := Verify(memOptions(out), "")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Name == name {
			return c
		}
	}
	return Check{Pass: true}
}

// M-7: verify finds that what was replaced beside the specification is lost, and in which file, also of an earlier run.
func TestReplacedFileIsLost(t *testing.T) {
	g := site(t, nil)
	m := disktest.NewMem()
	user(t, m)
	r, err := publishSite(t, g, m.FS(), start0, nil)
	if err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	out, _ := m.FS().Sub("out")
	look := func(when, want string) {
		t.Helper()
		if c := checkOf(t, out, "published"); c.Pass != (want == "") || !strings.Contains(c.Detail, want) {
			t.Errorf("%s: %+v", when, c)
		}
	}
	look("whole", "")
	before := artifact.Digest([]byte("before\n"))
	if err := out.Remove(Dir + "/" + objectsDir + "/" + before[:2] + "/" + before[2:]); err != nil {
		t.Fatal(err)
	}
	look("lost", "docs/a.md beside the specification, put there by node make")
	if _, err := Archive(memOptions(out)); err != nil {
		t.Fatal(err)
	}
	if r, err = Create(memOptions(out), New{Graph: g, RunID: "run-2", Seed: 1}); err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	look("lost by an earlier run", "docs/a.md beside the specification, put there by an earlier run")
	if err := out.Remove(Dir + "/" + publishedFile); err != nil {
		t.Fatal(err)
	}
	look("one of two copies is lost", "published.json is not the same as its second copy")
}

// revertSite opens the run and goes back to its checkpoint.
func revertSite(fsys disk.FS) (*Run, error) {
	out, err := fsys.Sub("out")
	if err != nil {
		return nil, err
	}
	spec, err := fsys.Sub("spec")
	if err != nil {
		return nil, err
	}
	r, _, err := Open(memOptions(out))
	if err != nil {
		return nil, err
	}
	if err = r.besideIn(start0, spec); err == nil {
		_, err = r.Revert(start0, "cp-1")
	}
	return r, err
}

// B-8, S-12: the process dies, or the power fails, at every single step on the disk while a run goes back to a checkpoint
// before it published. The next process finds it gone back or not, and makes what stands beside the specification agree.
func TestRevertingIsKilledAtEveryStep(t *testing.T) {
	g := site(t, nil)
	published := disktest.NewMem()
	user(t, published)
	out, _ := published.FS().Sub("out")
	r, err := Create(memOptions(out), New{Graph: g, RunID: "run-1", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Checkpoint(start0, "cp-1", "", nil)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	if r, err = publishSite(t, g, published.FS(), start0, nil); err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	if got := shown(t, published.FS()); got != siteAfter {
		t.Fatalf("got\n%s", got)
	}
	m := published.Kill()
	count, fsys := disktest.NewFaulty(m.FS(), nil)
	if r, err := revertSite(fsys); err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	if got := shown(t, m.FS()); got != siteBefore {
		t.Fatalf("got\n%s", got)
	}
	ends, halves := map[string]int{}, 0
	for n := 1; n <= count.Steps(); n++ {
		m := published.Kill()
		_, fsys := disktest.NewFaulty(m.FS(), disktest.CrashAt(n))
		if r, _ := revertSite(fsys); r != nil {
			r.Abandon()
		}
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil),
			"half kept": m.PowerLoss(func(n int) int { return n / 2 })} {
			when := fmt.Sprintf("step %d of %d, %s", n, count.Steps(), name)
			if got := shown(t, after.FS()); got != siteBefore && got != siteAfter {
				halves++
			}
			out, _ := after.FS().Sub("out")
			spec, _ := after.FS().Sub("spec")
			r, _, err := Open(memOptions(out))
			if err == nil {
				err = r.besideIn(start0, spec)
			}
			if err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			want := siteBefore
			if v, _ := r.State().NodeByID("make"); v.Status == machine.Completed {
				want = siteAfter
			}
			ends[want]++
			if got := shown(t, after.FS()); got != want {
				t.Fatalf("%s: got\n%swant\n%s", when, got, want)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err = revertSite(after.FS()); err != nil || r.Close() != nil {
				t.Fatalf("%s: again: %v", when, err)
			}
			if got := shown(t, after.FS()); got != siteBefore {
				t.Fatalf("%s: again: got\n%s", when, got)
			}
			if r, err = publishSite(t, g, after.FS(), start0.Add(time.Minute), nil); err != nil || r.Close() != nil {
				t.Fatalf("%s: published again: %v", when, err)
			}
			if got := shown(t, after.FS()); got != siteAfter {
				t.Fatalf("%s: in the end\n%s", when, got)
			}
			verified(t, out, when)
		}
	}
	if len(ends) != 2 || halves == 0 {
		t.Errorf("%d kills between the two files; the next process found %v", halves, ends)
	}
}

// M-7, S-12: every single step on the disk fails once while a node publishes, or all from one on, and the process lives.
// What it leaves is whole files, and the record says which; the next one ends with all of them.
func TestPublishingOnAFailingDisk(t *testing.T) {
	g := site(t, nil)
	m := disktest.NewMem()
	user(t, m)
	count, fsys := disktest.NewFaulty(m.FS(), nil)
	if r, err := publishSite(t, g, fsys, start0, nil); err != nil || r.Close() != nil {
		t.Fatal(err)
	}
	ends := map[string]int{}
	for n := 1; n <= count.Steps(); n++ {
		for name, hook := range map[string]func(disktest.Step) error{
			"full once":       disktest.FailAt(n, syscall.ENOSPC, nil),
			"broken once":     disktest.FailAt(n, syscall.EIO, nil),
			"read-only once":  disktest.FailAt(n, syscall.EROFS, nil),
			"full from there": fullFrom(n),
		} {
			when := fmt.Sprintf("step %d of %d, %s", n, count.Steps(), name)
			m := disktest.NewMem()
			user(t, m)
			_, fsys := disktest.NewFaulty(m.FS(), hook)
			r, err := publishSite(t, g, fsys, start0, nil)
			left := shown(t, m.FS())
			switch {
			case r == nil:
				ends["not begun"]++
			case r.err != nil || err != nil && left != siteBefore && left != siteAfter:
				ends["left to the next process"]++
			case err != nil:
				ends["put back"]++
			default:
				ends["published"]++
				if left != siteAfter {
					t.Fatalf("%s: published is\n%s", when, left)
				}
			}
			if r != nil {
				r.Abandon()
			}
			after := m.Kill()
			r, err = publishSite(t, g, after.FS(), start0.Add(time.Minute), nil)
			if err != nil {
				t.Fatalf("%s: again: %v", when, err)
			}
			if v, _ := r.State().NodeByID("make"); v.Status != machine.Completed {
				t.Fatalf("%s: the node is %s", when, v.Status)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if got := shown(t, after.FS()); got != siteAfter {
				t.Fatalf("%s: in the end\n%s", when, got)
			}
			out, _ := after.FS().Sub("out")
			verified(t, out, when)
		}
	}
	t.Log(ends)
	if ends["put back"] == 0 || ends["published"] == 0 || ends["left to the next process"] == 0 {
		t.Errorf("the processes ended so: %v", ends)
	}
}

// M-7: somebody writes one of the files while a node publishes, right before any step on the disk. What was written stays,
// and the other file does not come; once both were there, it stays beside the other. Nothing looks between the last
// comparison and the rename, which are one after the other.
func TestAnEditWhilePublishing(t *testing.T) {
	g := site(t, nil)
	// The steps of the goroutine that publishes: others come at any time.
	publishing := func(s disktest.Step) bool {
		return strings.HasPrefix(s.Name, "spec/") || strings.HasPrefix(s.Name, "out/"+Dir+"/"+objectsDir)
	}
	for _, file := range []string{"docs/a.md", "docs/new/b.md"} {
		ends := map[string]int{}
		for n, more := 1, true; more; n++ {
			m := disktest.NewMem()
			user(t, m)
			seen, lost := 0, false
			_, fsys := disktest.NewFaulty(m.FS(), func(s disktest.Step) error {
				if !publishing(s) {
					return nil
				}
				if seen++; seen != n {
					return nil
				}
				lost = s.Op == "rename" && s.Name == "spec/"+file
				return errors.Join(m.FS().MkdirAll("spec/docs/new"), disk.WriteFile(m.FS(), "spec/"+file, []byte("mine\n")))
			})
			r, err := publishSite(t, g, fsys, start0, nil)
			if r == nil || r.Close() != nil {
				t.Fatalf("step %d: %v", n, err)
			}
			v, _ := r.State().NodeByID("make")
			got := shown(t, m.FS())
			other, before, after := "docs/new/b.md: b\n", "", "docs/a.md: mine\ndocs/new/b.md: b\n"
			if file != "docs/a.md" {
				other, before, after = "docs/a.md: a\n", "docs/a.md: before\n", "docs/a.md: a\ndocs/new/b.md: mine\n"
			}
			switch more = seen >= n; {
			case !more:
			case lost:
				ends["lost"]++
			case !strings.Contains(got, file+": mine\n"):
				t.Fatalf("step %d: the edit of %s is lost:\n%s", n, file, got)
			case v.Status == machine.Completed && got == after:
				ends["completed"]++
			case r.State().FailedWith(0)[dag.OverCategory] == 1 && !strings.Contains(got, other) &&
				strings.Contains(got, before):
				ends["failed"]++
			default:
				t.Fatalf("step %d: %s %v\n%s", n, v.Status, err, got)
			}
		}
		t.Log(ends)
		if ends["lost"] != 1 || ends["completed"] == 0 || ends["failed"] == 0 {
			t.Errorf("edits of %s: %v", file, ends)
		}
	}
}
