package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/nodes"
)

// elsewhere is a World without a run: a store in memory and two folders.
type elsewhere struct {
	objects      map[string][]byte
	out, scratch string
	kept         map[string]*bytes.Buffer
	facts        []machine.Body
}

func newElsewhere(t *testing.T) *elsewhere {
	return &elsewhere{objects: map[string][]byte{}, out: t.TempDir(), scratch: t.TempDir(), kept: map[string]*bytes.Buffer{}}
}

func (e *elsewhere) Open(digest string) (io.ReadCloser, error) {
	b, ok := e.objects[digest]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

func (e *elsewhere) Store(r io.Reader) (string, int64, error) {
	b, err := io.ReadAll(r)
	digest := string(rune('a' + len(e.objects)))
	e.objects[digest] = b
	return digest, int64(len(b)), err
}

func (e *elsewhere) Yield() bool { return false }

func (e *elsewhere) TookEffect(string) error { return nil }

func (e *elsewhere) Keep(name string) (io.WriteCloser, error) {
	e.kept[name] = new(bytes.Buffer)
	return closing{e.kept[name]}, nil
}

type closing struct{ io.Writer }

func (closing) Close() error { return nil }

func (e *elsewhere) Out() string                        { return e.out }
func (e *elsewhere) Untouched() bool                    { return false }
func (e *elsewhere) Scratch() string                    { return e.scratch }
func (e *elsewhere) Find(string) (Reading, error)       { return Reading{}, nil }
func (e *elsewhere) Carry() (string, error)             { return "", errors.New("nothing is handed on") }
func (e *elsewhere) Spool() (string, error)             { return "", errors.New("no spool") }
func (e *elsewhere) Emit(b machine.Body) error          { e.facts = append(e.facts, b); return nil }
func (e *elsewhere) Warn(string)                        {}
func (e *elsewhere) Again(string) bool                  { return false }
func (e *elsewhere) Secret(name string) (string, error) { return "hunter2-hunter2", nil }
func (e *elsewhere) Now() time.Time                     { return time.Unix(1700000000, 0).UTC() }

type doer func(ctx context.Context, t *nodes.Task) (*nodes.Result, error)

func (doer) Traits() nodes.Traits                                            { return nodes.Traits{} }
func (d doer) Run(ctx context.Context, t *nodes.Task) (*nodes.Result, error) { return d(ctx, t) }

func kindOf(s nodes.Settings) nodes.Kind {
	return nodes.Kind{Name: "agent", Parse: func(json.RawMessage) (nodes.Settings, error) { return s, nil }}
}

// A job that came as JSON is carried out where there is no run, and its report goes back as JSON: what it made is in
// the store, what it kept is named by content, and no secret leaves. Another process does nothing else. (B-14)
func TestAJobCanBeCarriedOutElsewhere(t *testing.T) {
	world := newElsewhere(t)
	world.objects["in"] = []byte("before")
	world.objects["note"] = []byte(`{"accumulator":"notes","text":"seen"}`)
	job := &Job{
		Format: Format, Kind: "agent", With: json.RawMessage(`{"ask":"x"}`), Generation: 2, Attempt: 3, Failures: 1,
		Node: &dag.Node{ID: "a/b", Kind: "agent", Reads: []string{"page.html", "notes"}, Writes: []string{"page.html"},
			Outputs: map[string]string{"v": "string"}, Effect: dag.Idempotent},
		Reads: []Reading{
			{Name: "page.html", Versions: []Content{{Digest: "in", Node: "a"}}},
			{Name: "notes", Versions: []Content{{Digest: "note", Node: "a"}}},
		},
		Reserve: dag.Amount{USD: 2e6}, Fingerprint: "f",
	}
	raw, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeJob(raw)
	if err != nil || !reflect.DeepEqual(back, job) {
		t.Fatalf("%v\n%+v\n%+v", err, back, job)
	}
	w := &Worker{Kinds: nodes.NewRegistry(kindOf(doer(func(_ context.Context, t *nodes.Task) (*nodes.Result, error) {
		r, err := t.Artifact("page.html")
		if err != nil {
			return nil, err
		}
		before, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		notes, err := t.Entries("notes")
		if err != nil {
			return nil, err
		}
		key, err := t.Secret("key")
		if err != nil {
			return nil, err
		}
		k, err := t.Keep("raw.txt")
		if err != nil {
			return nil, err
		}
		_, err = io.WriteString(k, key)
		page := string(before) + " " + notes[0].Text + " " + key
		return &nodes.Result{
			Values: map[string]any{"v": key}, Writes: map[string]string{"page.html": "page.html"},
			Entries: []nodes.Entry{{Accumulator: "notes", Text: key}}, Warnings: []string{key},
		}, errors.Join(err, k.Close(), t.Emit("LLM_CALL_STARTED", map[string]any{"model": key}), os.WriteFile(filepath.Join(t.Out, "page.html"), []byte(page), 0o600))
	})))}
	rep := w.Do(t.Context(), back, world)
	raw, err = json.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeReport(raw)
	if err != nil || !reflect.DeepEqual(got, &rep) {
		t.Fatalf("%v\n%+v\n%+v", err, got, rep)
	}
	if strings.Contains(string(raw), "hunter2") || strings.Contains(world.kept["raw.txt"].String(), "hunter2") {
		t.Errorf("a secret has left: %s", raw)
	}
	b := got.Outcome.Body
	if got.Outcome.Status != dag.StatusCompleted || b.Fingerprint != "f" || b.CostUSD != 2e6 || b.CostKind != dag.CostAssumed {
		t.Errorf("%+v", got.Outcome)
	}
	if len(got.Artifacts) != 1 || !strings.HasPrefix(string(world.objects[got.Artifacts[0].Digest]), "before seen [") || len(got.Entries) != 1 {
		t.Errorf("%+v %+v", got.Artifacts, got.Entries)
	}
	if len(got.Kept) != 1 || got.Kept[0].Name != "raw.txt" || len(got.Kept[0].Digest) != 64 || got.Kept[0].Size != int64(world.kept["raw.txt"].Len()) {
		t.Errorf("%+v", got.Kept)
	}
	if len(world.facts) != 1 || world.facts[0].(*machine.LLMCallStartedBody).CallID != "a/b.2.3" {
		t.Errorf("%+v", world.facts)
	}
}

// Every field of Job, Report and Outcome comes back from JSON as it was.
func TestWireNames(t *testing.T) {
	at := time.Unix(1700000000, 0).UTC()
	rep := Report{Format: Format, Began: at, Begun: true, Unclean: true,
		Outcome: machine.Outcome{Status: dag.StatusFailed, Category: "c", Message: "m", Diagnostics: "d", Fault: "full", RetryAfter: time.Second,
			WaitUntil: at, Permanent: true, Body: machine.FinishedBody{Kept: []machine.KeptFile{{Name: "n", Digest: "s", Size: 1}}}},
		Salvaged:  &Salvaged{[]Object{{"n", "d", 1, "s"}}, map[string]json.RawMessage{"v": json.RawMessage("1")}, []string{"n: why"}},
		Artifacts: []Object{{"n", "d", 1, "s"}}, Entries: []Object{{"n", "d", 1, ""}}, Kept: []machine.KeptFile{{Name: "n", Digest: "s", Size: 1}}}
	job := Job{Format: Format, Purpose: Rescue, Node: &dag.Node{ID: "n"}, Kind: "k", With: json.RawMessage("1"), Generation: 1, Attempt: 1,
		Failures: 1, AllFailures: 1, FailedWith: map[string]int{"c": 1}, Feedback: "f", Reserve: dag.Amount{USD: 1}, Seed: 1, SpecDir: "s",
		Files: []dag.File{{Path: "p"}}, Reads: []Reading{{Name: "n", Title: "t", Versions: []Content{{"d", "n"}}}}, Prices: []dag.Price{{Model: "m"}}, Params: []dag.Param{{Name: "p", Type: "int", Value: json.RawMessage("1")}}, Fingerprint: "f", Calling: true}
	for _, v := range []any{rep, rep.Outcome, job} {
		whole := reflect.ValueOf(v)
		for i := range whole.NumField() {
			if whole.Field(i).IsZero() {
				t.Errorf("%s of %s is not tried", whole.Type().Field(i).Name, whole.Type())
			}
			if tag := whole.Type().Field(i).Tag.Get("json"); tag == "" || strings.ToLower(tag) != tag {
				t.Errorf("%s of %s has no wire name", whole.Type().Field(i).Name, whole.Type())
			}
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		back := reflect.New(whole.Type())
		if err := json.Unmarshal(raw, back.Interface()); err != nil || !reflect.DeepEqual(back.Elem().Interface(), v) {
			t.Errorf("%v\n%+v\n%+v", err, back.Elem(), v)
		}
	}
	for _, raw := range []string{`{"format":2,"node":{"id":"n"}}`, `{"format":1}`} {
		if _, err := DecodeJob([]byte(raw)); err == nil {
			t.Errorf("taken: %s", raw)
		}
	}
	if _, err := DecodeReport([]byte(`{"format":2}`)); err == nil {
		t.Error("a newer report was taken")
	}
}
