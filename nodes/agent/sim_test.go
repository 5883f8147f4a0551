package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

type m = map[string]any

const page = `<!DOCTYPE html><html lang="en"><head><title>t</title></head><body><h1>ok</h1></body></html>`

// acceptPage is an accept list that wants one whole page.
var acceptPage = []m{{"extract": m{"html": m{"to": "page.html"}}}}

// sim runs one attempt against the simulated agent, a real child process.
func sim(t *testing.T, answers, faults string, change ...func(m, *nodes.Task, *nodetest.Host)) (*nodes.Task, *nodetest.Host, *nodes.Result, error) {
	t.Helper()
	with := m{
		"provider": "sim", "prompt": m{"text": "Say something."}, "accept": acceptPage,
		"sim": m{"answers": "answers.yaml", "faults": faults}, "pass": []string{"GORACE"},
	}
	if strings.Contains(faults, "linger") {
		with["exitGrace"] = "100ms"
	}
	task, host := nodetest.New(t, "agent", with)
	task.Labels = map[string]string{"role": "builder", "n": "3"}
	task.Timeout = 5 * time.Minute // not a measure: a way out
	task.Grace = 200 * time.Millisecond
	if err := os.WriteFile(filepath.Join(task.SpecDir, "answers.yaml"), []byte(answers), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(with, task, host)
	}
	raw, err := json.Marshal(with)
	if err != nil {
		t.Fatal(err)
	}
	task.With = raw
	ctx, cancel := context.WithTimeout(context.Background(), task.Timeout)
	defer cancel()
	if strings.Contains(faults, "hang") || strings.Contains(faults, "deaf") { // its time is over once it has begun to speak
		late, pass := nodetest.Deadline()
		ctx, task.Beat = late, func() { pass() }
	}
	res, err := Kind.Run(ctx, task)
	return task, host, res, err
}

const onePage = "- answer: |\n    ```html\n    " + page + "\n    ```\n  costUSD: 0.25\n  usage: {input: 100, output: 20, cacheRead: 7}\n"

// C-11, V-1, S-10: the whole way of one good answer.
func TestSimulatedAnswer(t *testing.T) {
	task, host, res, err := sim(t, onePage, "")
	if err != nil {
		t.Fatal(err)
	}
	if got := nodetest.Stage(t, task, res, "page.html"); got != page {
		t.Errorf("page %q", got)
	}
	if *res.CostUSD != 0.25 || res.Usage != (nodes.Usage{Input: 100, Output: 20, CacheRead: 7}) || len(res.Warnings) != 0 {
		t.Errorf("cost %v usage %+v warnings %v", *res.CostUSD, res.Usage, res.Warnings)
	}
	if got := fmt.Sprint(res.Values["finish_reason"], res.Values["model"]); got != "stopsimulated" && got != "stop simulated" {
		t.Errorf("values %v", res.Values)
	}
	if host.Types() != "LLM_CALL_STARTED LLM_CALL_FINISHED" {
		t.Errorf("facts %s", host.Types())
	}
	start, end := host.Facts[0], host.Facts[1]
	if start["provider_base_url"] != "cli:sim" || start["prompt_hash"] != digest("Say something.") {
		t.Errorf("started %v", start)
	}
	if end["finish_reason"] != "stop" || end["api_cost_usd"] != 0.25 || fmt.Sprint(end["token_usage"]) != "map[input_tokens:107 output_tokens:20 total_tokens:127]" {
		t.Errorf("finished %v", end)
	}
	if host.Kept["prompt.md"] != "Say something." || !strings.Contains(host.Kept["raw-output.txt"], page) {
		t.Errorf("kept %v", host.Kept)
	}
	lines := strings.Split(strings.TrimSpace(host.Kept["transcript.jsonl"]), "\n")
	var last map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"type", "subtype", "is_error", "result", "session_id", "total_cost_usd", "usage"} {
		if _, ok := last[key]; !ok {
			t.Errorf("the last line has no %s", key)
		}
	}
	saved, err := nodes.LoadResult(strings.NewReader(host.Kept[nodes.SavedName]), task.Node, 1, 1, t.TempDir())
	if err != nil || *saved.CostUSD != 0.25 || saved.Writes["page.html"] == "" {
		t.Errorf("saved %+v %v", saved, err)
	}
}

// Every fault, as the machine sees it.
func TestSimulatedFaults(t *testing.T) {
	tests := []struct {
		fault, category string
		final           bool
		message         string
	}{
		{"*:rate_limited", "rate_limited", false, "429"},
		{"*:rate_limited(30)", "rate_limited", false, "retry after 30"},
		{"*:overloaded", "transient", false, "529"},
		{"*:server_error", "transient", false, "500"},
		{"*:auth", "auth", false, "Failed to authenticate"},
		{"*:billing", "billing", false, "Credit balance"},
		{"*:quota_wait(3pm (Europe/Berlin))", "quota_wait", false, "3pm"},
		{"*:refused", "refused", true, "refused"},
		{"*:input_too_big", "input_too_big", true, "too long"},
		{"*:max_turns", "budget", true, "maxTurns"},
		{"*:budget", "budget", true, "limit of money"},
		{"*:max_tokens", "truncated", true, "max_tokens"},
		{"*:truncated", "truncated", false, ""},
		{"*:cut", "protocol", false, "breaks off"},
		{"*:empty", "no_artifact", false, "empty"},
		{"*:no_artifact", "no_artifact", false, ""},
		{"*:crash", "killed", false, "signal 9"},
		{"*:exit(7)", "exit_nonzero", false, "exit status 7"},
		{"*:hang", "stalled", false, "time limit"},
		{"*:deaf", "stalled", false, "time limit"},
		{"*:linger", "", false, ""},
		{"*:drip(5ms)", "", false, ""},
		{"*:noise", "", false, ""},
		{"*:flood(2)", "", false, ""},
		{"*:big(2)", "", false, ""},
		{"*:orphan", "", false, ""},
		{"*:denied(Write)", "", false, ""},
		{"*:other_model", "", false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			_, host, res, err := sim(t, onePage, tt.fault, func(with m, _ *nodes.Task, _ *nodetest.Host) {
				with["model"] = "simulated"
			})
			if got := nodetest.Category(err); got != tt.category {
				t.Fatalf("category %q (%v), want %q", got, err, tt.category)
			}
			if err == nil {
				quiet := strings.Contains(tt.fault, "drip") || strings.Contains(tt.fault, "flood") || strings.Contains(tt.fault, "big")
				if (len(res.Warnings) == 0) != quiet || len(res.Survivors) != 0 {
					t.Errorf("warnings %q, survivors %v", res.Warnings, res.Survivors)
				}
				return
			}
			var e *nodes.Error
			errors.As(err, &e)
			if e.Permanent != tt.final || !strings.Contains(e.Message, tt.message) || len(e.Diagnostics) > 2000 {
				t.Errorf("permanent %v, message %q", e.Permanent, e.Message)
			}
			if tt.category == "quota_wait" && e.WaitUntil.Before(begin) {
				t.Errorf("wait until %v", e.WaitUntil)
			}
			if want := "LLM_CALL_STARTED LLM_CALL_FAILED"; host.Types() != want && tt.fault != "*:max_tokens" && tt.fault != "*:truncated" && tt.fault != "*:no_artifact" {
				t.Errorf("facts %s", host.Types())
			}
			if _, kept := host.Kept["raw-output.txt"]; !kept {
				t.Errorf("no output kept: %v", host.Kept)
			}
		})
	}
}

// Faults end with recorded failures, are chosen by labels, and do not depend on starts.
func TestFaultRules(t *testing.T) {
	tests := []struct {
		faults            string
		failures, attempt int
		category          string
	}{
		{"role=builder:rate_limited*2", 0, 1, "rate_limited"},
		{"role=builder:rate_limited*2", 1, 5, "rate_limited"},
		{"role=builder:rate_limited*2", 2, 3, ""},
		{"role=auditor:rate_limited", 0, 1, ""},
		{"role=auditor|builder,n=3:auth", 0, 1, "auth"},
		{"role=builder:rate_limited; role=builder:auth*2", 1, 2, "auth"},
		{"node=n:exit(3)*inf", 99, 1, "exit_nonzero"},
		{"*:exit%0.0001", 0, 1, ""},
		{"*:exit%100", 0, 1, "exit_nonzero"},
	}
	for _, tt := range tests {
		_, _, _, err := sim(t, onePage, tt.faults, func(_ m, task *nodes.Task, _ *nodetest.Host) {
			task.Failures, task.Attempt = tt.failures, tt.attempt
		})
		if got := nodetest.Category(err); got != tt.category {
			t.Errorf("%s after %d failures: %q (%v), want %q", tt.faults, tt.failures, got, err, tt.category)
		}
	}
}

func TestFaultsFromAFile(t *testing.T) {
	_, _, _, err := sim(t, onePage, "faults.yaml", func(_ m, task *nodes.Task, _ *nodetest.Host) {
		text := "- {match: {role: builder}, fault: billing, times: -1}\n"
		if err := os.WriteFile(filepath.Join(task.SpecDir, "faults.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if nodetest.Category(err) != "billing" {
		t.Errorf("%v", err)
	}
}

// The template functions build a page step by step from the prompt.
func TestTemplates(t *testing.T) {
	answers := `
- match: {role: nobody}
  answer: wrong
- match: {role: [auditor, builder], n: "[0-9]"}
  file: grow.tmpl
  write: {notes/report.md: "by {{.Node}} of {{.Labels.role}}"}
`
	grow := `{{$old := html .Prompt}}{{$new := printf "<p class=\"%s\">%d</p>" (lower "AB") (count $old "<p")}}` +
		`{{insertBefore (replaceBetween $old "<h1>" "</h1>" (title (section .Prompt "The Title"))) "</body>" $new}}` +
		`{{file "tail.txt"}} {{len .Files}} {{add 2 (sub 16 4)}} {{json (list 1 "x")}} {{(fromJson "{\"a\": 5}").a}} {{between .Prompt "[[" "]]"}} {{fence "css" .Prompt}}`
	task, _, res, err := sim(t, answers, "", func(with m, task *nodes.Task, _ *nodetest.Host) {
		with["prompt"] = m{"text": "# The Title\n\nnew head\n\n# Rest\n[[ inner ]]\n```css\na{}\n```\n" + page}
		with["to"] = "all.txt"
		for name, text := range map[string]string{"grow.tmpl": grow, "tail.txt": "\nTAIL"} {
			if err := os.WriteFile(filepath.Join(task.SpecDir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(page, "<h1>ok</h1>", `<h1>New Head</h1><p class="ab">0</p>`, 1)
	if got := nodetest.Stage(t, task, res, "page.html"); got != want {
		t.Errorf("page\n%s want\n%s", got, want)
	}
	if got := nodetest.Stage(t, task, res, "all.txt"); got != want+"\nTAIL 0 14 [1,\"x\"] 5 inner a{}" {
		t.Errorf("all\n%s", got)
	}
}

// §13.13: the same seed, node, generation and prompt give the same answer; others another.
func TestDrawsDependOnTheCallOnly(t *testing.T) {
	say := func(change func(*nodes.Task)) string {
		answers := "- answer: '{{number 0 100}} {{int 1 1000}} {{pick \"a\" \"b\" \"c\" \"d\"}} {{int 1 1000}}'\n"
		_, host, _, err := sim(t, answers, "", func(with m, task *nodes.Task, _ *nodetest.Host) {
			delete(with, "accept")
			change(task)
		})
		if err != nil {
			t.Fatal(err)
		}
		return host.Kept["raw-output.txt"]
	}
	first := say(func(*nodes.Task) {})
	if again := say(func(task *nodes.Task) { task.Attempt, task.Failures = 4, 2 }); again != first {
		t.Errorf("%q and %q", first, again)
	}
	for name, change := range map[string]func(*nodes.Task){
		"seed": func(t *nodes.Task) { t.Seed++ }, "node": func(t *nodes.Task) { t.Node = "m" }, "generation": func(t *nodes.Task) { t.Generation++ },
	} {
		if other := say(change); other == first {
			t.Errorf("another %s gives the same draws %q", name, other)
		}
	}
}

// P-13: a report counts when this attempt made it; given files are there and nothing else is.
func TestReportAndGivenFiles(t *testing.T) {
	withTools := func(with m, _ *nodes.Task, host *nodetest.Host) {
		delete(with, "accept")
		with["to"], with["report"] = "report.md", "out/report.md"
		with["tools"] = []string{"Read", "Write"}
		with["give"] = []m{{"artifact": "shots/a.png", "as": "a.png"}, {"file": "guide.md"}, {"artifact": "old.md", "as": "out/report.md"}}
		host.Artifacts["shots/a.png"], host.Artifacts["old.md"], host.Files["guide.md"] = "PNG", "old report", "g"
	}
	answers := "- answer: 'done: {{.Files}}'\n"
	task, _, res, err := sim(t, answers, "", withTools)
	if err != nil {
		t.Fatal(err)
	}
	if got := nodetest.Stage(t, task, res, "report.md"); got != "done: [a.png guide.md out/report.md]" || len(res.Warnings) != 1 {
		t.Errorf("report %q, warnings %v", got, res.Warnings)
	}
	task, _, res, err = sim(t, answers+"  write: {out/report.md: fresh}\n", "", withTools)
	if err != nil {
		t.Fatal(err)
	}
	if got := nodetest.Stage(t, task, res, "report.md"); got != "fresh" || len(res.Warnings) != 0 {
		t.Errorf("report %q, warnings %v", got, res.Warnings)
	}
}

// A failure's reason is told to the next attempt where the host says so.
func TestFeedback(t *testing.T) {
	_, host, _, err := sim(t, onePage, "", func(_ m, task *nodes.Task, _ *nodetest.Host) { task.Feedback = "no page in it" })
	if err != nil || !strings.Contains(host.Kept["prompt.md"], "not accepted: no page in it") {
		t.Errorf("%v %q", err, host.Kept["prompt.md"])
	}
}

func TestNoAnswerFits(t *testing.T) {
	_, _, _, err := sim(t, "- match: {role: other}\n  answer: x\n", "")
	if err == nil || !strings.Contains(err.Error(), "no answer fits node=n generation=1 n=3 role=builder") {
		t.Errorf("%v", err)
	}
}
