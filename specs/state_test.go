package specs_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"dagrun.dev/internal/testing/program"
)

// document is what these tests read of a state.json.
type document struct {
	Events   int64  `json:"events"`
	Status   string `json:"status"`
	Phase    string `json:"currentPhase"`
	Reason   string `json:"phaseReason"`
	InFlight []struct {
		Node    string
		Started time.Time `json:"startedAt"`
		Labels  map[string]string
	}
	Progress struct {
		Nodes, Completed, Failed, Skipped, Open int
	} `json:"progress"`
	LastPass   int    `json:"lastCompletedCorpusPass"` // of the corpus pipeline, as the next ones
	LastCycle  int    `json:"completedPACycles"`
	Artifact   string `json:"currentArtifactPath"`
	Hash       string `json:"currentArtifactHash"`
	Checkpoint []struct {
		ID, Node, CheckpointDir, ArtifactHash, StateHash string
	} `json:"checkpoints"`
	Cost struct {
		Total float64 `json:"totalEstimatedCostUsd"`
	} `json:"cost"`
	Nodes  map[string]nodeDocument `json:"nodes"`
	Errors []struct {
		Context, Diagnostics string
		Recovered            bool
		RecoveredAtAttempt   int
	} `json:"errorHistory"`
	Passes map[string]map[string]any `json:"passRecords"`
	Cycles map[string]map[string]any `json:"paCycleRecords"`
}

// nodeDocument is what these tests read of a node in it.
type nodeDocument struct {
	Kind, Status, Dir, RawOutputPath, BackupPath, ArtifactPath, ArtifactHash string

	CompletedAt time.Time

	Tokens struct {
		Cost float64 `json:"estimatedCostUsd"`
	} `json:"tokens"`
}

var stateSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile("../schemas/state.schema.json")
})

// document reads state.json, which must be whole and as the schema says, at whatever moment it is read (T-5, 1).
func (s *site) document() (d document) {
	s.t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.out, "_orchestrator/state.json"))
	var schema *jsonschema.Schema
	if err == nil {
		schema, err = stateSchema()
	}
	var v any
	if err == nil {
		v, err = jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	}
	if err == nil {
		err = schema.Validate(v)
	}
	if err == nil {
		err = json.Unmarshal(raw, &d)
	}
	if err != nil {
		s.t.Errorf("1: state.json: %v", err)
	}
	return d
}

func (s *site) sum(name string) string {
	sum := sha256.Sum256([]byte(s.read(name)))
	return hex.EncodeToString(sum[:])
}

// holds proves what 000 §10 promises of a run that has ended, by its files alone: state.json against the files that it
// names. What is promised of the way there is what watch looks at.
func (s *site) holds() {
	s.t.Helper()
	d := s.document() // 1
	if d.Artifact != "" && s.sum(d.Artifact) != d.Hash {
		s.t.Errorf("2: %s is not the artifact of state.json", d.Artifact)
	}
	saved := map[string]bool{}
	for _, c := range d.Checkpoint {
		saved[c.Node] = true
		if c.StateHash != "" && s.sum(c.CheckpointDir+"/state-snapshot.json") != c.StateHash {
			s.t.Errorf("5: checkpoint %s holds another state", c.ID)
		}
	}
	cost, last := 0.0, map[string][]string{} // artifact -> its writers
	for id, n := range d.Nodes {
		cost += n.Tokens.Cost
		if n.Kind == "checkpoint" && n.Status == "completed" && !saved[id] {
			s.t.Errorf("5: %s completed without a checkpoint", id)
		}
		if n.ArtifactPath != "" {
			last[n.ArtifactPath] = append(last[n.ArtifactPath], id)
		}
	}
	for name, writers := range last {
		slices.SortFunc(writers, func(a, b string) int { return d.Nodes[a].CompletedAt.Compare(d.Nodes[b].CompletedAt) })
		for k, id := range writers[1:] {
			if n, before := d.Nodes[id], d.Nodes[writers[k]]; s.sum(n.BackupPath) != before.ArtifactHash {
				s.t.Errorf("6: the backup of %s is not %s as %s left it", id, name, writers[k])
			}
		}
	}
	if math.Abs(cost-d.Cost.Total) > 1e-6 {
		s.t.Errorf("7: the nodes cost $%f, the run $%f", cost, d.Cost.Total)
	}
	for node, calls := range s.answered() {
		files, _ := filepath.Glob(filepath.Join(s.out, d.Nodes[node].Dir, "raw-output*"))
		if len(files) < calls {
			s.t.Errorf("10: %d answers of %s are on disk, %d were given", len(files), node, calls)
		}
	}
}

// answered counts the calls of models that were answered, by node.
func (s *site) answered() map[string]int {
	out := map[string]int{}
	for _, e := range s.events() {
		if e.Type == "LLM_CALL_FINISHED" {
			out[e.Payload.Node]++
		}
	}
	return out
}

// A watch looks at a run again and again, also while it is written: state.json is whole each time, nothing that it counts
// goes back (T-5, 4), and no log loses or changes what it held (3).
type watch struct {
	*site
	last document
	logs map[string][]byte
	n    int
}

func (s *site) watch() *watch { return &watch{site: s, logs: map[string][]byte{}} }

func (w *watch) look() {
	w.t.Helper()
	if _, err := os.Stat(filepath.Join(w.out, "_orchestrator/state.json")); err != nil {
		return // not yet
	}
	d := w.document()
	if d.Events < w.last.Events || d.LastPass < w.last.LastPass || d.LastCycle < w.last.LastCycle ||
		d.Progress.Completed < w.last.Progress.Completed || d.Cost.Total < w.last.Cost.Total {
		w.t.Errorf("4: progress goes back: %+v, then %+v", w.last, d)
	}
	w.last = d
	w.n++
	names, _ := filepath.Glob(filepath.Join(w.out, "_orchestrator/logs/[a-z]*"))
	for _, name := range append(names, filepath.Join(w.out, "_orchestrator/events.ndjson")) {
		now, err := os.ReadFile(name)
		if err != nil {
			w.t.Errorf("3: %v", err)
		}
		// A process that was killed may leave half a line, which the next one takes away.
		whole := w.logs[name][:bytes.LastIndexByte(w.logs[name], '\n')+1]
		if !bytes.HasPrefix(now, whole) {
			w.t.Errorf("3: %s has not only grown", filepath.Base(name))
		}
		w.logs[name] = now
	}
}

// stamps tell one state of the document and the log from another: a look at what has not changed finds nothing.
func (w *watch) stamps() (all string) {
	for _, name := range []string{"state.json", "events.ndjson"} {
		if f, err := os.Stat(filepath.Join(w.out, "_orchestrator", name)); err == nil {
			all += fmt.Sprintln(f.Size(), f.ModTime())
		}
	}
	return all
}

// during looks at each change all the while that something runs.
func (w *watch) during(run func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for seen := ""; ; {
			if now := w.stamps(); now != seen {
				seen = now
				w.look()
			}
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	run()
	close(stop)
	<-done
	w.look()
}

// S-3, K-2, T-5: state.json of the corpus part, in the words of the pipeline.
func TestStateDocument(t *testing.T) {
	s := corpusRun(t)
	s.holds()
	d := s.document()
	if d.Status != "completed" || d.Progress.Nodes != 73 || d.Progress.Open != 0 || d.LastPass != 56 || len(d.Passes) != 56 {
		t.Errorf("%s, %+v, pass %d, %d passes", d.Status, d.Progress, d.LastPass, len(d.Passes))
	}
	for i := 1; i <= 7; i++ { // 5
		id := fmt.Sprintf("cp-S%d", i)
		if !slices.ContainsFunc(d.Checkpoint, func(c struct {
			ID, Node, CheckpointDir, ArtifactHash, StateHash string
		}) bool {
			return c.ID == id && c.ArtifactHash == s.sum(c.CheckpointDir+"/artifact.html")
		}) {
			t.Errorf("5: subset %d is complete, and there is no %s with its page", i, id)
		}
	}
	hash := ""
	for i := 1; i <= 56; i++ {
		p := d.Passes[fmt.Sprint(i)]
		step := (i-1)%8 + 1
		verifier := step == 2 || step == 5 || step == 8
		role := map[bool]string{true: "verifier", false: "builder"}[verifier]
		if p["globalPassNumber"] != float64(i) || p["subsetPassNumber"] != float64(step) ||
			p["subsetId"] != fmt.Sprintf("S%d", (i-1)/8+1) || p["agentRole"] != role ||
			p["rotation"] != string("AAABBBCC"[step-1]) || p["validationPassed"] != true {
			t.Errorf("pass %d: %v", i, p)
		}
		for _, field := range []string{"promptPath", "rawOutputPath"} {
			if name, _ := p[field].(string); s.read(name) == "" {
				t.Errorf("pass %d: %s is empty", i, field)
			}
		}
		_, wrote := p["artifactHash"]
		backup, backed := p["backupPath"].(string)
		if wrote == verifier || backed != (wrote && i > 1) {
			t.Errorf("pass %d wrote the page: %v, with a backup: %v", i, wrote, backed)
		}
		if backed && s.sum(backup) != hash { // 6
			t.Errorf("6: the backup of pass %d is not the page before it", i)
		}
		if wrote {
			hash, _ = p["artifactHash"].(string)
		}
	}
	if got, want := fmt.Sprint(d.Passes["20"]["corpusFilesLoaded"]), "[corpus/durability/artifacts-by-content.md corpus/durability/full-disks-and-locks.md "+
		"corpus/durability/checkpoints-and-revert.md corpus/durability/what-a-crash-costs.md corpus/durability/written-then-synced.md]"; got != want {
		t.Errorf("pass 20 loaded %s, want its rotated order %s", got, want) // C-3
	}
	// Deleting it loses nothing: it is made again, the same.
	before := s.read("_orchestrator/state.json")
	for _, name := range []string{"state.json", "state.json.bak"} {
		if err := os.Remove(filepath.Join(s.out, "_orchestrator", name)); err != nil {
			t.Fatal(err)
		}
	}
	s.must("replay", "--write")
	if got := s.read("_orchestrator/state.json"); got != before || s.read("_orchestrator/state.json.bak") != before {
		t.Error("a replay makes another state.json")
	}
}

// S-3, S-8, R-8, K-2: what state.json and the logs say of work in flight, of an error that passed, of a pause by the user
// and of a return to a checkpoint.
func TestStateOfAPause(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spec := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(spec, []byte(`
pipeline:
  name: paused
  nodes:
    one: {kind: exec, writes: [one.txt], with: {run: "echo 1 > $DAGRUN_OUT/one.txt"}}
    save: {kind: checkpoint, needs: [one], with: {id: cp-1}}
    flaky:
      kind: exec
      needs: [save]
      retry: {attempts: 2, base: 1ms, jitter: 0}
      with: {run: 'test -e "$SEEN" || { touch "$SEEN"; echo boom >&2; exit 3; }', env: {SEEN: "`+s.out+`.seen"}}
    slow: {kind: exec, needs: [flaky], labels: {pass: 2, role: builder, subset: S1}, timeout: {grace: 60s}, with: {run: "while ! test -e $GO; do sleep 0.02; done", env: {GO: "`+s.out+`.go"}}}
    last: {kind: exec, needs: [slow], with: {run: "true"}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := program.Command(t.Context(), filepath.Join(program.Folder(t), "dagrun"), "apply", spec, "--quiet", "--output-dir", s.out)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+s.state)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	program.Await(t, "slow in flight", func() bool {
		_, err := os.Stat(filepath.Join(s.out, "_orchestrator/state.json"))
		return err == nil && strings.Contains(s.read("_orchestrator/state.json"), `"node":"slow"`)
	})
	if d := s.document(); len(d.InFlight) != 1 || d.InFlight[0].Node != "slow" || d.InFlight[0].Started.IsZero() ||
		!maps.Equal(d.InFlight[0].Labels, map[string]string{"pass": "2", "role": "builder", "subset": "S1"}) || d.Status != "running" {
		t.Errorf("in flight: %+v, %s", d.InFlight, d.Status)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	program.Await(t, "the interrupt", func() bool { return strings.Contains(s.read("_orchestrator/events.ndjson"), "RUN_PAUSED") })
	if err := os.WriteFile(s.out+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	d := s.document()
	if d.Status != "paused" || d.Phase != "paused" || d.Reason != "user" || len(d.InFlight) != 0 {
		t.Errorf("%s, %s for %q, in flight %+v", d.Status, d.Phase, d.Reason, d.InFlight)
	}
	if len(d.Errors) != 1 || d.Errors[0].Context != "flaky" || !d.Errors[0].Recovered ||
		d.Errors[0].RecoveredAtAttempt != 2 || !strings.Contains(d.Errors[0].Diagnostics, "boom") {
		t.Errorf("errors: %+v", d.Errors)
	}
	if n := len(d.Checkpoint); n != 2 || !strings.HasPrefix(d.Checkpoint[1].ID, "cp-PAUSE-") {
		t.Errorf("checkpoints: %+v", d.Checkpoint)
	}
	for name, want := range map[string][]string{
		"decisions.jsonl": {`"decision":"pause-pipeline","reason":"user"`},
		"errors.jsonl":    {`"recoveredAtAttempt":2`, `"diagnostics":"`},
	} {
		for _, w := range want {
			if log := s.read("_orchestrator/logs/" + name); !strings.Contains(log, w) {
				t.Errorf("%s has no %s:\n%s", name, w, log)
			}
		}
	}
	s.must("revert", "cp-1")
	d = s.document()
	if n := len(d.Errors); n != 2 || d.Errors[1].Context != "revert-to-cp-1" {
		t.Errorf("errors after the revert: %+v", d.Errors)
	}
	s.must("resume", "--quiet")
	s.holds()
	if d := s.document(); d.Status != "completed" || d.Progress.Completed != 5 {
		t.Errorf("%s, %+v", d.Status, d.Progress)
	}
}
