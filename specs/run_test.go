package specs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"dagrun.dev/internal/testing/program"
)

// A site is a copy of nothing: a run directory and a state directory for runs of a pipeline as it
// stands in this folder.
type site struct {
	t     *testing.T
	out   string // run directory
	state string
}

func newSite(t *testing.T) *site {
	dir := t.TempDir()
	return &site{t: t, out: filepath.Join(dir, "run"), state: filepath.Join(dir, "state")}
}

// dagrun runs the program; env are further variables.
func (s *site) dagrun(env []string, args ...string) (string, error) {
	s.t.Helper()
	cmd := program.Command(s.t.Context(), filepath.Join(program.Folder(s.t), "dagrun"), append(args, "--output-dir", s.out)...)
	cmd.Env = append(os.Environ(), append(env, "XDG_STATE_HOME="+s.state, "HOME="+filepath.Dir(s.out))...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// must runs the program, which must succeed.
func (s *site) must(args ...string) string {
	s.t.Helper()
	out, err := s.dagrun(nil, args...)
	if err != nil {
		s.t.Fatalf("dagrun %s: %v\n%s", strings.Join(args, " "), err, tail(out))
	}
	return out
}

// plain runs a command that has nothing to do with a run.
func (s *site) plain(args ...string) string {
	s.t.Helper()
	out, err := program.Command(s.t.Context(), filepath.Join(program.Folder(s.t), "dagrun"), args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("dagrun %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

// read returns a file of the run directory.
func (s *site) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(filepath.Join(s.out, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// record is a line of the log, as far as these tests look at it.
type record struct {
	Type    string `json:"type"`
	Payload struct {
		Node       string                     `json:"node"`
		Generation int                        `json:"generation"`
		Attempt    int                        `json:"attempt"`
		Status     string                     `json:"status"`
		Reason     string                     `json:"reason"`
		Final      bool                       `json:"final"`
		Category   string                     `json:"category"`
		Values     map[string]json.RawMessage `json:"values"`
		Reused     any                        `json:"reused"` // of an end: true; of a plan: how many
		Notes      []struct {
			Log, Type string
			Fields    map[string]any
		} `json:"notes"`
		Warnings []string `json:"warnings"`
		ID       string   `json:"id"`
		By       string   `json:"by"`
		Name     string   `json:"name"`
		Gate     string   `json:"gate"`
		State    string   `json:"state"` // of a breaker

		Old     string `json:"old_state"`
		New     string `json:"new_state"`
		Section string `json:"section"`
		IssueID string `json:"issue_id"`
		Base    string `json:"base"`
		Branch  string `json:"branch"`
		Commit  string `json:"commit"`

		PromptTokens int `json:"prompt_tokens_estimate"`
	} `json:"payload"`
}

func (s *site) events() []record {
	s.t.Helper()
	return s.parsed(s.read("_orchestrator/events.ndjson"))
}

// parsed are the events of a log.
func (s *site) parsed(log string) (out []record) {
	s.t.Helper()
	for line := range strings.Lines(log) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// finished returns the last end of each node.
func finished(events []record) map[string]record {
	out := map[string]record{}
	for _, e := range events {
		if e.Type == "WORK_ITEM_FINISHED" {
			out[e.Payload.Node] = e
		}
	}
	return out
}

// once returns a run that the first call makes: tests that only look, or go on from copies, share it.
func once(t *testing.T, name string, run func(s *site)) *site {
	t.Helper()
	root, err := sharedRuns()
	if err == nil {
		err = os.MkdirAll(filepath.Join(root, name), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, out: filepath.Join(root, name, "run"), state: filepath.Join(root, name, "state")}
	made, _ := runsMade.LoadOrStore(name, new(sync.Once))
	made.(*sync.Once).Do(func() { run(s) })
	return s
}

var (
	sharedRuns = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "dagrun-runs-") })
	runsMade   sync.Map // name -> *sync.Once
)

// corpusRun is a whole run of the corpus part.
func corpusRun(t *testing.T) *site {
	t.Helper()
	return once(t, corpus, func(s *site) { s.must("apply", corpusSpec(t), "--seed", "7", "--quiet") })
}

// corpusSpec is the specification of the corpus part alone; its folder is the pipeline's.
func corpusSpec(*testing.T) string { return filepath.Join(corpus, "spec.yaml") }

// C-1, C-10: all nodes of the corpus part complete, and what comes out is a page.
func TestCorpusRun(t *testing.T) {
	s := corpusRun(t)
	ends := finished(s.events())
	if len(ends) != 73 {
		t.Errorf("%d nodes have ended, want 73", len(ends))
	}
	for id, e := range ends {
		if e.Payload.Status != "completed" {
			t.Errorf("%s %s: %s", id, e.Payload.Status, e.Payload.Category)
		}
	}
	page := s.read("artifact.html")
	for _, want := range []string{"<!DOCTYPE html>", "</html>", "max-width: 952px", "<!-- INTENT:", "<!-- IMPROVEMENTS:"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page holds no %q", want)
		}
	}
	if got := strings.Count(page, `<section class="chapter"`); got != 7 {
		t.Errorf("the page has %d chapters, want 7", got)
	}
	for _, tag := range []string{"figure", "table", "blockquote"} {
		if got := strings.Count(page, "<"+tag); got != 7 {
			t.Errorf("the page has %d <%s>, want one in each chapter", got, tag)
		}
	}
	if out := s.must("verify"); strings.Contains(out, "WRONG") || strings.Count(out, "ok ") < 5 {
		t.Error(out)
	}
}

// S-7: a finished run has nothing to do.
func TestApplyAgainDoesNothing(t *testing.T) {
	s := corpusRun(t)
	before := s.read("_orchestrator/events.ndjson")
	s.must("apply", corpusSpec(t), "--quiet")
	starts := func(log string) int { return strings.Count(log, `"type":"WORK_ITEM_STARTED"`) }
	if after := s.read("_orchestrator/events.ndjson"); starts(after) != starts(before) || !strings.HasPrefix(after, before) {
		t.Errorf("%d attempts were started by a second apply", starts(after)-starts(before))
	}
}

// C-4, C-5, C-6: what stands in the prompts of the passes.
func TestPrompts(t *testing.T) {
	s := corpusRun(t)
	placeholder := regexp.MustCompile(`\{[A-Z][A-Z0-9_]+\}`)
	for pass := 1; pass <= 56; pass++ {
		prompt := s.read(fmt.Sprintf("_orchestrator/passes/pass-%03d/prompt.md", pass))
		step, subset := (pass-1)%8+1, (pass-1)/8+1
		verifier := step == 2 || step == 5 || step == 8
		if left := placeholder.FindString(prompt); left != "" {
			t.Errorf("pass %d: %s is not filled in", pass, left)
		}
		if got := strings.Contains(prompt, "What the verifier observed"); got != (step == 3 || step == 6) {
			t.Errorf("pass %d is given observations: %v", pass, got)
		}
		if got := strings.Contains(prompt, "New rotation"); got != (step == 4 || step == 7) {
			t.Errorf("pass %d is told of a new rotation: %v", pass, got)
		}
		first := regexp.MustCompile(`(?m)^## \[1/\d+\] (\S+) \(PRIMACY POSITION\)$`).FindAllString(prompt, -1)
		if len(first) != 1 {
			t.Errorf("pass %d marks %v as primacy position, want one", pass, first)
		}
		if verifier {
			continue
		}
		for _, want := range []string{"The page belongs to a workshop", "Conviction brief", "## Chapters", "Mechanism catalog", "--paper:", ".masthead", "Case study", "**Order.**"} {
			if !strings.Contains(prompt, want) {
				t.Errorf("pass %d: %q is missing", pass, want)
			}
		}
		if got := strings.Contains(prompt, "The chapter on plans established"); got != (subset > 1) {
			t.Errorf("pass %d has the summary of S1: %v", pass, got)
		}
	}
}

// C-7: the estimate is characters / 4, rounded up, and known before the call.
func TestPromptTokens(t *testing.T) {
	s := corpusRun(t)
	prompt := []rune(s.read("_orchestrator/passes/pass-020/prompt.md"))
	for _, e := range s.events() {
		if e.Type != "LLM_CALL_STARTED" || e.Payload.Node != "S3/p4" {
			continue
		}
		if want := (len(prompt) + 3) / 4; e.Payload.PromptTokens != want {
			t.Errorf("the prompt of pass 20 is estimated at %d tokens, want %d", e.Payload.PromptTokens, want)
		}
		return
	}
	t.Error("no call of pass 20 is recorded")
}

// C-9: the accumulators hold the last ten and the last thirty entries, with the pass they came from.
func TestAccumulators(t *testing.T) {
	s := corpusRun(t)
	entry := regexp.MustCompile(`(?m)^#{2,3} .*Pass (\d+)`)
	for name, want := range map[string]int{"conviction-layer": 10, "discovery-log": 30} {
		found := entry.FindAllStringSubmatch(s.read("_orchestrator/"+name+".md"), -1)
		if len(found) != want {
			t.Errorf("%s holds %d entries, want %d", name, len(found), want)
			continue
		}
		if last := found[want-1][1]; last != "55" {
			t.Errorf("the last entry of %s is of pass %s, want 55", name, last)
		}
	}
}

// C-12: a pass that hands the page on as it is is accepted, noted, and not tried again.
func TestUnchangedPage(t *testing.T) {
	s := corpusRun(t)
	e := finished(s.events())["S6/p7"]
	if e.Payload.Status != "completed" || e.Payload.Attempt != 1 || string(e.Payload.Values["changed"]) != "false" {
		t.Errorf("S6/p7: %s in attempt %d, changed %s", e.Payload.Status, e.Payload.Attempt, e.Payload.Values["changed"])
	}
	var logs []string
	for _, n := range e.Payload.Notes {
		if n.Type == "no-modification" || n.Type == "accept-no-modification" {
			logs = append(logs, n.Log)
		}
	}
	slices.Sort(logs)
	if !slices.Equal(logs, []string{"decision", "quality"}) {
		t.Errorf("noted in %v, want decision and quality; notes: %v", logs, e.Payload.Notes)
	}
}

// C-13: the counts of each verifier are quality records, and rise.
func TestVerifierCounts(t *testing.T) {
	s := corpusRun(t)
	ends := finished(s.events())
	for subset := 1; subset <= 7; subset++ {
		last := -1.0
		for _, step := range []int{2, 5, 8} {
			e := ends[fmt.Sprintf("S%d/p%d", subset, step)]
			i := slices.IndexFunc(e.Payload.Notes, func(n struct {
				Log, Type string
				Fields    map[string]any
			}) bool {
				return n.Log == "quality" && n.Type == "verifier-depth"
			})
			if i < 0 {
				t.Errorf("%s: no quality record of its counts", e.Payload.Node)
				continue
			}
			deep, _ := e.Payload.Notes[i].Fields["deeplyIntegrated"].(float64)
			if deep < last || deep == last && e.Payload.Node != "S6/p8" { // S6/p7 leaves the page as it is
				t.Errorf("%s counts %v deeply integrated, %v before", e.Payload.Node, deep, last)
			}
			last = deep
		}
	}
}

// S-8, S-9, S-10: checkpoints, backups before each write, every answer on disk.
func TestWhatIsKept(t *testing.T) {
	s := corpusRun(t)
	for i := 1; i <= 7; i++ {
		s.read(fmt.Sprintf("_orchestrator/checkpoints/cp-S%d/manifest.json", i))
	}
	for pass := 1; pass <= 56; pass++ {
		dir := fmt.Sprintf("_orchestrator/passes/pass-%03d/", pass)
		if s.read(dir+"raw-output.txt") == "" {
			t.Errorf("pass %d: the answer is empty", pass)
		}
		step := (pass-1)%8 + 1
		_, err := os.Stat(filepath.Join(s.out, dir, "artifact-backup.html"))
		builder := step != 2 && step != 5 && step != 8
		if had := err == nil; had != (builder && pass > 1) {
			t.Errorf("pass %d has a backup: %v", pass, had)
		}
	}
}

// T-1, T-4: the six logs hold what people ask for, and the commands that look at a run give JSON.
func TestLogsAndReports(t *testing.T) {
	s := corpusRun(t)
	lines := func(name string) (out []map[string]any) {
		for line := range strings.Lines(s.read("_orchestrator/logs/" + name)) {
			var v map[string]any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out = append(out, v)
		}
		return out
	}
	for name, fields := range map[string][]string{
		"passes.jsonl": {"pass", "subset", "subsetPass", "rotation", "role", "durationMs", "inputTokens", "outputTokens", "costUsd", "validationPassed", "retries"},
		"cost.jsonl":   {"pass", "role", "subset", "model", "inputTokens", "outputTokens", "cacheRead", "cacheWrite", "costUsd", "cumulativeCostUsd"},
	} {
		all := lines(name)
		i := slices.IndexFunc(all, func(v map[string]any) bool { return v["node"] == "S3/p4" })
		if i < 0 {
			t.Errorf("%s has no line of S3/p4", name)
			continue
		}
		for _, f := range fields {
			if _, ok := all[i][f]; !ok {
				t.Errorf("%s: the line of S3/p4 has no %s: %v", name, f, all[i])
			}
		}
	}
	if len(lines("decisions.jsonl")) == 0 || len(lines("quality.jsonl")) == 0 {
		t.Error("no decisions or no quality records")
	}
	lines("errors.jsonl")
	if log := s.read("_orchestrator/logs/orchestrator.log"); !strings.Contains(log, "[INFO]") || !strings.Contains(log, "S3/p4") {
		t.Error("orchestrator.log does not tell of S3/p4")
	}
	for _, command := range []string{"status", "checkpoints", "report", "escalations", "verify"} {
		if out := s.must(command, "--json"); !json.Valid([]byte(out)) {
			t.Errorf("dagrun %s --json is no JSON:\n%s", command, tail(out))
		}
	}
}

// Two runs of one seed give the same page and the same memory, and ask the same.
func TestSameSeedSameBytes(t *testing.T) {
	t.Parallel()
	a, b := corpusRun(t), newSite(t)
	b.must("apply", corpusSpec(t), "--seed", "7", "--quiet")
	same(t, a, b)
	prompts, err := filepath.Glob(filepath.Join(a.out, "_orchestrator/*/*/prompt.md"))
	if err != nil || len(prompts) < 56 {
		t.Errorf("%d prompts, %v", len(prompts), err)
	}
	for _, path := range prompts {
		if name := strings.TrimPrefix(path, a.out+"/"); a.read(name) != b.read(name) {
			t.Errorf("%s differs", name)
		}
	}
}

// same compares what two runs made: all artifacts, and the live files of the accumulators.
func same(t *testing.T, a, b *site) {
	t.Helper()
	for _, name := range a.made() {
		if a.read(name) != b.read(name) {
			t.Errorf("%s differs", name)
		}
	}
}

// made are the files of a run that its artifacts and accumulators stand in, and those only.
func (s *site) made() []string {
	s.t.Helper()
	var names []string
	for _, pattern := range []string{"*", "[a-z]*/*.md", "_orchestrator/*.md"} {
		found, err := filepath.Glob(filepath.Join(s.out, pattern))
		if err != nil {
			s.t.Fatal(err)
		}
		for _, name := range found {
			if fi, err := os.Stat(name); err == nil && fi.Mode().IsRegular() {
				names = append(names, strings.TrimPrefix(name, s.out+"/"))
			}
		}
	}
	if len(names) < 2 {
		s.t.Fatalf("the run made only %v", names)
	}
	return names
}
