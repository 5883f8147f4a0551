package runlog

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
	"dagrun.dev/internal/testing/night"
)

var update = flag.Bool("update", false, "write the golden files of this package anew; read the diff")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

// A disturbed run is a run with its logs.
type disturbed struct {
	t     testing.TB
	m     *disktest.Mem
	logs  *Logs
	d     *night.Driver
	warn  []string
	first int64 // event that the logs followed the run from
}

// begin creates the night's run, or opens it and resumes it.
func begin(t testing.TB, m *disktest.Mem) *disturbed {
	t.Helper()
	x := &disturbed{t: t, m: m}
	x.logs = New(func(s string) { x.warn = append(x.warn, s) })
	o := night.Options(m)
	o.Project = x.logs.Project
	x.d = night.Begin(t, o)
	x.first = x.logs.first // before the writer takes the first lines
	x.logs.Start(x.d.R, o)
	return x
}

func (x *disturbed) finish() {
	x.t.Helper()
	if err := x.d.Work(); err != nil {
		x.t.Fatal(err)
	}
	x.logs.Stop()
	if err := x.d.R.Close(); err != nil {
		x.t.Fatal(err)
	}
	if len(x.warn) > 0 {
		x.t.Error(x.warn)
	}
	if s := x.d.R.State().Run().Status; s != machine.RunDone {
		x.t.Fatalf("the run is %s", s)
	}
}

// whole is the night from its beginning to its end.
func whole(t testing.TB) *disturbed {
	t.Helper()
	x := begin(t, disktest.NewMem())
	x.finish()
	return x
}

func readLog(t testing.TB, m *disktest.Mem, name string) string {
	t.Helper()
	b, err := disk.ReadFile(m.FS(), run.Dir+"/"+run.LogsDir+"/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func allLogs(t testing.TB, m *disktest.Mem) string {
	t.Helper()
	s := ""
	for _, name := range Names {
		s += "-- " + name + " --\n" + readLog(t, m, name)
	}
	return s
}
