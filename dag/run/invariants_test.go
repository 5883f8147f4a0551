package run

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/testing/disktest"
)

// forge writes a log anew whose chain is whole although its events were changed: what the chain cannot
// see, the checks of what the events mean must.
func forge(t *testing.T, m *disktest.Mem, change func([]machine.Event) []machine.Event) {
	t.Helper()
	own, err := m.FS().Sub(Dir)
	if err != nil {
		t.Fatal(err)
	}
	var events []machine.Event
	if _, _, err := eventlog.Read(own, logFile, eventlog.Head{}, func(e *machine.Event, _ *eventlog.Envelope) error {
		events = append(events, *e)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	events = change(events)
	for _, name := range []string{logFile, eventlog.MarkName(logFile), snapshotFile, eventlog.BackupName(snapshotFile)} {
		if err := own.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	l, err := eventlog.Create(own, logFile, "run-1", eventlog.Options{Reserve: -1}, events)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// T-5: the invariants of 000 §10 that live in what the events mean, attacked by forging a log whose
// chain is whole.
func TestVerifyFindsForgedEvents(t *testing.T) {
	end := func(node string) func(machine.Event) bool {
		return func(e machine.Event) bool {
			b, ok := e.Body.(*machine.FinishedBody)
			return ok && b.Node == node
		}
	}
	find := func(t *testing.T, list []machine.Event, is func(machine.Event) bool) int {
		t.Helper()
		for i, e := range list {
			if is(e) {
				return i
			}
		}
		t.Fatal("no such event")
		return 0
	}
	for _, c := range []struct {
		name   string
		change func(*testing.T, []machine.Event) []machine.Event
		want   string // part of the failing checks and their reasons
	}{
		{"nothing", func(_ *testing.T, l []machine.Event) []machine.Event { return l }, ""},
		{"4: a node that had completed ends again", func(t *testing.T, l []machine.Event) []machine.Event {
			i := find(t, l, end("b1"))
			return append(l, l[i])
		}, "chain"},
		{"4: a node ends that never started", func(t *testing.T, l []machine.Event) []machine.Event {
			i := find(t, l, func(e machine.Event) bool {
				b, ok := e.Body.(*machine.StartedBody)
				return ok && b.Node == "v1"
			})
			return append(l[:i:i], l[i+1:]...)
		}, "chain"},
		{"5: the checkpoint's event is gone", func(t *testing.T, l []machine.Event) []machine.Event {
			i := find(t, l, func(e machine.Event) bool { return e.Type == machine.Checkpointed })
			return append(l[:i:i], l[i+1:]...)
		}, "checkpoint"},
		{"6: a backup is not recorded", func(t *testing.T, l []machine.Event) []machine.Event {
			i := find(t, l, func(e machine.Event) bool {
				b, ok := e.Body.(*machine.ArtifactWrittenBody)
				return ok && b.Backup != ""
			})
			b := *l[i].Body.(*machine.ArtifactWrittenBody)
			b.Backup = ""
			l[i].Body = &b
			return l
		}, "backups"},
		{"9: the end tells of fewer failures", func(t *testing.T, l []machine.Event) []machine.Event {
			i := find(t, l, func(e machine.Event) bool { return e.Type == machine.RunCompleted })
			b := *l[i].Body.(*machine.RunEndedBody)
			b.Completed, b.Soft = b.Completed-1, 1
			l[i].Body = &b
			return l
		}, "allowed failures"},
		{"10: an answer that nobody kept", func(t *testing.T, l []machine.Event) []machine.Event {
			i := find(t, l, end("b3"))
			calls := make([]machine.Event, 0, 6)
			for _, id := range []string{"b3.1.1", "b3.1.2", "b3.1.3"} {
				calls = append(calls,
					machine.New(l[i].Time, &machine.LLMCallStartedBody{CallID: id, Node: "b3", Model: "m", ProviderBaseURL: "cli:x", PromptHash: "p"}),
					machine.New(l[i].Time, &machine.LLMCallFinishedBody{CallID: id, Node: "b3", FinishReason: "stop", OutputHash: "o"}))
			}
			return append(l[:i:i], append(calls, l[i:]...)...)
		}, "answers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := undisturbed(t)
			forge(t, m, func(l []machine.Event) []machine.Event { return c.change(t, l) })
			if got := failing(t, m.FS(), ""); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("fails %q, want %q", got, c.want)
			}
		})
	}
}

// T-5, 000 §10, 1 and 7: a snapshot that claims another cost is found although its own digest is right.
func TestVerifyFindsAForgedSnapshot(t *testing.T) {
	m, _ := undisturbed(t)
	own, err := m.FS().Sub(Dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := eventlog.ReadSnapshot(own, snapshotFile)
	if err != nil {
		t.Fatal(err)
	}
	forged := bytes.Replace(s.State, []byte(`"cost_usd":0.25`), []byte(`"cost_usd":0.125`), 1)
	if bytes.Equal(forged, s.State) {
		t.Fatalf("the state names no cost: %s", s.State)
	}
	s.State = json.RawMessage(forged)
	if err := eventlog.WriteSnapshot(own, snapshotFile, s); err != nil {
		t.Fatal(err)
	}
	if got := failing(t, m.FS(), ""); !strings.Contains(got, "snapshot") {
		t.Errorf("fails %q", got)
	}
}

// T-5, 000 §10, 8: opening, resuming and closing a run that is complete, twice, leaves events,
// artifacts and accumulators as they are.
func TestCompleteRunsStayAsTheyAre(t *testing.T) {
	m, _ := undisturbed(t)
	log, before := text(t, m.FS(), Dir+"/"+logFile), contents(t, m.FS())
	for range 2 {
		r, rep := reopen(t, memOptions(m.FS()))
		if len(rep.InFlight)+len(rep.Edited)+len(rep.Restored) > 0 {
			t.Errorf("%+v", rep)
		}
		if d := r.Compare(r.Graph()); !d.Same {
			t.Error("the plan in force differs from itself")
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if got := text(t, m.FS(), Dir+"/"+logFile); got != log {
		t.Error("the log has changed")
	}
	if got := contents(t, m.FS()); got != before {
		t.Errorf("got\n%s\nwant\n%s", got, before)
	}
	if got := failing(t, m.FS(), ""); got != "" {
		t.Errorf("fails %q", got)
	}
	if _, err := disk.ReadFile(m.FS(), Dir+"/"+snapshotFile); err != nil {
		t.Error(err)
	}
}

// T-5: Walk and Hold: the events behind one, with or without a snapshot, and the lock.
func TestWalk(t *testing.T) {
	m, _ := undisturbed(t)
	var all []int64
	walk := func(after int64) (seqs []int64) {
		if err := Walk(memOptions(m.FS()), after, func(e *machine.Event, st *machine.State) error {
			if st.Run().Seq != e.Seq {
				t.Errorf("event %d comes with the state of event %d", e.Seq, st.Run().Seq)
			}
			seqs = append(seqs, e.Seq)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return seqs
	}
	all = walk(0)
	for _, after := range []int64{1, int64(len(all)) - 1, int64(len(all))} {
		if got := walk(after); len(got) != len(all)-int(after) || len(got) > 0 && got[0] != after+1 {
			t.Errorf("behind %d: %v", after, got)
		}
	}
	release, err := Hold(memOptions(m.FS()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(memOptions(m.FS())); err == nil {
		t.Error("held twice")
	}
	release()
	if release, err = Hold(memOptions(m.FS())); err != nil {
		t.Fatal(err)
	}
	release()
}
