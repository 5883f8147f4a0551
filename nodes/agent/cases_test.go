package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/proc"
)

// testdata/cases holds failure shapes of command line agents found in public trackers: a fake
// agent as a shell script and, in the front matter of expect.md, what a runner has to make of it.

type caseFile struct {
	ID    string `yaml:"id"`
	Clock string `yaml:"clock"`
	Node  struct {
		Parse         string             `yaml:"parse"`
		Model         string             `yaml:"model"`
		TimeoutS      float64            `yaml:"timeout_s"`
		ExitGraceS    float64            `yaml:"exit_grace_s"`
		KillGraceS    float64            `yaml:"kill_grace_s"`
		MinStartGapMS int                `yaml:"min_start_gap_ms"`
		Prices        map[string]float64 `yaml:"prices_per_mtok"`
	} `yaml:"node"`
	Expect []expectation `yaml:"expect"`
}

type expectation struct {
	Variant    int                `yaml:"variant"`
	Outcome    string             `yaml:"outcome"`
	Class      string             `yaml:"class"`
	Retry      string             `yaml:"retry"`
	Text       string             `yaml:"text"`
	Artifact   string             `yaml:"artifact"`
	TextBytes  int                `yaml:"text_bytes"`
	CostUSD    yaml.Node          `yaml:"cost_usd"`
	Tokens     map[string]int64   `yaml:"tokens"`
	ByModel    map[string]float64 `yaml:"by_model"`
	Models     []string           `yaml:"models"`
	Denials    []string           `yaml:"denials"`
	Until      string             `yaml:"until"`
	ToleranceS float64            `yaml:"tolerance_s"`
	Node       string             `yaml:"node"` // another parse
	Command    string             `yaml:"command"`
	PromptFile string             `yaml:"prompt_file"`
	PromptSize int                `yaml:"prompt_bytes"`
	Parallel   int                `yaml:"parallel"`
	After      string             `yaml:"after"`
}

func readCase(t *testing.T, dir string) caseFile {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "expect.md"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(string(b), "---\n", 3)
	var c caseFile
	if err := yaml.Unmarshal([]byte(parts[1]), &c); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return c
}

// plainText are the cases whose answers are texts, not pages.
var plainText = map[string]bool{"22-stdout-cut-65536": true, "26-huge-json-line": true, "28-stdin-read-to-eof": true, "41-cost-process-cumulative": false}

// patternsOf are what a specification has to declare of a program that dagrun does not know and that prints its
// error as an answer with exit status 0, or one that no known agent prints, where a case is to have its stated
// class: such prose is not read (DESIGN 14.26).
var patternsOf = map[string][]m{
	"02-text-error-exit-0/1": {{"match": "^API Error: Rate limit", "category": "rate_limited"}},
	"02-text-error-exit-0/2": {{"match": "^Execution error", "category": "transient"}},
	"02-text-error-exit-0/3": {{"match": `RateLimitError`, "category": "rate_limited"}},
	"15-overloaded/5":        {{"match": "Stream idle timeout", "category": "transient"}},
}

// otherwise are cases whose stated end could only be met by reading prose, with the end they have instead.
var otherwise = map[string]func(*expectation){
	// "I need permission to read notes.md": no field tells of the refusal, so that the answer is one without a page,
	// and is asked for again.
	"20-permission-denied-success/2": func(e *expectation) { e.Retry = "yes" },
	// The events and the exit status 53 are gemini's: only its table knows them.
	"10-max-turns/3": func(e *expectation) { e.Node = "gemini-json" },
	// How long a run waits at most is the plan's affair: the kind hands the moment on (X4).
	"12-usage-limit-epoch/6": func(e *expectation) { e.Outcome, e.Until = "wait", "2027-04-14T12:00:00Z" },
}

// parses are the names of the cases' parsers here.
var parses = map[string]string{"text": "text", "claude-json": "claude-json", "claude-stream": "claude-stream", "codex-jsonl": "codex-jsonl", "gemini-json": "gemini-json"}

func TestCases(t *testing.T) {
	dirs, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(dirs) < 30 {
		t.Fatalf("%d cases, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		c := readCase(t, dir)
		name := filepath.Base(dir)
		for _, e := range c.Expect {
			if e.Variant == 0 {
				continue // a table of its own: nodes/internal/evidence
			}
			if name == "26-huge-json-line" && e.Variant == 3 {
				continue // 300 MB; TestValueOverTheCap has the shape with smaller numbers
			}
			if change := otherwise[fmt.Sprintf("%s/%d", name, e.Variant)]; change != nil {
				change(&e)
			}
			t.Run(fmt.Sprintf("%s/%d", name, e.Variant), func(t *testing.T) {
				t.Parallel()
				runCase(t, dir, c, e)
			})
		}
	}
}

func runCase(t *testing.T, dir string, c caseFile, e expectation) {
	n := max(1, e.Parallel)
	var wg sync.WaitGroup
	for range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			task, host := caseTask(t, dir, c, e)
			ctx := context.Background()
			if task.Timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, task.Timeout)
				defer cancel()
			}
			k := Kind
			if c.Clock != "" {
				at, err := time.Parse(time.RFC3339, c.Clock)
				if err != nil {
					t.Error(err)
				}
				k = WithClock(func() time.Time { return at })
			}
			res, err := k.Run(ctx, task)
			checkCase(t, filepath.Base(dir), c, e, task, host, res, err)
		}()
	}
	wg.Wait()
}

func caseTask(t *testing.T, dir string, c caseFile, e expectation) (*nodes.Task, *nodetest.Host) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(dir)
	program := filepath.Join(abs, "cli.sh")
	switch {
	case strings.HasPrefix(e.Command, "./"):
		program = filepath.Join(abs, e.Command[2:])
	case e.Command != "":
		program = e.Command
	}
	prompt := "Make a page."
	if e.PromptFile != "" {
		b, err := os.ReadFile(filepath.Join(dir, e.PromptFile))
		if err != nil {
			t.Fatal(err)
		}
		prompt = string(b)
	}
	if e.PromptSize > 0 {
		prompt = strings.Repeat("x", e.PromptSize)
	}
	parse := cmp.Or(parses[e.Node], parses[c.Node.Parse])
	command := m{"parse": parse}
	if list := patternsOf[fmt.Sprintf("%s/%d", name, e.Variant)]; list != nil {
		command["errors"] = list
	}
	if name == "28-stdin-read-to-eof" && e.Variant == 2 {
		command["prompt"] = "argument"
	}
	with := m{
		"provider": "command", "argv": []string{program}, "prompt": m{"text": prompt}, "command": command, "to": "answer.txt",
		"env": m{"VARIANT": fmt.Sprint(e.Variant)}, "accept": acceptPage,
	}
	if c.Node.ExitGraceS > 0 {
		with["exitGrace"] = "300ms"
	}
	if plainText[name] {
		delete(with, "accept")
	}
	if c.Node.Model != "" {
		with["model"] = c.Node.Model
	}
	if c.Node.MinStartGapMS > 0 {
		with["startGap"] = fmt.Sprintf("%dms", c.Node.MinStartGapMS)
		with["env"] = m{"VARIANT": "1", "AGENT_HOME": "."} // the private folder; the distance alone depends on the machine's speed
	}
	task, host := nodetest.New(t, "agent", with)
	task.Grace = 300 * time.Millisecond
	if c.Node.TimeoutS > 0 {
		task.Timeout = time.Duration(c.Node.TimeoutS * float64(time.Second))
		if name == "35-term-ignored" {
			task.Timeout = 300 * time.Millisecond
		}
	}
	return task, host
}

// category is the name here of a case's class: a program that is missing is looked for a few times
// under another name before it stops the run.
func category(e expectation, attempt int, class string) string {
	if e.Outcome == "stop" && e.Retry == "yes" && attempt < startTries {
		return "spawn_failed"
	}
	return class
}

func checkCase(t *testing.T, name string, c caseFile, e expectation, task *nodes.Task, host *nodetest.Host, res *nodes.Result, err error) {
	good := e.Outcome == "ok" || e.Outcome == "ok_warn"
	var failure *nodes.Error
	errors.As(err, &failure)
	switch {
	case good && err != nil:
		t.Fatalf("failed: %v (%s)", err, nodetest.Category(err))
	case !good && err == nil:
		t.Fatalf("accepted; warnings %q, answer %.200q", res.Warnings, host.Kept["raw-output.txt"])
	case !good:
		if failure == nil {
			t.Fatalf("no *nodes.Error: %v", err)
		}
		if want := category(e, task.Attempt, e.Class); failure.Category != want {
			t.Errorf("category %q (%v), want %q", failure.Category, err, want)
		}
		if e.Outcome == "fail" && e.Retry == "no" && !failure.Permanent && failure.Category != "auth" && failure.Category != "billing" {
			t.Errorf("another attempt would be made after: %v", err)
		}
		if e.Outcome == "stop" && failure.Permanent {
			t.Errorf("it fails instead of waiting for a person: %v", err)
		}
		if e.Retry == "yes" && failure.Permanent {
			t.Errorf("no other attempt would be made after: %v", err)
		}
	}
	if e.Outcome == "ok_warn" && len(res.Warnings) == 0 {
		t.Error("no warning")
	}
	if e.Until != "" {
		until, _ := time.Parse(time.RFC3339, e.Until)
		if failure == nil || math.Abs(failure.WaitUntil.Sub(until).Seconds()) > max(e.ToleranceS, 1) {
			t.Errorf("wait until %v, want %s", failure, e.Until)
		}
	}
	if good {
		checkAnswer(t, e, task, res)
	}
	checkMoney(t, c, e, res)
	for _, word := range append(append([]string{}, e.Denials...), e.Models...) {
		if res == nil || !strings.Contains(strings.Join(res.Warnings, "\n"), word) {
			t.Errorf("no warning names %s", word)
		}
	}
	if len(e.ByModel) > 0 {
		got, _ := json.Marshal(res.Notes)
		for model, usd := range e.ByModel {
			if !bytes.Contains(got, fmt.Appendf(nil, "%q:%v", model, usd)) {
				t.Errorf("notes %s do not say %s: %v", got, model, usd)
			}
		}
	}
	if res != nil && len(res.Survivors) > 0 {
		t.Errorf("survivors %v", res.Survivors)
	}
	if err != nil && len(host.Facts) > 0 && !strings.HasPrefix(host.Types(), "LLM_CALL_STARTED LLM_CALL_F") {
		t.Errorf("facts %s", host.Types())
	}
}

func checkAnswer(t *testing.T, e expectation, task *nodes.Task, res *nodes.Result) {
	t.Helper()
	answer := nodetest.Stage(t, task, res, "answer.txt")
	if e.TextBytes > 0 && len(answer) != e.TextBytes {
		t.Errorf("answer of %d bytes, want %d", len(answer), e.TextBytes)
	}
	for _, want := range []string{e.Text, e.Artifact} {
		if want == "" {
			continue
		}
		if got := nodetest.Stage(t, task, res, "page.html"); got != want {
			t.Errorf("page %.200q, want %.200q", got, want)
		}
	}
	if e.Text != "" && answer != e.Text {
		t.Errorf("answer %.200q, want %.200q", answer, e.Text)
	}
}

func checkMoney(t *testing.T, c caseFile, e expectation, res *nodes.Result) {
	t.Helper()
	if len(e.Tokens) > 0 {
		want := nodes.Usage{Input: e.Tokens["input"], CacheRead: e.Tokens["cache_read"], CacheWrite: e.Tokens["cache_write"], Output: e.Tokens["output"]}
		if res.Usage != want {
			t.Errorf("usage %+v, want %+v", res.Usage, want)
		}
	}
	switch {
	case e.CostUSD.IsZero():
	case e.CostUSD.Tag == "!!null":
		if res != nil && res.CostUSD != nil {
			t.Errorf("cost %v, want unknown", *res.CostUSD)
		}
	case res == nil:
		t.Error("no result, but a cost is expected")
	default:
		var want float64
		if err := e.CostUSD.Decode(&want); err != nil {
			t.Fatal(err)
		}
		got := res.CostUSD
		if p := c.Node.Prices; p != nil && got == nil {
			usd := (float64(res.Usage.Input)*p["input"] + float64(res.Usage.CacheRead)*p["cache_read"] + float64(res.Usage.Output)*p["output"]) / 1e6
			got = &usd
		}
		if got == nil || math.Abs(*got-want) > 1e-9 {
			t.Errorf("cost %v, want %v", got, want)
		}
	}
}

// W-4, e-work/26: an agent that prints more than its cap is stopped or, if it has ended meanwhile, what it printed is
// not read beyond it; memory is bounded, and it is not asked again.
func TestValueOverTheCap(t *testing.T) {
	dir := "testdata/cases/26-huge-json-line"
	c := readCase(t, dir)
	for _, variant := range []int{1, 2} {
		task, _ := caseTask(t, dir, c, expectation{Variant: variant})
		var with m
		if err := json.Unmarshal(task.With, &with); err != nil {
			t.Fatal(err)
		}
		with["maxOutputMB"] = 1
		task.With, _ = json.Marshal(with)
		res, err := Kind.Run(context.Background(), task)
		var e *nodes.Error
		switch {
		case err == nil && variant == 2: // it had ended before it was looked at, with a result behind the long value
			// or it was stopped between its result and its end
			stopped := slices.DeleteFunc(slices.Clone(res.Warnings), func(w string) bool { return strings.Contains(w, "(output limit)") })
			if len(stopped) != 1 || !strings.Contains(stopped[0], "too long") {
				t.Errorf("warnings %v", res.Warnings)
			}
		case !errors.As(err, &e) || e.Category != "output_limit" || !e.Permanent || !strings.Contains(e.Message, "than 1 MB"):
			t.Errorf("variant %d: %v", variant, err)
		}
	}
}

// A program that does not start is a mistake in how all nodes are set up: the run stops for a person,
// no node fails for good. One that is missing is looked for again before that.
func TestProgramThatDoesNotStart(t *testing.T) {
	const dir = "testdata/cases/44-binary-vanishes"
	c := readCase(t, dir)
	for _, e := range c.Expect {
		for attempt, want := range map[int]string{1: "config", startTries - 1: "config", startTries: "config", startTries + 3: "config"} {
			if e.Variant == 1 && attempt < startTries {
				want = "spawn_failed"
			}
			task, host := caseTask(t, dir, c, e)
			task.Attempt = attempt
			_, err := Kind.Run(context.Background(), task)
			var failure *nodes.Error
			if !errors.As(err, &failure) || failure.Category != want || failure.Permanent {
				t.Errorf("variant %d, attempt %d: %v (%s), want %s and not for good", e.Variant, attempt, err, nodetest.Category(err), want)
			}
			if got := host.Types(); got != "LLM_CALL_STARTED LLM_CALL_FAILED" {
				t.Errorf("variant %d: facts %s", e.Variant, got)
			}
		}
	}
}

// A prompt that the operating system does not let through is the prompt's fault, not the program's.
func TestPromptTooLongForTheSystem(t *testing.T) {
	if err := notStarted(&nodes.Task{Attempt: 1}, tooLong(t)); err.Category != "input_too_big" || !err.Permanent {
		t.Errorf("%v (%s)", err, err.Category)
	}
}

// A machine that is short of processes or files has them again in a while, whatever the attempt.
func TestMachineShortOfProcesses(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EAGAIN: "spawn_failed", syscall.ENOMEM: "spawn_failed", syscall.EMFILE: "spawn_failed", syscall.ENFILE: "spawn_failed",
		syscall.EACCES: "config", syscall.ENOTDIR: "config", syscall.ELOOP: "config", syscall.EPERM: "config",
	} {
		start := &proc.StartError{Path: "agent", Err: &os.SyscallError{Syscall: "fork", Err: errno}}
		if err := notStarted(&nodes.Task{Attempt: startTries}, start); err.Category != want || err.Permanent {
			t.Errorf("%v: %s, want %s", errno, err.Category, want)
		}
	}
}

func tooLong(t *testing.T) *proc.StartError {
	t.Helper()
	dir := t.TempDir()
	_, err := proc.Run(context.Background(), &proc.Spec{Argv: []string{"/bin/echo", strings.Repeat("x", 3<<20)}, Dir: dir, Spool: dir})
	var start *proc.StartError
	if !errors.As(err, &start) {
		t.Fatalf("%v", err)
	}
	return start
}
