package artifact

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

func memStore(t *testing.T) (*disktest.Mem, *Store) {
	t.Helper()
	m := disktest.NewMem()
	return m, NewStore(m.FS(), nil)
}

func read(t *testing.T, s *Store, digest string) string {
	t.Helper()
	b, err := s.Get(digest)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestStoreKeepsContentOnce(t *testing.T) {
	m, s := memStore(t)
	d1, n, err := s.Put(strings.NewReader("hello"))
	if err != nil || n != 5 || d1 != "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" {
		t.Fatal(d1, n, err)
	}
	d2, err := s.PutBytes([]byte("hello"))
	if err != nil || d2 != d1 {
		t.Fatal(d2, err)
	}
	if got := read(t, s, d1); got != "hello" {
		t.Fatal(got)
	}
	list, _ := m.FS().ReadDir(".")
	if len(list) != 1 || list[0].Name() != "2c" {
		t.Fatal("leftovers beside the object:", list)
	}
	if list, _ = m.FS().ReadDir("2c"); len(list) != 1 {
		t.Fatal("stored more than once:", list)
	}
}

// A hollow is a file with holes, longer than any disk.
type hollow struct{ fs.FileInfo }

func (hollow) Stat() (fs.FileInfo, error) { return hollow{}, nil }
func (hollow) Name() string               { return "hollow" }
func (hollow) Size() int64                { return math.MaxInt64 - 1 }
func (hollow) Read([]byte) (int, error)   { panic("it is read") }

// S-10, e-work/28: what the disk has no room for does not fill it.
func TestPutLeavesTheDiskRoom(t *testing.T) {
	fsys, err := disk.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	if _, _, err := NewStore(fsys, nil).Put(hollow{}); !disk.Full(err) {
		t.Errorf("%v, want that the disk is full", err)
	}
}

func TestReadsAreChecked(t *testing.T) {
	m, s := memStore(t)
	d, _, err := s.Put(strings.NewReader("a long enough text"))
	if err != nil {
		t.Fatal(err)
	}
	f, _ := m.FS().OpenFile(objectName(d), os.O_RDWR, 0)
	f.WriteAt([]byte("X"), 3)
	var bad *Corrupt
	if _, err := s.Get(d); !errors.As(err, &bad) || bad.Want != d || bad.Got == d {
		t.Fatal(err)
	}
	if err := s.Verify(d); !errors.As(err, &bad) {
		t.Fatal(err)
	}
	// Putting the right content again mends it, in a process that does not know of it.
	if _, _, err := NewStore(m.FS(), nil).Put(strings.NewReader("a long enough text")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, s, d); got != "a long enough text" {
		t.Fatal(got)
	}
	if _, err := s.Open(strings.Repeat("0", 64)); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, name := range []string{"", "../../etc/passwd", strings.Repeat("A", 64), "2c/f2"} {
		if _, err := s.Open(name); err == nil {
			t.Errorf("opened %q", name)
		}
	}
}

func TestPutsFromManyGoroutines(t *testing.T) {
	_, s := memStore(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := s.PutBytes([]byte(strings.Repeat("x", i%7))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 7 {
		read(t, s, Digest([]byte(strings.Repeat("x", i))))
	}
}

// Whatever step is the last: an object that Put returned is there and right, also after a loss of
// power; what is left of an unfinished one is swept.
func TestPutSurvivesACrashAtEveryStep(t *testing.T) {
	contents := []string{"one", "two", "one", "three"}
	put := func(fsys disk.FS) (kept []string) {
		s := NewStore(fsys, nil)
		for _, c := range contents {
			if d, _, err := s.Put(strings.NewReader(c)); err == nil {
				kept = append(kept, d)
			}
		}
		return kept
	}
	count, fsys := disktest.NewFaulty(disktest.NewMem().FS(), nil)
	put(fsys)
	for n := 1; n <= count.Steps(); n++ {
		m := disktest.NewMem()
		_, fsys := disktest.NewFaulty(m.FS(), disktest.CrashAt(n))
		kept := put(fsys)
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil)} {
			s := NewStore(after.FS(), nil)
			if err := s.Sweep(); err != nil {
				t.Fatal(err)
			}
			for _, d := range kept {
				if err := s.Verify(d); err != nil {
					t.Errorf("step %d, %s: %v", n, name, err)
				}
			}
			list, _ := after.FS().ReadDir(".")
			for _, e := range list {
				if !e.IsDir() {
					t.Errorf("step %d, %s: left %s", n, name, e.Name())
				}
			}
		}
	}
}

func newTree(t *testing.T, fsys disk.FS) (*Tree, *Store) {
	t.Helper()
	if err := fsys.MkdirAll("own/objects"); err != nil {
		t.Fatal(err)
	}
	objects, err := fsys.Sub("own/objects")
	if err != nil {
		t.Fatal(err)
	}
	s := NewStore(objects, nil)
	return NewTree(fsys, s, "own"), s
}

func text(t *testing.T, fsys disk.FS, name string) string {
	t.Helper()
	b, err := disk.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// S-9: the version that is replaced is kept under a name of its own, and none is overwritten.
func TestBackupsAreNeverOverwritten(t *testing.T) {
	m := disktest.NewMem()
	tree, s := newTree(t, m.FS())
	one, _ := s.PutBytes([]byte("one"))
	two, _ := s.PutBytes([]byte("two"))
	for _, c := range []struct{ digest, want, content string }{
		{one, "own/passes/pass-001/artifact-backup.html", "one"},
		{one, "own/passes/pass-001/artifact-backup.html", "one"}, // the same step again, after a crash
		{two, "own/passes/pass-001/artifact-backup-2.html", "two"},
		{one, "own/passes/pass-001/artifact-backup.html", "one"},
	} {
		got, err := tree.Backup("artifact.html", c.digest, "own/passes/pass-001")
		if err != nil || got != c.want {
			t.Fatalf("%s, %v; want %s", got, err, c.want)
		}
		if text(t, m.FS(), got) != c.content {
			t.Fatalf("%s holds %q", got, text(t, m.FS(), got))
		}
	}
	for name, want := range map[string]string{"docs/a.b.html": "docs-a.b-backup.html", "Makefile": "Makefile-backup", ".profile": ".profile-backup"} {
		if got, err := tree.Backup(name, one, "own/n"); err != nil || got != "own/n/"+want {
			t.Errorf("%s: %s %v", name, got, err)
		}
	}
}

func TestWhatIsFound(t *testing.T) {
	m := disktest.NewMem()
	tree, s := newTree(t, m.FS())
	one, _ := s.PutBytes([]byte("one"))
	two, _ := s.PutBytes([]byte("two"))
	look := func(want string) {
		t.Helper()
		if got, err := tree.Found("a.html"); err != nil || got != want {
			t.Fatalf("%s %v, want %s", got, err, want)
		}
	}
	look("")
	for _, digest := range []string{one, two} {
		if err := tree.Promote("a.html", digest); err != nil {
			t.Fatal(err)
		}
		look(digest)
	}
	// An edit in place harms no stored version.
	f, _ := m.FS().OpenFile("a.html", os.O_WRONLY, 0)
	f.WriteAt([]byte("!"), 0)
	look(Digest([]byte("!wo")))
	if err := s.Verify(two); err != nil {
		t.Fatal(err)
	}
	if d, n, err := tree.Keep("a.html"); err != nil || n != 3 || read(t, s, d) != "!wo" {
		t.Fatal(d, n, err)
	}
}

// Whatever step of publishing is the last: the live file is the old version or the new one.
func TestPromoteSurvivesACrashAtEveryStep(t *testing.T) {
	// try publishes a second version with a disk that crashes at step n (0 = never).
	try := func(n int) (m *disktest.Mem, steps int, err error) {
		m = disktest.NewMem()
		tree, s := newTree(t, m.FS())
		one, _ := s.PutBytes([]byte("one"))
		two, _ := s.PutBytes([]byte("two"))
		if err := tree.Promote("docs/a.html", one); err != nil {
			t.Fatal(err)
		}
		hook := disktest.CrashAt(n)
		if n == 0 {
			hook = nil
		}
		f, fsys := disktest.NewFaulty(m.FS(), hook)
		tree = NewTree(fsys, s, "own")
		if _, err = tree.Backup("docs/a.html", one, "own/n"); err == nil {
			err = tree.Promote("docs/a.html", two)
		}
		return m, f.Steps(), err
	}
	_, steps, err := try(0)
	if err != nil || steps < 8 {
		t.Fatalf("%d steps, %v", steps, err)
	}
	for n := 1; n <= steps; n++ {
		m, _, err := try(n)
		if err == nil {
			t.Errorf("step %d did not fail", n)
		}
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil)} {
			if got := text(t, after.FS(), "docs/a.html"); got != "one" && got != "two" {
				t.Errorf("step %d, %s: %q", n, name, got)
			}
		}
	}
}

// No path leaves the output directory, by name or by link; the run's own folder holds no artifact.
func TestNoPathLeavesTheOutputDirectory(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	fsys, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	tree, s := newTree(t, fsys)
	d, _ := s.PutBytes([]byte("mine"))
	for _, name := range []string{"../x", "/x", "a/../../x", "", ".", "own/state.json", "OWN/x", "a\\b", "a\nb", "a//b", "a/."} {
		if err := tree.Promote(name, d); err == nil {
			t.Errorf("%q was published", name)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := tree.Promote("out/x", d); err == nil {
		t.Error("published through a link")
	}
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(dir, "link.html")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tree.Live("link.html"); err == nil {
		t.Error("read through a link")
	}
	if _, _, err := tree.Keep("link.html"); err == nil {
		t.Error("stored a link")
	}
	// Publishing puts a file in the link's place and leaves what it pointed to alone.
	if err := tree.Promote("link.html", d); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(secret); string(b) != "secret" {
		t.Errorf("outside file holds %q", b)
	}
	if list, _ := os.ReadDir(outside); len(list) != 1 {
		t.Error("something was written outside:", list)
	}
	fi, err := os.Lstat(filepath.Join(dir, "link.html"))
	if err != nil || fi.Mode() != 0o600 {
		t.Error(fi.Mode(), err)
	}
	if fi, _ = os.Stat(filepath.Join(dir, "own/objects", d[:2])); fi.Mode().Perm() != 0o700 {
		t.Error(fi.Mode())
	}
}

// A named pipe in the place of a file blocks nobody.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	fsys, err := disk.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	tree, _ := newTree(t, fsys)
	if err := fsys.MkdirAll("dir.html"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tree.Live("dir.html"); err == nil {
		t.Error("read a directory")
	}
	if f, err := tree.Found("dir.html"); err == nil {
		t.Error("looked at a directory:", f)
	}
}

// The read that reaches the end reports a wrong content even to readers that stop at io.EOF.
func TestCheckedReaderNeverEndsQuietly(t *testing.T) {
	m, s := memStore(t)
	d, _ := s.PutBytes([]byte("content"))
	f, _ := m.FS().OpenFile(objectName(d), os.O_RDWR, 0)
	f.Truncate(3)
	r, err := s.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, r); err == nil {
		t.Fatal("a cut object was read to its end without an error")
	}
}
