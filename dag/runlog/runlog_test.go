package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/dag/machine"
	"dagrun.dev/dag/report"
	"dagrun.dev/dag/run"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
	"dagrun.dev/internal/testing/night"
)

// T-1, R-1, C-12, C-13: the six logs of a bad night, field by field.
func TestLogs(t *testing.T) {
	x := whole(t)
	logs := allLogs(t, x.m)
	golden(t, "night.logs.txt", []byte(logs))
	if strings.ContainsAny(logs, "\x1b\x07") {
		t.Error("a control character reached the logs")
	}
	for _, name := range Names[1:] {
		last := int64(0)
		for line := range strings.Lines(readLog(t, x.m, name)) {
			var f struct{ Seq int64 }
			if err := json.Unmarshal([]byte(line), &f); err != nil || f.Seq < last {
				t.Errorf("%s: %v: %s", name, err, line)
			}
			last = f.Seq
		}
	}
}

// 000 §10, 7: what the lines cost adds up to what the run cost.
func TestCostLinesAddUp(t *testing.T) {
	x := whole(t)
	var sum, last float64
	for line := range strings.Lines(readLog(t, x.m, "cost.jsonl")) {
		var f struct{ CostUsd, CumulativeCostUsd float64 }
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		sum += f.CostUsd
		last = f.CumulativeCostUsd
	}
	if want := x.d.R.State().Ledger().Spent.USD.Float(); fmt.Sprintf("%.6f %.6f", sum, last) != fmt.Sprintf("%.6f %.6f", want, want) || want == 0 {
		t.Errorf("the lines say %v and %v, the run %v", sum, last, want)
	}
}

// T-1: logs made anew are equal byte for byte, whatever was left of the old ones.
func TestRebuildLogs(t *testing.T) {
	x := whole(t)
	want := allLogs(t, x.m)
	dir := run.Dir + "/" + run.LogsDir
	for name, spoil := range map[string]func(disk.FS) error{
		"nothing": func(disk.FS) error { return nil },
		"deleted": func(f disk.FS) error { return f.RemoveAll(dir) },
		"other": func(f disk.FS) error {
			return disk.WriteFile(f, dir+"/errors.jsonl", []byte("{\"seq\":999}\n"))
		},
		"as long as before": func(f disk.FS) error {
			b, err := disk.ReadFile(f, dir+"/errors.jsonl")
			return errors.Join(err, disk.WriteFile(f, dir+"/errors.jsonl", bytes.ToUpper(b)))
		},
	} {
		m := x.m.Kill()
		if err := spoil(m.FS()); err != nil {
			t.Fatal(err)
		}
		if err := Rebuild(night.Options(m)); err != nil {
			t.Fatal(err)
		}
		if got := allLogs(t, m); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
		if c := Verify(night.Options(m)); !c.Pass {
			t.Error(c.Detail)
		}
	}
}

// What a line says does not depend on which events shared a write.
func TestLinesDoNotDependOnBatches(t *testing.T) {
	x := begin(t, disktest.NewMem())
	x.d.Together = true
	x.finish()
	got := allLogs(t, x.m)
	if err := Rebuild(night.Options(x.m)); err != nil {
		t.Fatal(err)
	}
	if want := allLogs(t, x.m); got != want {
		t.Errorf("got\n%s\nanew\n%s", got, want)
	}
}

// T-1: killed after every event, with its logs as the crash left them, the run goes on and ends with
// logs that are those of its events, line for line; nodes ended as they do undisturbed.
func TestLogsAfterAKillAtEveryEvent(t *testing.T) {
	undisturbed := whole(t)
	events := undisturbed.d.R.Head().Seq
	dir := run.Dir + "/" + run.LogsDir
	for k := int64(3); k < events; k++ {
		for how, spoil := range []func(disk.FS) error{
			func(disk.FS) error { return nil },
			func(f disk.FS) error { return f.RemoveAll(dir) },
			func(f disk.FS) error { return errors.Join(cutLogs(f, 1), f.RemoveAll(dir+"/"+positionName)) },
			func(f disk.FS) error { return cutLogs(f, int(k)*7) },
		} {
			x := begin(t, disktest.NewMem())
			x.d.Until = k
			if err := x.d.Work(); !errors.Is(err, night.ErrStop) {
				t.Fatal(k, err)
			}
			if how > 1 {
				syncLogs(x)
			}
			m := x.m.Kill()
			x.logs.Stop()
			x.d.R.Abandon()
			if err := spoil(m.FS()); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			y := begin(t, m)
			y.finish()
			if c := Verify(night.Options(m)); !c.Pass {
				t.Fatalf("killed after event %d, way %d: %s", k, how, c.Detail)
			}
			if got, want := ends(t, m), ends(t, undisturbed.m); got != want {
				t.Fatalf("killed after event %d: got\n%s\nwant\n%s", k, got, want)
			}
		}
	}
}

// T-5: who reads along sees no log grow shorter, also where a process died before it noted how far it had written them.
func TestLogsNeverGrowShorter(t *testing.T) {
	m := whole(t).m
	o := night.Options(m)
	end := readPosition(mustSub(t, m.FS(), run.Dir)).Seq
	early := m.Kill() // its logs as they were at a third
	f, err := openLogs(night.Options(early))
	if err == nil {
		err = errors.Join(f.restart(), f.catchUp(night.Options(early), end/3), f.close())
	}
	own := mustSub(t, m.FS(), run.Dir)
	if err == nil {
		var b []byte
		b, err = disk.ReadFile(mustSub(t, early.FS(), run.Dir), run.LogsDir+"/"+positionName)
		err = errors.Join(err, disk.WriteFile(own, run.LogsDir+"/"+positionName, b))
	}
	for i := range Names { // and half a line
		b, e := disk.ReadFile(own, logName(i))
		err = errors.Join(err, e, disk.WriteFile(own, logName(i), append(b, "2030-01-"...)))
	}
	if err != nil {
		t.Fatal(err)
	}
	longest := map[string]string{}
	look := func(when string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(when, err)
		}
		for i, name := range Names {
			now, err := disk.ReadFile(own, logName(i))
			if was := longest[name]; err != nil || !strings.HasPrefix(string(now), was[:strings.LastIndexByte(was, '\n')+1]) {
				t.Errorf("%s, %s: %v, %d bytes, %d before", name, when, err, len(now), len(was))
			}
			longest[name] = string(now)
		}
	}
	look("as they are left", nil)
	f, err = openLogs(o)
	look("opened", err)
	look("half caught up", errors.Join(f.catchUp(o, end/2), f.trim(end)))
	look("caught up", f.catchUp(o, toEnd))
	look("trimmed", errors.Join(f.trim(end), f.close()))
	if c := Verify(o); !c.Pass {
		t.Error(c.Detail)
	}
}

// syncLogs waits until the logs have been written that the events ask for.
func syncLogs(x *disturbed) {
	if err := x.d.R.RecordDurable(x.d.Now, &machine.QueuedBody{}); err != nil {
		x.t.Fatal(err)
	}
	for {
		p := readPosition(mustSub(x.t, x.m.FS(), run.Dir))
		if p.Seq >= x.d.R.Head().Seq {
			return
		}
		<-time.After(time.Millisecond)
	}
}

func mustSub(t testing.TB, f disk.FS, name string) disk.FS {
	t.Helper()
	sub, err := f.Sub(name)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// cutLogs cuts the ends off the logs, as after a loss of power.
func cutLogs(f disk.FS, n int) error {
	for _, name := range Names {
		name = run.Dir + "/" + run.LogsDir + "/" + name
		b, err := disk.ReadFile(f, name)
		if err != nil {
			return err
		}
		if err := disk.WriteFile(f, name, b[:max(0, len(b)-n)]); err != nil {
			return err
		}
	}
	return nil
}

// ends are the nodes' ends without numbers, times and tries.
func ends(t testing.TB, m *disktest.Mem) string {
	t.Helper()
	s := ""
	for line := range strings.Lines(readLog(t, m, "passes.jsonl")) {
		var f map[string]any
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"seq", "ts", "startedAt", "completedAt", "durationMs", "retries", "cumulativeCostUsd"} {
			delete(f, k)
		}
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		s += string(b) + "\n"
	}
	return s
}

// A log that cannot be written is a warning, and the run ends as it would. What is missing is made
// good at the next start.
func TestLogsThatCannotBeWritten(t *testing.T) {
	m := disktest.NewMem()
	_, fsys := disktest.NewFaulty(m.FS(), func(s disktest.Step) error {
		if strings.Contains(s.Name, "jsonl") {
			return syscall.ENOSPC
		}
		return nil
	})
	var warned []string
	l := New(func(s string) { warned = append(warned, s) })
	o := run.Options{FS: fsys, Command: "test", Now: night.Start, Project: l.Project}
	r, err := run.Create(o, run.New{Graph: night.Plan(t), RunID: "run-1", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	l.Start(r, o)
	d := &night.Driver{R: r, Now: night.Start, Outcomes: night.Outcomes()}
	if err := d.Work(); err != nil {
		t.Fatal(err)
	}
	l.Stop()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r.State().Run().Status != machine.RunDone || len(warned) != 1 || !strings.Contains(warned[0], "cannot be written") {
		t.Errorf("%s, warned %q", r.State().Run().Status, warned)
	}
	if err := Update(night.Options(m)); err != nil {
		t.Fatal(err)
	}
	if got, want := allLogs(t, m), allLogs(t, whole(t).m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// T-5, 000 §10, 3: logs are never truncated, overwritten or deleted: verify finds each.
func TestVerifyFindsDamagedLogs(t *testing.T) {
	x := whole(t)
	name := run.Dir + "/" + run.LogsDir + "/decisions.jsonl"
	text := readLog(t, x.m, "decisions.jsonl")
	lines := strings.SplitAfter(text, "\n")
	for what, damage := range map[string]string{
		"overwritten":  strings.Replace(text, "accept-output", "reject-output", 1),
		"a line gone":  strings.Join(append(lines[:2:2], lines[3:]...), ""),
		"a line added": text + `{"seq":4,"ts":"x"}` + "\n",
		"shuffled":     lines[1] + lines[0] + strings.Join(lines[2:], ""),
	} {
		m := x.m.Kill()
		if err := disk.WriteFile(m.FS(), name, []byte(damage)); err != nil {
			t.Fatal(err)
		}
		if c := Verify(night.Options(m)); c.Pass || !strings.Contains(c.Detail, "decisions.jsonl") {
			t.Errorf("%s: %+v", what, c)
		}
	}
	m := x.m.Kill()
	if err := m.FS().Remove(name); err != nil {
		t.Fatal(err)
	}
	if c := Verify(night.Options(m)); c.Pass {
		t.Errorf("deleted: %+v", c)
	}
	m = x.m.Kill()
	own, place := mustSub(t, m.FS(), run.Dir), run.LogsDir+"/"+positionName
	was, err := disk.ReadFile(own, place)
	if err != nil {
		t.Fatal(err)
	}
	good := readPosition(own)
	for i := range was {
		b := bytes.Clone(was)
		b[i] ^= 1
		if err := disk.WriteFile(own, place, b); err != nil {
			t.Fatal(err)
		}
		p := readPosition(own)
		same := p.Format == good.Format && p.Seq == good.Seq && p.Sizes == good.Sizes
		if c := Verify(night.Options(m)); !c.Pass || c.Pending != p.damaged || !same && !p.damaged {
			t.Errorf("%s: %+v", b, c)
		}
	}
	if err := Update(night.Options(m)); err != nil {
		t.Fatal(err)
	}
	if c := Verify(night.Options(m)); !c.Pass || c.Pending {
		t.Errorf("made anew: %+v", c)
	}
}

// Whoever is killed while it makes the logs leaves some of them, and that is no fault.
func TestVerifyOfLogsHalfMade(t *testing.T) {
	x := whole(t)
	folder := run.Dir + "/" + run.LogsDir + "/"
	for made := range Names {
		m := x.m.Kill()
		for i, name := range append(Names[:], positionName) {
			var err error
			if i < made {
				err = disk.WriteFile(m.FS(), folder+name, nil)
			} else {
				err = m.FS().Remove(folder + name)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if c := Verify(night.Options(m)); !c.Pass {
			t.Errorf("%d made: %+v", made, c)
		}
	}
}

// A run that is archived takes its logs along, and the next begins its own.
func TestFreshLogs(t *testing.T) {
	x := whole(t)
	old := allLogs(t, x.m)
	to, err := run.Archive(night.Options(x.m))
	if err != nil {
		t.Fatal(err)
	}
	b, err := disk.ReadFile(x.m.FS(), to+"/"+run.LogsDir+"/passes.jsonl")
	if err != nil || !strings.Contains(old, string(b)) || len(b) == 0 {
		t.Error(err, string(b))
	}
	y := begin(t, x.m)
	y.finish()
	if got := allLogs(t, x.m); got != old {
		t.Errorf("got\n%s\nwant\n%s", got, old)
	}
}

// A new run's logs follow it from its first event: nothing is read back.
func TestNewRunIsNotReadBack(t *testing.T) {
	x := begin(t, disktest.NewMem())
	if x.first != 1 {
		t.Errorf("the logs follow the run from event %d: the lines before it come from the disk", x.first)
	}
	x.finish()
}

// Nodes that say nothing cost at most two lines.
func TestSilentNodesAreShort(t *testing.T) {
	x := whole(t)
	n := 0
	for _, name := range Names {
		for line := range strings.Lines(readLog(t, x.m, name)) {
			if strings.Contains(line, "quiet") {
				n += len(line)
			}
			if strings.Contains(line, `"join"`) {
				t.Errorf("%s tells of a join: %s", name, line)
			}
		}
	}
	if n > 220 {
		t.Errorf("a silent node has %d bytes of logs", n)
	}
}

func BenchmarkProject(b *testing.B) {
	x := whole(b)
	_, end, _ := last(b, x)
	l := New(func(s string) { b.Error(s) })
	st := x.d.R.State()
	b.ReportAllocs()
	for i := range b.N {
		e := *end
		e.Seq = int64(i + 1)
		l.Project(&e, st)
	}
}

// BenchmarkLines measures making the lines of a silent node's end.
func BenchmarkLines(b *testing.B) {
	x := whole(b)
	en, _, _ := last(b, x)
	n := 0
	b.ReportAllocs()
	for range b.N {
		en.lines(func(_ int, line []byte) { n += len(line) })
	}
}

// last returns the end of the silent node.
func last(t testing.TB, x *disturbed) (entry, *machine.Event, bool) {
	t.Helper()
	var en entry
	var end *machine.Event
	err := run.Walk(night.Options(x.m), 0, func(e *machine.Event, st *machine.State) error {
		if b, ok := e.Body.(*machine.FinishedBody); ok && b.Node == "quiet" {
			en, _ = newEntry(e, st)
			end = e
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return en, end, true
}

// The summary of a run that has ended stands beside the logs (L-6).
func TestSaveSummary(t *testing.T) {
	m := disktest.NewMem()
	night.Whole(t, m)
	o := night.Options(m)
	r, _, err := run.OpenReadOnly(o)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sum, err := report.NewSummary(r, o, report.NewStatus(r, "out", night.Start))
	if err != nil {
		t.Fatal(err)
	}
	if err := SaveSummary(o, sum); err != nil {
		t.Fatal(err)
	}
	golden(t, "night.run.yaml", []byte(readLog(t, m, "run-run-1.yaml")))
}

// B-10: any text becomes a JSON string that reads back.
func FuzzQuoted(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[2J\x07", "a\nb\tc", "\xff\xfe", "\u009b31m", "日本"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := string(appendQuoted(nil, s))
		var back string
		if err := json.Unmarshal([]byte(quoted), &back); err != nil || back != strings.ToValidUTF8(s, "\uFFFD") && len(back) == 0 && s != "" {
			t.Errorf("%q: %v", quoted, err)
		}
	})
}
