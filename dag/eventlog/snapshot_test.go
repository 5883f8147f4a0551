package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

func sample(seq int64) *Snapshot {
	return &Snapshot{
		Head:  Head{Seq: seq, Hash: strings.Repeat("ab", 32), Offset: 100 * seq},
		Index: json.RawMessage(`[{"name":",\"saved_at\":\"x\",\"sha256\":\""}]`), // looks like members, is a name
		Plan:  strings.Repeat("cd", 32), RunID: testRun, SavedAt: start0.Add(time.Duration(seq) * time.Second),
		State: fmt.Appendf(nil, `{"nodes":[1,2,3],"seq":%d}`, seq),
	}
}

// A lyingDisk gives back a file that is opened to be read with a byte changed.
type lyingDisk struct{ disk.FS }

func (l lyingDisk) OpenFile(name string, flag int, perm fs.FileMode) (disk.File, error) {
	f, err := l.FS.OpenFile(name, flag, perm)
	if flag == os.O_RDONLY {
		f = lyingFile{f}
	}
	return f, err
}

type lyingFile struct{ disk.File }

func (f lyingFile) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	if n > 0 {
		b[0]++
	}
	return n, err
}

// What a disk does not give back as it was written takes the place of nothing.
func TestWriteTwiceReadsBack(t *testing.T) {
	m := disktest.NewMem()
	if err := WriteTwice(m.FS(), "f", []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := WriteTwice(lyingDisk{m.FS()}, "f", []byte("new")); err == nil || !strings.Contains(err.Error(), "not what was written") {
		t.Errorf("error %v", err)
	}
	for _, name := range []string{"f", BackupName("f")} {
		if b, err := disk.ReadFile(m.FS(), name); err != nil || string(b) != "old" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

func TestSnapshotComesBack(t *testing.T) {
	want := sample(1000007)
	b, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) {
		t.Fatalf("not JSON: %s", b)
	}
	got, err := DecodeSnapshot(b)
	if err != nil {
		t.Fatal(err)
	}
	if got.Head != want.Head || string(got.State) != string(want.State) || string(got.Index) != string(want.Index) ||
		got.Plan != want.Plan || got.RunID != want.RunID || !got.SavedAt.Equal(want.SavedAt) {
		t.Fatalf("%+v", got)
	}
}

// S-4: a snapshot with any bit changed, or cut anywhere, is not used.
func TestDamagedSnapshotsAreNotUsed(t *testing.T) {
	b, err := sample(1000001).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		if _, err := DecodeSnapshot(b[:i]); err == nil {
			t.Fatalf("cut at %d is accepted", i)
		}
		for bit := range 8 {
			c := bytes.Clone(b)
			c[i] ^= 1 << bit
			if _, err := DecodeSnapshot(c); err == nil {
				t.Fatalf("byte %d bit %d is accepted", i, bit)
			}
		}
	}
}

// Of another version there is none: the log says the same. A newer one is refused.
func TestSnapshotOfAnotherVersionIsNotUsed(t *testing.T) {
	for version, missing := range map[int]bool{SnapshotFormat - 1: true, SnapshotFormat: false, SnapshotFormat + 1: false} {
		b, err := sample(7).Encode()
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.Replace(b, fmt.Appendf(nil, `{"format":%d,`, SnapshotFormat), fmt.Appendf(nil, `{"format":%d,`, version), 1)
		copy(b[sumAt(b):], noSum)
		sum := sha256.Sum256(b)
		hex.Encode(b[sumAt(b):], sum[:])
		m := disktest.NewMem()
		if err := disk.WriteFile(m.FS(), "snapshot.json", b); err != nil {
			t.Fatal(err)
		}
		_, err = ReadSnapshot(m.FS(), "snapshot.json")
		if errors.Is(err, fs.ErrNotExist) != missing || (err == nil) != (version == SnapshotFormat) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestSnapshotWithoutARequiredMemberIsNotUsed(t *testing.T) {
	for name, spoil := range map[string]func(*Snapshot){
		"run":   func(s *Snapshot) { s.RunID = "" },
		"plan":  func(s *Snapshot) { s.Plan = "" },
		"head":  func(s *Snapshot) { s.Head = Head{} },
		"state": func(s *Snapshot) { s.State = nil },
		"time":  func(s *Snapshot) { s.SavedAt = time.Time{} },
	} {
		s := sample(1000001)
		spoil(s)
		if b, err := s.Encode(); err == nil {
			if _, err := DecodeSnapshot(b); err == nil {
				t.Errorf("accepted without %s", name)
			}
		}
	}
}

// S-4: whatever step of writing a snapshot is the last, killed or with the power lost, one whole
// snapshot is there afterwards: the new one or the one before.
func TestSnapshotSurvivesACrashAtEveryStep(t *testing.T) {
	write := func(fsys disk.FS, seq int64) error {
		return WriteSnapshot(fsys, "snapshot.json", sample(seq))
	}
	count, fsys := disktest.NewFaulty(disktest.NewMem().FS(), nil)
	if err := write(fsys, 1000001); err != nil {
		t.Fatal(err)
	}
	if count.Steps() < 8 {
		t.Fatalf("only %d steps", count.Steps())
	}
	for n := 1; n <= count.Steps(); n++ {
		m := disktest.NewMem()
		if err := write(m.FS(), 1000001); err != nil {
			t.Fatal(err)
		}
		_, fsys := disktest.NewFaulty(m.FS(), disktest.CrashAt(n))
		if err := write(fsys, 1000002); err == nil {
			t.Fatalf("step %d did not fail", n)
		}
		for name, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil), "half kept": m.PowerLoss(func(n int) int { return n / 2 })} {
			s, err := ReadSnapshot(after.FS(), "snapshot.json")
			if err != nil {
				t.Fatalf("step %d, %s: %v", n, name, err)
			}
			if s.Head.Seq != 1000001 && s.Head.Seq != 1000002 {
				t.Fatalf("step %d, %s: head %d", n, name, s.Head.Seq)
			}
			bak, err := ReadSnapshot(after.FS(), "snapshot.json.bak")
			if err != nil || bak.Head.Seq > s.Head.Seq {
				t.Fatalf("step %d, %s: second copy: %v", n, name, err)
			}
		}
	}
}

// A snapshot never runs ahead of what is durable of its log.
func TestSnapshotWaitsForTheLog(t *testing.T) {
	m := disktest.NewMem()
	l, err := Create(m.FS(), logName, testRun, Options{SyncWithin: time.Hour}, story()[:1])
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	head, err := l.Append(story()[1:4])
	if err != nil {
		t.Fatal(err)
	}
	s := NewSaver(l)
	if in, ok := s.DueIn(head.Seq); !ok || in <= 0 {
		t.Error("due at once")
	}
	snap := sample(1000001)
	snap.Head = head
	s.Save(func() (int64, func() error, error) {
		return snap.Head.Seq, func() error { return WriteSnapshot(m.FS(), "snapshot.json", snap) }, nil
	})
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.DueIn(head.Seq); ok {
		t.Error("what was written is due again")
	}
	if l.Synced() < head.Seq {
		t.Fatalf("snapshot of %d, durable is %d", head.Seq, l.Synced())
	}
	after := m.PowerLoss(nil)
	if got, err := ReadSnapshot(after.FS(), "snapshot.json"); err != nil || got.Head != head {
		t.Fatalf("%+v %v", got, err)
	}
	if _, _, err := Read(after.FS(), logName, head, func(*machine.Event, *Envelope) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

// The newest of several snapshots asked for in a row is the one that stays.
func TestLastSnapshotWins(t *testing.T) {
	m := disktest.NewMem()
	l, err := Create(m.FS(), logName, testRun, Options{}, story())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := NewSaver(l)
	for i := range int64(20) {
		snap := sample(1000000 + i)
		snap.Head.Seq = l.Head().Seq
		snap.Head.Offset = i + 1
		s.Save(func() (int64, func() error, error) {
			return snap.Head.Seq, func() error { return WriteSnapshot(m.FS(), "snapshot.json", snap) }, nil
		})
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadSnapshot(m.FS(), "snapshot.json"); err != nil || got.Head.Offset != 20 {
		t.Fatalf("%+v %v", got, err)
	}
}

// S-11: a second writer learns who holds the lock.
func TestSecondWriterIsNamedTheHolder(t *testing.T) {
	fsys := open1(t)
	l, err := AcquireLock(fsys, "lock", "dagrun apply", start0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = AcquireLock(fsys, "lock", "dagrun resume", start0)
	var held *Locked
	if !errors.As(err, &held) || held.Holder.PID != os.Getpid() || !strings.Contains(err.Error(), "dagrun apply") || !strings.Contains(err.Error(), "2026-03-01T12:00:00Z") {
		t.Fatalf("%v", err)
	}
	if h, ok, err := ReadLock(fsys, "lock"); !ok || err != nil || h.Command != "dagrun apply" {
		t.Fatalf("%+v %v %v", h, ok, err)
	}
	for range 2 {
		if err := l.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok, err := ReadLock(fsys, "lock"); ok || err != nil {
		t.Fatal("still held", err)
	}
	again, err := AcquireLock(fsys, "lock", "dagrun resume", start0)
	if err != nil {
		t.Fatal(err)
	}
	again.Release()
}

// S-11: the lock of a process that was killed is taken over, and nobody says it is held; also while a child that it was
// just starting still has a copy of the open file.
func TestLockOfADeadProcessIsTakenOver(t *testing.T) {
	if os.Getenv("EVENTLOG_LOCK_CHILD") != "" {
		fsys, err := disk.Open(os.Getenv("EVENTLOG_LOCK_CHILD"))
		var l *Lock
		if err == nil {
			l, err = AcquireLock(fsys, "lock", "dagrun apply", start0)
		}
		if err == nil {
			err = copyToChild(l.file)
		}
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
		}
		os.Stdout.WriteString("held\n")
		select {} // until killed
	}
	fsys := open1(t)
	child := exec.Command(os.Args[0], "-test.run=^TestLockOfADeadProcessIsTakenOver$")
	child.Env = append(os.Environ(), "EVENTLOG_LOCK_CHILD="+fsys.Path("."))
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	n, _ := out.Read(line)
	if string(line[:n]) != "held\n" {
		t.Fatalf("%q", line[:n])
	}
	var held *Locked
	if _, err := AcquireLock(fsys, "lock", "x", start0); !errors.As(err, &held) || held.Holder.PID != child.Process.Pid {
		t.Fatalf("while it lives: %v", err)
	}
	child.Process.Kill()
	child.Wait()
	if h, ok, err := ReadLock(fsys, "lock"); ok || err != nil || h.PID != child.Process.Pid {
		t.Fatalf("dead holder: %+v %v %v", h, ok, err)
	}
	l, err := AcquireLock(fsys, "lock", "x", start0)
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
}

// copyToChild starts a process that has the file open for 0.3 s.
func copyToChild(f disk.File) error {
	raw, err := f.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	child := exec.Command("sleep", "0.3")
	if cerr := raw.Control(func(fd uintptr) {
		var copied int
		if copied, err = syscall.Dup(int(fd)); err == nil {
			child.ExtraFiles = []*os.File{os.NewFile(uintptr(copied), "lock")}
		}
	}); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return child.Start()
}

func TestHoldersThatCannotBeAsked(t *testing.T) {
	me := self("x", start0)
	other := me
	other.Host = "another-machine"
	reborn := me
	reborn.Birth = "1"
	before := me
	before.BootID = "boot before"
	for name, c := range map[string]struct {
		h     Holder
		alive bool
	}{"this process": {me, true}, "another machine": {other, true}, "a later process of the pid": {reborn, false}, "before the boot": {before, false}, "nobody": {Holder{}, false}} {
		if c.h.Alive() != c.alive {
			t.Errorf("%s: alive is %v", name, !c.alive)
		}
	}
	if _, ok, err := ReadLock(open1(t), "lock"); ok || err != nil {
		t.Error("no file:", ok, err)
	}
}

func open1(t *testing.T) disk.FS {
	t.Helper()
	fsys, err := disk.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fsys.Close() })
	return fsys
}

// A log on the machine's disk: modes, no leftovers, refusal of what is no regular file.
func TestLogOnDisk(t *testing.T) {
	fsys := open1(t)
	l, err := Create(fsys, logName, testRun, Options{}, story())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(fsys, logName, testRun, Options{}, story()); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("second create: %v", err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	list, _ := fsys.ReadDir(".")
	var names []string
	for _, e := range list {
		fi, _ := e.Info()
		if fi.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), fi.Mode())
		}
		names = append(names, e.Name())
	}
	if got := strings.Join(names, " "); got != "events.ndjson events.ndjson.synced" {
		t.Errorf("left: %s", got)
	}
	if err := os.Symlink(fsys.Path(logName), fsys.Path("link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "."} {
		if _, _, err := Open(fsys, name, Head{}, Options{}, nil); err == nil {
			t.Errorf("opened %s", name)
		}
	}
	if _, _, err := Open(fsys, "none", Head{}, Options{}, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// S-2: what a snapshot is made of is read back as it was, byte for byte, so that it can be held against a replay.
func TestPartsOfASnapshotComeBackAsTheyWere(t *testing.T) {
	text := json.RawMessage(`{"text":"</html> & \u2028"}`)
	b, err := (&Snapshot{Head: Head{Seq: 1, Hash: noSum, Offset: 9}, RunID: "r", Plan: "p", SavedAt: time.Unix(9, 0).UTC(),
		Index: text, Records: text, State: text}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := DecodeSnapshot(b)
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	for name, got := range map[string]json.RawMessage{"index": s.Index, "records": s.Records, "state": s.State} {
		if string(got) != string(text) {
			t.Errorf("%s: %s, want %s", name, got, text)
		}
	}
}

// S-2: whatever a write of the snapshot and the document costs, sixty times that goes by before the next one: together they
// stay under two per cent of the time.
func TestWritesAreAFiftiethOfTheTime(t *testing.T) {
	for _, c := range []struct{ take, write, want time.Duration }{
		{0, time.Microsecond, leastInterval},
		{time.Second, 3 * time.Second, 240 * time.Second},
	} {
		s := &Saver{last: time.Now(), cost: c.take, took: c.write}
		if in, ok := s.DueIn(1); !ok || in > c.want || in < c.want-time.Minute {
			t.Errorf("taken in %s and written in %s it is due in %s, want %s", c.take, c.write, in, c.want)
		}
		s.last = s.last.Add(-c.want)
		if in, ok := s.DueIn(1); !ok || in != 0 {
			t.Errorf("it is due in %s after %s", in, c.want)
		}
	}
}
