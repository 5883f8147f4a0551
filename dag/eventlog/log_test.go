package eventlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gowebpki/jcs"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog/chain"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

const (
	testRun = "0b7c3f0e-run"
	logName = "events.ndjson"
)

var start0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// story is a short run with events of every shape that the envelope distinguishes.
func story() []machine.Event {
	at := start0
	var events []machine.Event
	for _, b := range []machine.Body{
		&machine.RunCreatedBody{RunID: testRun, Name: "demo", PlanDigest: strings.Repeat("ab", 32), Schema: Version, Seed: 7},
		&machine.InputsClonedBody{Files: 2, Bytes: 1234},
		&machine.StartedBody{Node: "a/b", Generation: 1, Attempt: 1, Reserve: dag.Amount{USD: 500000}},
		&machine.LLMCallStartedBody{CallID: "a/b.1.1", Node: "a/b", Model: "m", ProviderBaseURL: "cli:sim", PromptHash: "p", MaxTokens: 9},
		&machine.ArtifactWrittenBody{Node: "a/b", Generation: 1, Attempt: 1, Name: "x.html", Path: "x.html", Digest: strings.Repeat("cd", 32), Size: 3},
		&machine.FinishedBody{Node: "a/b", Generation: 1, Attempt: 1, Status: dag.StatusCompleted, Final: true, CostUSD: 123456, Values: map[string]json.RawMessage{"é\n\"q": json.RawMessage(`"a,\"prev_hash\":\"b"`), "n": json.RawMessage(`1.5`)}},
		&machine.RunPausedBody{Reason: "user", Message: "stop"},
	} {
		at = at.Add(334 * time.Millisecond) // some in one second
		events = append(events, machine.New(at, b))
	}
	return events
}

// newLog writes the story to a disk in memory and returns the disk, with the log closed and durable.
func newLog(t testing.TB, events []machine.Event) *disktest.Mem {
	t.Helper()
	m := disktest.NewMem()
	l, err := Create(m.FS(), logName, testRun, Options{}, events[:1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(events[1:]); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return m
}

func content(t testing.TB, m *disktest.Mem, name string) []byte {
	t.Helper()
	b, err := disk.ReadFile(m.FS(), name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// withLog returns a disk that holds the log's bytes; mark says whether all of the original was durable.
func withLog(t testing.TB, b []byte, mark []byte) *disktest.Mem {
	t.Helper()
	m := disktest.NewMem()
	if err := disk.WriteFile(m.FS(), logName, b); err != nil {
		t.Fatal(err)
	}
	if mark != nil {
		if err := disk.WriteFile(m.FS(), MarkName(logName), mark); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// readAll reads a log without writing.
func readAll(m *disktest.Mem) (types []machine.Type, tail Tail, err error) {
	_, tail, err = Read(m.FS(), logName, Head{}, func(e *machine.Event, _ *Envelope) error {
		types = append(types, e.Type)
		return nil
	})
	return types, tail, err
}

// S-1: every line is canonical JSON with the fields of the event schema, and its hash can be
// computed from the document's formula with nothing but a JSON parser and sha256.
func TestLinesFollowTheFormula(t *testing.T) {
	events := story()
	lines := bytes.SplitAfter(content(t, newLog(t, events), logName), []byte("\n"))
	if len(lines) != len(events)+1 || len(lines[len(events)]) != 0 {
		t.Fatalf("%d lines for %d events", len(lines), len(events))
	}
	prev := strings.Repeat("0", 64)
	for i, line := range lines[:len(events)] {
		canon, err := jcs.Transform(line)
		if err != nil || string(canon)+"\n" != string(line) {
			t.Errorf("line %d is not canonical: %v\n%s", i+1, err, line)
		}
		var e struct {
			EventID  string          `json:"event_id"`
			RunID    string          `json:"run_id"`
			TS       time.Time       `json:"ts"`
			Type     string          `json:"type"`
			Payload  json.RawMessage `json:"payload"`
			TraceID  string          `json:"trace_id"`
			SpanID   string          `json:"span_id"`
			PrevHash string          `json:"prev_hash"`
			Hash     string          `json:"event_hash"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.PrevHash != prev {
			t.Errorf("line %d: prev_hash %s, want %s", i+1, e.PrevHash, prev)
		}
		ts := e.TS.Format("2006-01-02T15:04:05.000Z07:00")
		sum := sha256.Sum256([]byte(e.EventID + ts + e.Type + string(e.Payload) + e.PrevHash))
		if prev = hex.EncodeToString(sum[:]); e.Hash != prev {
			t.Errorf("line %d: event_hash %s, formula gives %s", i+1, e.Hash, prev)
		}
		if !e.TS.Equal(events[i].Time) {
			t.Errorf("line %d: ts %s of an event at %v", i+1, ts, events[i].Time)
		}
		if e.RunID != testRun || e.EventID != fmt.Sprintf("e%010d", i+1) || len(e.TraceID) != 32 || len(e.SpanID) != 16 {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
}

// V-1: ids of traces and spans are derived, so that who knows the attempt finds its span.
func TestSpansNameWhatTheEventIsAbout(t *testing.T) {
	m := newLog(t, story())
	var spans, parents []string
	_, _, err := Read(m.FS(), logName, Head{}, func(_ *machine.Event, e *Envelope) error {
		spans, parents = append(spans, e.SpanID), append(parents, e.ParentSpanID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	root, attempt, call := chain.RunSpan(testRun), chain.AttemptSpan(testRun, "a/b", 1, 1), chain.CallSpan(testRun, "a/b.1.1")
	want := []string{root, root, attempt, call, attempt, attempt, root}
	wantParent := []string{"", "", root, attempt, root, root, ""}
	for i := range want {
		if spans[i] != want[i] || parents[i] != wantParent[i] {
			t.Errorf("event %d: span %s parent %s, want %s and %s", i+1, spans[i], parents[i], want[i], wantParent[i])
		}
	}
}

// S-1: what is read is what was written.
func TestReadGivesBackWhatWasAppended(t *testing.T) {
	events := story()
	m := newLog(t, events)
	i := 0
	head, tail, err := Read(m.FS(), logName, Head{}, func(e *machine.Event, env *Envelope) error {
		want, _ := machine.AppendPayload(nil, events[i].Body)
		if e.Seq != int64(i+1) || !e.Time.Equal(events[i].Time) || e.Type != events[i].Type || !bytes.Equal(env.Payload, want) {
			t.Errorf("event %d came back as %+v", i+1, e)
		}
		i++
		return nil
	})
	if err != nil || tail != (Tail{}) || head.Seq != int64(len(events)) || i != len(events) {
		t.Fatalf("head %+v tail %+v err %v after %d events", head, tail, err, i)
	}
}

// Issue "Spec to durable run": the log cut at every byte reopens, with the events whose lines are
// whole, and can be written on.
func TestCutAtEveryByte(t *testing.T) {
	whole := content(t, newLog(t, story()), logName)
	for cut := range len(whole) + 1 {
		events := bytes.Count(whole[:cut], []byte("\n"))
		m := withLog(t, whole[:cut], nil)
		n := 0
		l, tail, err := Open(m.FS(), logName, Head{}, Options{Reserve: -1}, func(*machine.Event, *Envelope) error { n++; return nil })
		if events == 0 {
			var d *Damaged
			if !errors.As(err, &d) {
				t.Fatalf("cut at %d: %v", cut, err)
			}
			continue
		}
		if err != nil || n != events {
			t.Fatalf("cut at %d: %d events, want %d: %v", cut, n, events, err)
		}
		end := bytes.LastIndexByte(whole[:cut], '\n') + 1
		if int(tail.Bytes) != cut-end || tail.Bytes > 0 && (tail.Line != int64(events+1) || tail.Offset != int64(end) || tail.Why == "") {
			t.Fatalf("cut at %d: tail %+v", cut, tail)
		}
		again := machine.New(start0, &machine.RunResumedBody{By: "resume"})
		if _, err := l.Append([]machine.Event{again}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if got, _, err := readAll(m); err != nil || len(got) != events+1 {
			t.Fatalf("cut at %d, continued: %d events, %v", cut, len(got), err)
		}
	}
}

// B-4: a cut below what was durable is no crash.
func TestCutBelowTheDurableEndIsDamage(t *testing.T) {
	full := newLog(t, story())
	whole, mark := content(t, full, logName), content(t, full, MarkName(logName))
	for cut := range len(whole) {
		_, _, err := readAll(withLog(t, whole[:cut], mark))
		var d *Damaged
		firstLine := cut > 0 && bytes.IndexByte(whole[:cut], '\n') < 0 // of which nothing is whole
		if !errors.As(err, &d) || !strings.Contains(err.Error(), "EVENT_CHAIN_BROKEN") ||
			!firstLine && !strings.Contains(d.Why, "its end is missing") {
			t.Fatalf("cut at %d of %d: %v", cut, len(whole), err)
		}
	}
}

// B-4: every single bit counts, in every field of every line.
func TestEveryBitFlipped(t *testing.T) {
	full := newLog(t, story())
	whole, mark := content(t, full, logName), content(t, full, MarkName(logName))
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') // where the last line's predecessor ends
	prev := bytes.LastIndexByte(whole[:last], '\n') + 1
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			var d *Damaged
			if _, _, err := readAll(withLog(t, b, mark)); !errors.As(err, &d) {
				t.Fatalf("byte %d bit %d, durable: %v", i, bit, err)
			}
			_, tail, err := readAll(withLog(t, b, nil))
			switch {
			case errors.As(err, &d) && i <= last:
			case err == nil && i >= last && tail.Offset >= int64(prev):
				// The end of a log of which nothing is known to be durable may be torn.
			default:
				t.Fatalf("byte %d bit %d, unsynced: tail %+v, %v", i, bit, tail, err)
			}
		}
	}
}

// B-4: lines that are whole in themselves but not where they stand.
func TestTamperedLogsAreRefused(t *testing.T) {
	full := newLog(t, story())
	whole, mark := content(t, full, logName), content(t, full, MarkName(logName))
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines = lines[:len(lines)-1]
	other := bytes.SplitAfter(foreign(t), []byte("\n"))
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	all := func(from, to int) []byte { return join(lines[from:to]...) }
	n := len(lines)
	cases := map[string]struct {
		log  []byte
		line int64
		why  string
	}{
		"reordered":           {join(all(0, 2), lines[3], lines[2], all(4, n)), 3, "out of order"},
		"deleted":             {join(all(0, 2), all(3, n)), 3, "missing"},
		"first deleted":       {all(1, n), 1, "missing"},
		"doubled":             {join(all(0, 3), lines[2], all(3, n)), 4, "doubled"},
		"foreign line":        {join(all(0, 2), other[2], all(3, n)), 3, "belongs to run"},
		"CR LF":               {bytes.ReplaceAll(whole, []byte("\n"), []byte("\r\n")), 1, "CR LF"},
		"space":               {bytes.Replace(whole, []byte(`"payload":{`), []byte(`"payload": {`), 1), 1, ""},
		"blank line":          {join(all(0, 3), []byte("\n"), all(3, n)), 4, ""},
		"byte order mark":     {join([]byte("\xef\xbb\xbf"), whole), 1, ""},
		"key doubled":         {bytes.Replace(whole, []byte(`"payload":{`), []byte(`"payload":{"zz":1,`), 1), 1, ""},
		"hash changed":        {bytes.Replace(whole, lines[3][15:79], []byte(strings.Repeat("a", 64)), 1), 4, "event_hash"},
		"two lines joined":    {join(all(0, 2), bytes.TrimSuffix(lines[2], []byte("\n")), all(3, n)), 3, ""},
		"garbage in between":  {join(all(0, 3), []byte("garbage\n"), all(3, n)), 4, ""},
		"nothing":             {nil, 0, ""},
		"not a log":           {[]byte("hello\n"), 1, ""},
		"rehashed after edit": {rehash(t, lines, 2), 4, "prev_hash"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for known, mark := range map[string][]byte{"nothing is": nil, "all is": mark} {
				_, _, err := Open(withLog(t, c.log, mark).FS(), logName, Head{}, Options{}, func(*machine.Event, *Envelope) error { return nil })
				var d *Damaged
				if !errors.As(err, &d) || c.line > 0 && d.Line != c.line || !strings.Contains(d.Why, c.why) || d.WayOut == "" {
					t.Errorf("%s known to be durable: got %+v, want line %d with %q", known, err, c.line, c.why)
				}
			}
		})
	}
}

// foreign is the same story under another run's name.
func foreign(t *testing.T) []byte {
	m := disktest.NewMem()
	events := story()
	events[0].Body.(*machine.RunCreatedBody).RunID = "other"
	l, err := Create(m.FS(), logName, "other", Options{}, events)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return content(t, m, logName)
}

// rehash changes an event and gives it the hash that fits.
func rehash(t *testing.T, lines [][]byte, i int) []byte {
	env, err := chain.Split(lines[i])
	if err != nil {
		t.Fatal(err)
	}
	changed := env
	changed.Payload = bytes.Replace(env.Payload, []byte(`"attempt":1`), []byte(`"attempt":2`), 1)
	line := bytes.Replace(lines[i], env.Payload, changed.Payload, 1)
	line = bytes.Replace(line, []byte(env.EventHash), []byte(changed.Digest()), 1)
	line = bytes.Replace(line, []byte(env.SpanID), []byte(chain.AttemptSpan(testRun, "a/b", 1, 2)), 1)
	out := bytes.Join(lines[:i], nil)
	out = append(out, line...)
	return append(out, bytes.Join(lines[i+1:], nil)...)
}

// An end that power loss leaves: zeros, half a line, unrelated bytes, nothing whole behind it.
func TestTornEndsAreCut(t *testing.T) {
	whole := content(t, newLog(t, story()), logName)
	for name, end := range map[string][]byte{
		"zeros":            make([]byte, 5000),
		"zeros and lines":  []byte("\x00\x00\n\x00\n"),
		"half a line":      whole[:100],
		"a huge line":      bytes.Repeat([]byte("x"), 1<<20),
		"garbage in lines": []byte("a\nb\nc\n"),
	} {
		t.Run(name, func(t *testing.T) {
			m := withLog(t, append(bytes.Clone(whole), end...), nil)
			l, tail, err := Open(m.FS(), logName, Head{}, Options{}, func(*machine.Event, *Envelope) error { return nil })
			if err != nil || tail.Bytes != int64(len(end)) {
				t.Fatalf("tail %+v, %v", tail, err)
			}
			l.Close()
			if got := content(t, m, logName); !bytes.Equal(got, whole) {
				t.Fatalf("%d bytes left, want %d", len(got), len(whole))
			}
		})
	}
}

// A newer version's events are refused with the line, and never cut off as if they were torn.
func TestNewerEventsAreRefused(t *testing.T) {
	whole := content(t, newLog(t, story()), logName)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	env, _ := chain.Split(lines[len(lines)-2])
	newer := env
	newer.Type = "SOMETHING_NEW"
	line := bytes.Replace(lines[len(lines)-2], []byte(env.Type), []byte(newer.Type), 1)
	line = bytes.Replace(line, []byte(env.EventHash), []byte(newer.Digest()), 1)
	log := append(bytes.Join(lines[:len(lines)-2], nil), line...)
	var n *Newer
	if _, _, err := readAll(withLog(t, log, nil)); !errors.As(err, &n) || n.Line != 7 || !strings.Contains(err.Error(), "SOMETHING_NEW") {
		t.Fatal(err)
	}
	events := story()
	events[0].Body.(*machine.RunCreatedBody).Schema = Version + 1
	if _, _, err := readAll(newLog(t, events)); !errors.As(err, &n) || n.Line != 1 {
		t.Fatal(err)
	}
}

// Reading never writes, not even to cut a torn end.
func TestReadingWritesNothing(t *testing.T) {
	whole := content(t, newLog(t, story()), logName)
	m := withLog(t, whole[:len(whole)-5], nil)
	f, fsys := disktest.NewFaulty(m.FS(), nil)
	_, tail, err := Read(fsys, logName, Head{}, func(*machine.Event, *Envelope) error { return nil })
	if err != nil || tail.Bytes == 0 || f.Steps() != 0 {
		t.Fatalf("tail %+v, %d steps, %v", tail, f.Steps(), err)
	}
}

// A reader beside a writer sees a prefix of the log, never damage.
func TestReadersBesideAWriter(t *testing.T) {
	m := disktest.NewMem()
	events := story()
	l, err := Create(m.FS(), logName, testRun, Options{SyncWithin: time.Microsecond}, events[:1])
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			for {
				if _, _, err := readAll(m); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range 300 {
		if _, err := l.Append([]machine.Event{machine.New(start0, &machine.StartedBody{Node: "n", Generation: 1, Attempt: i + 1})}); err != nil {
			t.Fatal(err)
		}
		l.SyncNow()
	}
	close(stop)
	wg.Wait()
}

// A full disk at any write: the events go where the reserve was, once; without it the log ends
// where it was and takes no more.
func TestFullDiskAtEveryWrite(t *testing.T) {
	for n := 1; n <= 4; n++ {
		for _, reserve := range []int64{4096, -1} {
			m := disktest.NewMem()
			_, fsys := disktest.NewFaulty(m.FS(), disktest.FailAt(n, syscall.ENOSPC, logWrite))
			l, err := Create(fsys, logName, testRun, Options{Reserve: reserve}, story()[:1])
			if n == 1 {
				if !disk.Full(err) {
					t.Fatalf("create: %v", err)
				}
				if has, _ := m.FS().Lstat(logName); has != nil {
					t.Fatal("a log that could not be written stands under its name")
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			written := 1
			for i := 2; i <= 6; i++ {
				_, err := l.Append([]machine.Event{machine.New(start0, &machine.StartedBody{Node: "n", Generation: 1, Attempt: i})})
				switch {
				case reserve < 0 && i >= n:
					if !disk.Full(err) {
						t.Fatalf("write %d after the disk was full at %d: %v", i, n, err)
					}
				case err != nil:
					t.Fatal(err)
				default:
					written++
				}
				if l.Low() != (reserve > 0 && i >= n) {
					t.Fatalf("write %d, full at %d: low is %v", i, n, l.Low())
				}
			}
			l.Close()
			if got, tail, err := readAll(m); err != nil || len(got) != written || tail.Bytes != 0 {
				t.Fatalf("full at %d, reserve %d: %d events of %d, %+v, %v", n, reserve, len(got), written, tail, err)
			}
		}
	}
}

// The mark may find no room: on some file systems overwriting takes new blocks. The events are
// durable all the same.
func TestFullDiskAtTheMark(t *testing.T) {
	m := disktest.NewMem()
	var full atomic.Bool
	_, fsys := disktest.NewFaulty(m.FS(), func(s disktest.Step) error {
		if full.Load() && s.Op == "write" && s.Name == MarkName(logName) {
			return disktest.Short{Err: syscall.ENOSPC}
		}
		return nil
	})
	l, err := Create(fsys, logName, testRun, Options{}, story()[:1])
	if err != nil {
		t.Fatal(err)
	}
	full.Store(true)
	for i := 1; i <= 3; i++ {
		head, err := l.Append([]machine.Event{machine.New(start0, &machine.StartedBody{Node: "n", Generation: 1, Attempt: i})})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Wait(head.Seq); err != nil || l.Synced() != head.Seq {
			t.Fatalf("event %d: %v, synced up to %d", head.Seq, err, l.Synced())
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got, tail, err := readAll(m); err != nil || len(got) != 4 || tail.Bytes != 0 {
		t.Fatalf("%d events, %+v, %v", len(got), tail, err)
	}
}

func logWrite(s disktest.Step) bool {
	return s.Op == "write" && (s.Name == logName || strings.HasPrefix(s.Name, ".tmp-"))
}

// A failed sync closes the log for good: no second sync may report success for what was lost.
func TestFailedSyncIsFinal(t *testing.T) {
	m := disktest.NewMem()
	syncs := 0
	_, fsys := disktest.NewFaulty(m.FS(), func(s disktest.Step) error {
		if s.Op != "sync" {
			return nil
		}
		if syncs++; syncs > 1 { // the first is Create's
			return syscall.EIO
		}
		return nil
	})
	l, err := Create(fsys, logName, testRun, Options{}, story()[:1])
	if err != nil {
		t.Fatal(err)
	}
	head, err := l.Append(story()[1:3])
	if err != nil {
		t.Fatal(err)
	}
	var lost *disk.Refused
	for range 2 {
		if err := l.Wait(head.Seq); !errors.As(err, &lost) || !disk.Broken(err) {
			t.Fatalf("wait: %v", err)
		}
	}
	if _, err := l.Append(story()[3:4]); !errors.As(err, &lost) {
		t.Fatalf("append: %v", err)
	}
	if err := l.Close(); !errors.As(err, &lost) {
		t.Fatalf("close: %v", err)
	}
	if syncs != 2 {
		t.Fatalf("%d syncs", syncs)
	}
	if l.Synced() != 1 {
		t.Fatalf("synced %d", l.Synced())
	}
}

// The process dies, or the power fails, at every single step of writing a log. What a waiter was told
// is durable is there afterwards, in order; what opens is a prefix of what was appended.
func TestCrashAtEveryStep(t *testing.T) {
	events := story()
	write := func(fsys disk.FS) (durable int64) {
		l, err := Create(fsys, logName, testRun, Options{Reserve: 64}, events[:1])
		if err != nil {
			return 0
		}
		durable = 1
		for i := range events[1:] {
			head, err := l.Append(events[i+1 : i+2])
			if err != nil {
				break
			}
			if i%2 == 0 && l.Wait(head.Seq) == nil {
				durable = head.Seq
			}
		}
		if l.Close() == nil {
			durable = int64(len(events))
		}
		return durable
	}
	total, fsys := disktest.NewFaulty(disktest.NewMem().FS(), nil)
	write(fsys)
	if total.Steps() < 20 {
		t.Fatalf("only %d steps", total.Steps())
	}
	for n := 1; n <= total.Steps(); n++ {
		m := disktest.NewMem()
		_, fsys := disktest.NewFaulty(m.FS(), disktest.CrashAt(n))
		durable := write(fsys)
		for name, after := range map[string]*disktest.Mem{
			"killed":                m.Kill(),
			"power lost":            m.PowerLoss(nil),
			"power lost, some kept": m.PowerLoss(func(n int) int { return n / 2 }),
		} {
			count := int64(0)
			l, _, err := Open(after.FS(), logName, Head{}, Options{}, func(*machine.Event, *Envelope) error { count++; return nil })
			if errors.Is(err, fs.ErrNotExist) && durable == 0 {
				continue
			}
			if err != nil || count < durable {
				t.Fatalf("step %d, %s: %d events, %d were durable: %v", n, name, count, durable, err)
			}
			l.Close()
		}
	}
}

// Resuming behind a snapshot checks that the log holds the snapshot's event where it says.
func TestOpenBehindASnapshot(t *testing.T) {
	m := newLog(t, story())
	var heads []Head
	off := int64(0)
	for i, line := range bytes.SplitAfter(content(t, m, logName), []byte("\n")) {
		if env, err := chain.Split(line); err == nil {
			off += int64(len(line))
			heads = append(heads, Head{Seq: int64(i + 1), Hash: env.EventHash, Offset: off})
		}
	}
	for _, from := range heads {
		n := from.Seq
		head, _, err := Read(m.FS(), logName, from, func(e *machine.Event, _ *Envelope) error {
			if n++; e.Seq != n {
				t.Errorf("event %d came as %d", n, e.Seq)
			}
			return nil
		})
		if err != nil || head != heads[len(heads)-1] {
			t.Fatalf("from %+v: head %+v, %v", from, head, err)
		}
		for _, wrong := range []Head{
			{Seq: from.Seq, Hash: strings.Repeat("1", 64), Offset: from.Offset},
			{Seq: from.Seq + 1, Hash: from.Hash, Offset: from.Offset},
			{Seq: from.Seq, Hash: from.Hash, Offset: from.Offset - 1},
			{Seq: from.Seq, Hash: from.Hash, Offset: from.Offset + 100000},
		} {
			var d *Damaged
			if _, _, err := Read(m.FS(), logName, wrong, nil); !errors.As(err, &d) {
				t.Fatalf("from %+v: %v", wrong, err)
			}
		}
	}
}

// A line longer than the limit is refused when it is appended, and the log goes on.
func TestTooLongALineIsRefused(t *testing.T) {
	m := disktest.NewMem()
	l, err := Create(m.FS(), logName, testRun, Options{}, story()[:1])
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	long := machine.New(start0, &machine.RunPausedBody{Reason: "user", Message: strings.Repeat("x", chain.MaxLine)})
	if _, err := l.Append([]machine.Event{story()[1], long}); err == nil {
		t.Fatal("accepted")
	}
	if head, err := l.Append(story()[1:2]); err != nil || head.Seq != 2 {
		t.Fatalf("%+v %v", head, err)
	}
	if got, _, err := readAll(m); err != nil || len(got) != 2 {
		t.Fatalf("%v %v", got, err)
	}
}

// W-7: a process that was killed holds nothing, also while its parent has not asked for its status: a container without
// an init, a wrapper that does not wait.
func TestKilledAndNotReapedHoldsNothing(t *testing.T) {
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait() //nolint:errcheck // it was killed
	h := self("apply", time.Now())
	h.PID, h.Birth = c.Process.Pid, birth(c.Process.Pid)
	if !h.Alive() {
		t.Fatal("a running process does not count as alive")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for h.Alive() && !t.Failed() { // the kill takes a moment; a test that hangs here has failed
		runtime.Gosched()
	}
	if err := c.Process.Signal(syscall.Signal(0)); err != nil {
		t.Fatalf("it was reaped: %v", err)
	}
}
