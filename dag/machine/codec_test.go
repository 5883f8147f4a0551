package machine

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gowebpki/jcs"

	"dagrun.dev/dag"
)

// oldTypes are the event types that there have been: none may go. New ones need not be added.
var oldTypes = []Type{
	RunCreated, InputsCloned, PlanSubmitted, PlanAdopted, PlanExtended, LimitsChanged, PartSelected, Queued, Started, Finished,
	LLMCallStarted, LLMCallFinished, LLMCallFailed, ArtifactWritten, GateRunStarted, GateRunFinished, IssueOpened,
	IssueResolved, RunStateChanged, PROpened, BreakerChanged, CompStarted, CompFinished, Rewound, EscalationOpened,
	EscalationAnswer, Checkpointed, Reverted, BudgetWarned, RunPaused, RunInterrupted, RunResumed, RunCompleted, RunFailed,
}

func TestNoTypeGoes(t *testing.T) {
	for _, typ := range oldTypes {
		if !slices.Contains(Types(), typ) {
			t.Errorf("%s is gone: logs that hold it could not be read", typ)
		}
	}
}

// V-1: payloads recorded by earlier versions are read for ever and written as they were. Lines
// are only added to testdata/payloads/v1.txt.
func TestRecordedPayloads(t *testing.T) {
	f, err := os.Open("testdata/payloads/v1.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := map[Type]bool{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		typ, raw, _ := strings.Cut(lines.Text(), " ")
		b, err := DecodePayload(Type(typ), []byte(raw))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		seen[Type(typ)] = true
		got, err := AppendPayload(nil, b)
		if err != nil || string(got) != raw {
			t.Errorf("%s: %v\nrecorded %s\nwritten  %s", typ, err, raw, got)
		}
		if want, err := jcs.Transform([]byte(raw)); err != nil || string(want) != raw {
			t.Errorf("%s is not canonical: %v\n%s", typ, err, want)
		}
		if got := New(epoch, b).Type; got != Type(typ) {
			t.Errorf("a payload of %s becomes an event of %s", typ, got)
		}
		if published := Shapes()[typ]; reflect.TypeOf(published) != reflect.TypeOf(b) {
			t.Errorf("%s is published as %T and read as %T", typ, published, b)
		}
		var about struct {
			Node, To any // of REWOUND; of others the number of somebody
		}
		if err := json.Unmarshal([]byte(raw), &about); err != nil {
			t.Fatal(err)
		}
		node, _ := about.Node.(string)
		to, _ := about.To.(string)
		if got := NodeOf(b); got != node+to {
			t.Errorf("%s is about %q, not %q", typ, got, node+to)
		}
	}
	for _, typ := range Types() {
		if !seen[typ] {
			t.Errorf("no payload of %s is recorded: add a line to testdata/payloads/v1.txt", typ)
		}
	}
}

func TestPayloadsRefuseWhatTheyDoNotKnow(t *testing.T) {
	for _, typ := range Types() {
		if _, err := DecodePayload(typ, []byte(`{"from_the_future":1}`)); err == nil || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("%s: %v", typ, err)
		}
	}
	if _, err := DecodePayload("FUTURE", []byte(`{}`)); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Error(err)
	}
	_, err := AppendPayload(nil, &FinishedBody{Values: map[string]json.RawMessage{"x": json.RawMessage(`{`)}})
	if err == nil || !strings.HasPrefix(err.Error(), "payload of WORK_ITEM_FINISHED: ") {
		t.Errorf("a malformed value was written: %v", err)
	}
}

func FuzzPayload(f *testing.F) {
	f.Add("WORK_ITEM_FINISHED", `{"node":"a","generation":1,"status":"completed","values":{"b":1,"a":[1.0]},"retry_at":"2026-01-01T00:00:00Z"}`)
	f.Add("PLAN_EXTENDED", `{"node":"a","generation":1,"nodes":[{"id":"x","kind":"k","effect":"pure"}]}`)
	f.Fuzz(func(t *testing.T, typ, raw string) {
		b, err := DecodePayload(Type(typ), []byte(raw))
		if err != nil {
			return
		}
		one, err := AppendPayload(nil, b)
		if err != nil {
			return // an integer beyond 2^53
		}
		again, err := DecodePayload(Type(typ), one)
		if err != nil {
			t.Fatalf("%s %s: %v", typ, one, err)
		}
		if two, err := AppendPayload(nil, again); err != nil || !bytes.Equal(one, two) {
			t.Fatalf("%s\n%s\n%s", typ, one, two)
		}
	})
}

func BenchmarkPayload(b *testing.B) {
	started := &StartedBody{Node: "layer1/node123", Generation: 1, Attempt: 1}
	finished := &FinishedBody{Node: "layer1/node123", Generation: 1, Attempt: 1, Status: dag.StatusCompleted, Final: true,
		Fingerprint: "0123456789abcdef"}
	for _, body := range []Body{started, finished} {
		raw, err := AppendPayload(nil, body)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("write/"+string(New(epoch, body).Type), func(b *testing.B) {
			b.ReportAllocs()
			buf := make([]byte, 0, 1024)
			for b.Loop() {
				if buf, err = AppendPayload(buf[:0], body); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("read/"+string(New(epoch, body).Type), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodePayload(New(epoch, body).Type, raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// B-11: a snapshot is small and quickly read: a finished node with nothing to tell takes at most
// 90 bytes, fingerprint included.
func TestSnapshotIsSmall(t *testing.T) {
	s := finishedState(t, 1000)
	raw, err := s.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	if per := len(raw) / 1000; per > 90 {
		t.Errorf("%d bytes a node: %s", per, raw[len(raw)-400:])
	}
	restored, err := RestoreSnapshot(raw, s.Graph())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := restored.AppendSnapshot(nil); err != nil || !bytes.Equal(raw, again) {
		t.Error("restoring loses something", err)
	}
	if _, err := RestoreSnapshot(bytes.Replace(raw, []byte(`"seed"`), []byte(`"sseed"`), 1), s.Graph()); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Error(err)
	}
}

// A snapshot whose lists do not fit together is refused, whichever is too short.
func TestSnapshotThatDoesNotFit(t *testing.T) {
	s := finishedState(t, 2)
	raw, err := s.AppendSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"id", "started", "finished", "seq", "fingerprint"} {
		var v map[string]any
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		plain := v["plain_work_items"].(map[string]any)
		plain[list] = plain[list].([]any)[:1]
		short, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := RestoreSnapshot(short, s.Graph()); err == nil || !strings.Contains(err.Error(), "differ in length") {
			t.Errorf("%s is too short: %v", list, err)
		}
	}
}

func finishedState(tb testing.TB, n int) *State {
	g := mustGraph(tb, layered(n, 100))
	s := new(State)
	at := epoch
	apply := func(b Body) {
		e := New(at, b)
		e.Plan = g
		if err := s.Apply(&e); err != nil {
			tb.Fatal(err)
		}
	}
	apply(&RunCreatedBody{RunID: "r", Name: "n", PlanDigest: "d", Schema: 1})
	for i := range int32(n) {
		id := g.Node(i).ID
		at = at.Add(time.Second)
		apply(&StartedBody{Node: id, Generation: 1, Attempt: 1})
		at = at.Add(time.Second)
		apply(&FinishedBody{Node: id, Generation: 1, Attempt: 1, Status: dag.StatusCompleted, Final: true, Fingerprint: "0123456789abcdef"})
	}
	return s
}

func BenchmarkSnapshot(b *testing.B) {
	drivenState, _ := drive(b, mustGraph(b, layered(100_000, 100)), 100)
	raw, err := drivenState.AppendSnapshot(nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write/100000", func(b *testing.B) {
		for b.Loop() {
			if raw, err = drivenState.AppendSnapshot(raw[:0]); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(raw))/100_000, "bytes/node")
	})
	b.Run("read/100000", func(b *testing.B) {
		for b.Loop() {
			if _, err := RestoreSnapshot(raw, drivenState.Graph()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// What a script cannot say of events that cannot have happened; see testdata/machine/refused.txt.
func TestRefusedWithTheirPlan(t *testing.T) {
	g, err := dag.NewGraph(&dag.Plan{Format: dag.Format, Name: "p", Nodes: []dag.Node{{ID: "a", Kind: "k", Effect: "pure"}}})
	if err != nil {
		t.Fatal(err)
	}
	created := func(schema int) *Event {
		return &Event{Type: RunCreated, Body: &RunCreatedBody{RunID: "r", PlanDigest: "x", Schema: schema}, Plan: g}
	}
	s := &State{}
	for _, tt := range []struct {
		e    *Event
		want string
	}{
		{created(Schema + 1), "event 1 (RUN_CREATED): schema version 2 is newer than 1, the newest this version reads"},
		{created(Schema), ""},
		{&Event{Type: "NEW", Body: &RunPausedBody{}}, "event 2 (NEW): unknown event: a newer version wrote it"},
		{&Event{Type: RunPaused, Body: &RunResumedBody{}}, "event 2 (RUN_PAUSED): has the payload of another type, *machine.RunResumedBody"},
		{&Event{Type: PlanAdopted, Body: &PlanAdoptedBody{PlanDigest: "z", Previous: "y"}, Plan: g}, "event 2 (PLAN_ADOPTED): the plan in force is x, not y"},
	} {
		got := ""
		if err := s.Apply(tt.e); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
