package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

func endless(t testing.TB, keep dag.Keep) *dag.Graph {
	return pages(t, func(p *dag.Plan) { p.Ticks = &dag.Ticks{Idle: "idle", Keep: keep} })
}

// oneTick carries out a tick and leaves it as it ended.
func oneTick(t *testing.T, g *dag.Graph, fsys disk.FS, n int) {
	t.Helper()
	o := memOptions(fsys)
	o.Now = start0.Add(time.Duration(n) * time.Hour)
	w := newWorker(t)
	w.now = o.Now
	r, err := Create(o, New{Graph: g, RunID: fmt.Sprintf("run-%d", n), Seed: int64(n), File: inputs})
	if err == nil {
		_, err = r.store.PutBytes(fmt.Appendf(nil, "what only tick %d has", n)) // named by no fact
	}
	if err == nil {
		var digest string
		if digest, err = r.store.PutBytes(fmt.Appendf(nil, "what tick %d names", n)); err == nil {
			err = disk.WriteFile(r.own, "names", []byte(digest))
		}
	}
	if err == nil {
		err = w.work(r)
	}
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func putAway(t *testing.T, fsys disk.FS, n int) {
	t.Helper()
	o := memOptions(fsys)
	o.Now = start0.Add(time.Duration(n)*time.Hour + 30*time.Minute)
	if done, err := PutAway(o); err != nil || !done {
		t.Fatal(done, err)
	}
}

func archived(t *testing.T, fsys disk.FS) (names []string) {
	t.Helper()
	list, err := fsys.ReadDir(path.Join(Dir, archives))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// weight is how many files there are, and how many bytes are in them.
func weight(t *testing.T, fsys disk.FS, dir string) (files, size int64) {
	t.Helper()
	list, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			f, s := weight(t, fsys, name)
			files, size = files+f, size+s
		} else if info, err := e.Info(); err == nil {
			files, size = files+1, size+info.Size()
		}
	}
	return files, size
}

func ticksCheck(t *testing.T, fsys disk.FS) Check {
	t.Helper()
	checks, err := Verify(memOptions(fsys), "")
	if err != nil {
		t.Fatal(err)
	}
	k := slices.IndexFunc(checks, func(c Check) bool { return c.Name == "ticks" })
	if k < 0 {
		t.Fatalf("ticks were not checked: %v", checks)
	}
	return checks[k]
}

// M-2, M-5: however many ticks there are, what is kept of them does not grow, the rest is proved, and what it cost is
// known.
func TestTicksAreRemoved(t *testing.T) {
	g, m := endless(t, dag.Keep{Runs: 3}), disktest.NewMem()
	fsys := m.FS()
	var files, size [2]int64
	for n := 1; n <= 170; n++ {
		if oneTick(t, g, fsys, n); n == 170 {
			break
		}
		putAway(t, fsys, n)
		for _, name := range archived(t, fsys) {
			d, err := disk.ReadFile(fsys, path.Join(Dir, archives, name, "names"))
			if err == nil {
				_, err = fsys.Lstat(path.Join(Dir, objectsDir, string(d[:2]), string(d[2:])))
			}
			if err != nil {
				t.Fatalf("tick %d: what %s names: %v", n, name, err)
			}
		}
		switch n {
		case 110, 160: // the store was looked through equally long ago
			files[n/150], size[n/150] = weight(t, fsys, Dir)
		}
	}
	if files[0] == 0 || files[1] > files[0] || size[1] > size[0]+1000 {
		t.Errorf("after 110 ticks there are %d files of %d bytes, after 160 %d of %d", files[0], size[0], files[1], size[1])
	}
	if got := archived(t, fsys); len(got) != 3 || !strings.HasPrefix(got[0], "tick-00000167-run-167-") {
		t.Errorf("kept are %v", got)
	}
	verified(t, fsys, "in the end")
	want := "3 before this one are kept, 166 were removed, 0 of them failed; they cost $166.00"
	if c := ticksCheck(t, fsys); c.Detail != want {
		t.Errorf("verify says: %+v", c)
	}
}

// M-5: what a tick costs does not grow with the ticks that are kept: none of them is opened.
func TestKeptTicksAreNotOpened(t *testing.T) {
	g, fsys := endless(t, dag.Keep{Runs: 3}), disktest.NewMem().FS()
	for n := 1; n <= 6; n++ {
		oneTick(t, g, fsys, n)
		if n == 6 {
			for _, name := range archived(t, fsys)[1:] {
				if err := disk.WriteFile(fsys, path.Join(Dir, archives, name, dag.OwnTick), []byte("no tick")); err != nil {
					t.Fatal(err)
				}
			}
		}
		putAway(t, fsys, n)
	}
	if got := archived(t, fsys); len(got) != 3 || !strings.HasPrefix(got[0], "tick-00000004-") {
		t.Errorf("kept are %v", got)
	}
}

func TestTicksAreRemovedByAge(t *testing.T) { // M-5
	g, fsys := endless(t, dag.Keep{For: dag.Duration(3 * time.Hour)}), disktest.NewMem().FS()
	for n := 1; n <= 10; n++ {
		oneTick(t, g, fsys, n)
		putAway(t, fsys, n)
	}
	if got := archived(t, fsys); len(got) != 3 {
		t.Errorf("kept are %v", got)
	}
}

// S-12, M-7: killed, or without power, at every step of putting a tick away, removing others and looking through the
// store.
func TestCrashWhilePuttingAway(t *testing.T) {
	g := endless(t, dag.Keep{Runs: 2})
	before := disktest.NewMem()
	for n := 1; n <= 4; n++ {
		if oneTick(t, g, before.FS(), n); n < 4 {
			putAway(t, before.FS(), n)
		}
	}
	name := path.Join(Dir, previousFile)
	data, err := disk.ReadFile(before.FS(), name)
	if err != nil {
		t.Fatal(err)
	}
	var last LastTick
	if err := json.Unmarshal(data, &last); err != nil {
		t.Fatal(err)
	}
	last.Garbage = leastGarbage
	if data, err = json.Marshal(last); err == nil {
		err = disk.WriteFile(before.FS(), name, data)
	}
	if err != nil {
		t.Fatal(err)
	}
	count, fsys := disktest.NewFaulty(before.Kill().FS(), nil)
	putAway(t, fsys, 4)
	for n := 1; n <= count.Steps(); n++ {
		m := before.Kill()
		_, fsys := disktest.NewFaulty(m.FS(), disktest.CrashAt(n))
		_, _ = PutAway(memOptions(fsys))
		for how, after := range map[string]*disktest.Mem{"killed": m.Kill(), "power lost": m.PowerLoss(nil)} {
			when := fmt.Sprintf("step %d of %d, %s", n, count.Steps(), how)
			fsys := after.FS()
			if _, err := PutAway(memOptions(fsys)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("%s: %v", when, err)
			}
			oneTick(t, g, fsys, 5)
			verified(t, fsys, when)
			if c := ticksCheck(t, fsys); !strings.Contains(c.Detail, "$2.00") && !strings.Contains(c.Detail, "$1.00") {
				t.Errorf("%s: %+v", when, c)
			}
			putAway(t, fsys, 5)
			oneTick(t, g, fsys, 6)
			verified(t, fsys, when)
			if got := archived(t, fsys); len(got) != 2 {
				t.Errorf("%s: kept are %v", when, got)
			}
		}
	}
}

// V-4: what is not as it was recorded is named.
func TestTicksThatDoNotFollow(t *testing.T) {
	g, m := endless(t, dag.Keep{Runs: 2}), disktest.NewMem()
	for n := 1; n <= 5; n++ {
		if oneTick(t, g, m.FS(), n); n < 5 {
			putAway(t, m.FS(), n)
		}
	}
	names := archived(t, m.FS())
	edit := func(name string, change func([]byte) []byte) func(disk.FS) error {
		return func(fsys disk.FS) error {
			data, err := disk.ReadFile(fsys, path.Join(Dir, name))
			if err != nil {
				return err
			}
			return disk.WriteFile(fsys, path.Join(Dir, name), change(data))
		}
	}
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(old), []byte(new)) }
	}
	for what, x := range map[string]struct {
		do   func(disk.FS) error
		want string
	}{
		"a tick that is missing": {func(fsys disk.FS) error { return fsys.RemoveAll(path.Join(Dir, archives, names[1])) },
			"tick 5 does not follow tick 3 (run run-3"},
		"an edited list":       {edit(dag.OwnRemoved, replace("run-1", "run-9")), "it is not as it was written"},
		"an edited cost":       {edit(dag.OwnRemoved, replace(`"ticks":2`, `"ticks":1`)), "it is not as it was written"},
		"no note for the next": {edit(previousFile, func(b []byte) []byte { return b[:9] }), "cannot be read"},
		"an edited log": {edit(path.Join(archives, names[0], logFile), replace("run-3", "run-7")),
			"the event was changed; restore a copy of the file; no tick after it needs it"},
		"a log that ends too early": {edit(path.Join(archives, names[0], logFile), func(b []byte) []byte {
			return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1]
		}), "its end is missing"},
	} {
		after := m.Kill()
		if err := x.do(after.FS()); err != nil {
			t.Fatal(err)
		}
		if c := ticksCheck(t, after.FS()); c.Pass || !strings.Contains(c.Detail, x.want) {
			t.Errorf("%s: %+v", what, c)
		}
	}
	if c := ticksCheck(t, m.FS()); !c.Pass {
		t.Error(c)
	}
}
