package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/testing/exchange"
	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent"
	"dagrun.dev/nodes/all"
)

type m = map[string]any

// page is what a case calls a full page, half is half of it.
const (
	page = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>t</title></head><body><h1>ok</h1></body></html>`
	half = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>t</t`
)

// noon is the runner's clock where a case names none.
var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// settings are those of a node that asks an API for a page.
func settings(protocol, url string) m {
	with := m{
		"provider": "openai", "model": "model-b", "baseURL": url, "prompt": m{"text": "Make a page."}, "to": "answer.txt", "maxOutputTokens": 4096,
		"accept": []m{{"extract": m{"html": m{"to": "page.html"}}}},
	}
	switch protocol {
	case "anthropic-messages":
		with["provider"], with["model"] = "anthropic", "model-a"
	case "openai-responses":
		with["api"] = "responses"
	}
	return with
}

// A play is one node's life: attempts as the machine orders them, with waits of virtual time.
type play struct {
	t      *testing.T
	kind   nodes.Kind
	with   m
	state  machine.State
	now    time.Time
	seq    int64
	sleeps []time.Duration
	hosts  []*nodetest.Host
	tasks  []*nodes.Task
	res    *nodes.Result
	errs   []*nodes.Error
	bodies []*machine.FinishedBody
}

// table is the built-in table of categories.
func table(t *testing.T) []dag.Category {
	t.Helper()
	spec := filepath.Join(t.TempDir(), "spec.yaml")
	if err := os.WriteFile(spec, []byte("pipeline: {name: p, nodes: {a: {kind: exec, with: {run: \"true\"}}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := compile.Compile(compile.Options{Path: spec, Kinds: all.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan.Categories
}

func newPlay(t *testing.T, with m, categories []dag.Category) *play {
	t.Helper()
	p := &play{t: t, with: with, now: noon}
	p.kind = agent.WithClock(func() time.Time { return p.now })
	plan := &dag.Plan{Format: dag.Format, Name: "p", Categories: categories, Budget: dag.Budget{CapUSD: 100e6},
		Nodes: []dag.Node{{ID: "n", Kind: "agent", Effect: "idempotent", Paid: true, Reserve: dag.Amount{USD: 1e6}}}}
	g, err := dag.NewGraph(plan)
	if err != nil {
		t.Fatal(err)
	}
	created := machine.New(p.now, &machine.RunCreatedBody{RunID: "r", Name: "p", PlanDigest: plan.Digest(), Schema: 1, Seed: 1})
	created.Plan = g
	p.apply(created)
	return p
}

func (p *play) apply(e machine.Event) {
	p.t.Helper()
	p.seq++
	e.Seq = p.seq
	if err := p.state.Apply(&e); err != nil {
		p.t.Fatal(err)
	}
}

// run makes attempts until the node is done, failed, waits for long or stops for a person.
func (p *play) run() {
	p.t.Helper()
	for attempt := 1; attempt <= 10; attempt++ {
		p.apply(machine.New(p.now, &machine.StartedBody{Node: "n", Generation: 1, Attempt: attempt, Reserve: dag.Amount{USD: 1e6}}))
		task, host := nodetest.New(p.t, "agent", p.with)
		task.Attempt, task.Failures, task.Timeout = attempt, attempt-1, 20*time.Second
		ctx, cancel := context.WithTimeout(context.Background(), task.Timeout)
		res, err := p.kind.Run(ctx, task)
		cancel()
		p.hosts, p.tasks, p.res = append(p.hosts, host), append(p.tasks, task), res
		o := machine.Outcome{Status: dag.StatusCompleted}
		var e *nodes.Error
		if errors.As(err, &e) {
			o = machine.Outcome{Status: dag.StatusFailed, Category: e.Category, Message: e.Error(), Diagnostics: e.Diagnostics, RetryAfter: e.RetryAfter, WaitUntil: e.WaitUntil, Permanent: e.Permanent}
		} else if err != nil {
			p.t.Fatalf("no *nodes.Error: %v", err)
		}
		p.errs = append(p.errs, e)
		if res != nil && res.CostUSD != nil {
			o.Body.CostUSD, _ = dag.Dollars(*res.CostUSD)
			o.Body.CostKind = dag.CostReported
		}
		end := p.state.Settle("n", o, p.now)
		b := end.Body.(*machine.FinishedBody)
		p.bodies = append(p.bodies, b)
		p.apply(end)
		if b.RetryAt.IsZero() {
			return
		}
		p.sleeps = append(p.sleeps, b.RetryAt.Sub(p.now))
		p.now = b.RetryAt
	}
	p.t.Fatal("it goes on for ever")
}

func (p *play) last() (*machine.FinishedBody, *nodes.Error) {
	return p.bodies[len(p.bodies)-1], p.errs[len(p.errs)-1]
}

// outcome is the end in the words of the cases.
func (p *play) outcome() string {
	b, _ := p.last()
	switch {
	case b.Status == dag.StatusCompleted && len(p.res.Warnings) > 0:
		return "ok_warn"
	case b.Status == dag.StatusCompleted:
		return "ok"
	case b.Stop:
		return "stop"
	case !b.WaitUntil.IsZero():
		return "wait"
	}
	return "fail"
}

type apiCase struct {
	Node struct {
		Protocol string `yaml:"protocol"`
	} `yaml:"node"`
	Expect []apiExpect `yaml:"expect"`
}

type apiExpect struct {
	Exchange  string           `yaml:"exchange"`
	Body      string           `yaml:"body"`
	End       string           `yaml:"end"`
	Protocol  string           `yaml:"protocol"`
	Outcome   string           `yaml:"outcome"`
	Class     string           `yaml:"class"`
	Retry     string           `yaml:"retry"`
	Attempts  int              `yaml:"attempts"`
	SleepsS   [][]float64      `yaml:"sleeps_s"`
	WaitS     []float64        `yaml:"wait_s"`
	MaxChars  int              `yaml:"message_max_chars"`
	Has       []string         `yaml:"message_has"`
	CostKnown *bool            `yaml:"cost_known"`
	Usage     map[string]int64 `yaml:"usage"`
	Stop      bool             `yaml:"stop"`
	Table     string           `yaml:"table"`
	Ledger    []m              `yaml:"ledger"`
	CancelMS  int              `yaml:"cancel_after_ms"`
}

func readAPICase(t *testing.T, dir string) apiCase {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "expect.md"))
	if err != nil {
		t.Fatal(err)
	}
	var c apiCase
	if err := yaml.Unmarshal([]byte(strings.SplitN(string(b), "---\n", 3)[1]), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// testdata/api holds failure shapes of HTTP APIs: answers, and what a runner has to make of
// them.
func TestAPICases(t *testing.T) {
	dirs, err := filepath.Glob("testdata/api/*")
	if err != nil || len(dirs) < 15 {
		t.Fatalf("%d cases, %v", len(dirs), err)
	}
	categories := table(t)
	for _, dir := range dirs {
		c := readAPICase(t, dir)
		for _, e := range c.Expect {
			if e.Table != "" {
				continue // a test of its own
			}
			name := fmt.Sprintf("%s/%s%s%s", filepath.Base(dir), e.Exchange, e.Body, e.End)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var answers []exchange.Response
				if e.Body != "" {
					answers = []exchange.Response{{Status: 200, BodyFile: e.Body, End: e.End}}
				} else {
					if e.Exchange == "" {
						e.Exchange = "exchange.json"
					}
					answers = exchange.Load(t, filepath.Join(dir, e.Exchange))
				}
				s := exchange.Serve(t, dir, answers...)
				protocol := c.Node.Protocol
				if e.Protocol != "" {
					protocol = e.Protocol
				}
				if protocol == "" {
					protocol = "anthropic-messages"
				}
				p := newPlay(t, settings(protocol, s.URL), categories)
				p.run()
				checkAPI(t, p, e, s)
			})
		}
	}
}

func checkAPI(t *testing.T, p *play, e apiExpect, s *exchange.Server) {
	t.Helper()
	b, failure := p.last()
	if n := len(s.Requests()); n != len(p.errs) {
		t.Errorf("%d requests in %d attempts", n, len(p.errs))
	}
	if e.Attempts > 0 && len(p.errs) != e.Attempts {
		t.Errorf("%d attempts, want %d", len(p.errs), e.Attempts)
	}
	got := p.outcome()
	switch {
	case e.Outcome == "cancelled": // the wait is the machine's: what it keeps is the last error
	case e.Stop || b.Category == "billing":
		if got != "stop" {
			t.Errorf("%s, want stop: %v", got, failure)
		}
	case got != e.Outcome:
		t.Fatalf("%s (%s), want %s; %v, warnings %v", got, b.Category, e.Outcome, failure, p.res.Warnings)
	}
	if e.Class != "" && b.Category != e.Class {
		t.Errorf("class %s, want %s: %v", b.Category, e.Class, failure)
	}
	if e.Retry != "" && (e.Retry == "yes") != (len(p.errs) > 1) {
		t.Errorf("%d attempts, but retry is %s: %v", len(p.errs), e.Retry, failure)
	}
	for i, want := range e.SleepsS {
		if i >= len(p.sleeps) || p.sleeps[i].Seconds() < want[0] || p.sleeps[i].Seconds() > want[1] {
			t.Errorf("sleeps %v, want %v", p.sleeps, e.SleepsS)
			break
		}
	}
	if w := b.WaitUntil.Sub(p.now).Seconds(); len(e.WaitS) > 0 && (w < e.WaitS[0] || w > e.WaitS[1]) {
		t.Errorf("waits %vs, want %v", w, e.WaitS)
	}
	if e.MaxChars > 0 && len(failure.Message) > e.MaxChars {
		t.Errorf("message of %d characters: %s", len(failure.Message), failure.Message)
	}
	for _, word := range e.Has {
		if !strings.Contains(failure.Error(), word) {
			t.Errorf("the message does not say %s: %v", word, failure)
		}
	}
	if got == "ok" || got == "ok_warn" {
		if text := nodetest.Stage(t, p.tasks[len(p.tasks)-1], p.res, "page.html"); strings.TrimSpace(text) != page {
			t.Errorf("page %q", text)
		}
	}
	if e.CostKnown != nil && (p.res.CostUSD != nil || p.res.Usage != nodes.Usage{}) == !*e.CostKnown {
		t.Errorf("cost %v, usage %+v, but cost_known is %v", p.res.CostUSD, p.res.Usage, *e.CostKnown)
	}
	if u := e.Usage; u != nil && (p.res.Usage != nodes.Usage{Input: u["input"], Output: u["output"]}) {
		t.Errorf("usage %+v, want %v", p.res.Usage, u)
	}
	for i, want := range e.Ledger {
		assumed := p.bodies[i].CostKind == dag.CostAssumed
		if assumed != strings.HasPrefix(fmt.Sprint(want["cost"]), "unknown") && i == 0 {
			t.Errorf("attempt %d is booked as %q, want %v", i+1, p.bodies[i].CostKind, want["cost"])
		}
	}
}

// rows reads a table; the first row names the columns.
func rows(t *testing.T, path string) (out []map[string]string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	names := strings.Split(lines[0], "\t")
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range strings.Split(line, "\t") {
			row[names[i]] = cell
		}
		out = append(out, row)
	}
	return out
}

// a-api/06: 429 that no wait can heal, and its look-alike that a wait heals.
func TestQuotaTable(t *testing.T) {
	b, err := os.ReadFile("testdata/api/06-insufficient-quota/bodies.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	categories := table(t)
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		var row struct {
			Provider string
			Expect   struct {
				Outcome, Class, Retry string
				Wait                  []float64 `json:"wait_s"`
			}
			exchange.Response
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if row.Expect.Class == "input_too_big" {
			// That a single request passes the limit of a minute is said in words alone (DESIGN 14.26): it is asked
			// again.
			row.Expect.Class, row.Expect.Retry = "rate_limited", "yes"
		}
		protocol := "openai-chat"
		if row.Provider == "anthropic" {
			protocol = "anthropic-messages"
		}
		p, first := once(t, categories, protocol, row.Response)
		again := !first.RetryAt.IsZero()
		if first.Category != row.Expect.Class || first.Stop != (row.Expect.Outcome == "stop") || again != (row.Expect.Retry == "yes") {
			t.Errorf("%s: %s, stop %v, again %v (%v)", line, first.Category, first.Stop, again, p.errs[0])
		}
		if d, w := first.RetryAt.Sub(noon).Seconds(), row.Expect.Wait; w != nil && (d < w[0] || d > w[1]) {
			t.Errorf("%s: again after %vs", line, d)
		}
		if first.CostKind != dag.CostReported || first.CostUSD != 0 {
			t.Errorf("%s: a refused call is booked as %v %q", line, first.CostUSD, first.CostKind)
		}
	}
}

func message(kind string) json.RawMessage {
	return json.RawMessage(`{"type":"error","error":{"type":"` + kind + `","message":"x"},"request_id":"req_1"}`)
}

// once makes the first attempt only and says what the machine would do next.
func once(t *testing.T, categories []dag.Category, protocol string, r exchange.Response) (*play, *machine.FinishedBody) {
	t.Helper()
	s := exchange.Serve(t, "", r)
	p := newPlay(t, settings(protocol, s.URL), categories)
	p.run()
	return p, p.bodies[0]
}

// a-api/04: what a Retry-After leads to.
func TestRetryAfterTable(t *testing.T) {
	categories := table(t)
	want := map[string][2]float64{ // seconds; of a retry, or of a wait that uses no attempt
		"0": {60, 72}, "2": {2, 3}, "1.5": {1.5, 2.5}, " 7 ": {7, 8}, "3600": {3600, 3660}, "86400": {86400, 86460}, "99999999999999": {60, 72},
		"-5": {60, 72}, "1e3": {60, 72}, "NaN": {60, 72}, "5, 9": {9, 10},
	}
	for _, row := range rows(t, "testdata/api/04-retry-after-extremes/values.tsv") {
		value := row["retry_after"]
		_, b := once(t, categories, "anthropic-messages", exchange.Response{Status: 429, Headers: map[string]string{"retry-after": value}, Body: message("rate_limit_error")})
		at := b.RetryAt
		if long := strings.HasPrefix(row["result"], "node wait"); long != !b.WaitUntil.IsZero() {
			t.Errorf("%q: retry at %v, wait until %v, want %s", value, b.RetryAt, b.WaitUntil, row["result"])
		} else if long {
			at = b.WaitUntil
		}
		if d, w := at.Sub(noon).Seconds(), want[value]; d < w[0] || d > w[1] {
			t.Errorf("%q: %vs, want %v (%s)", value, d, w, row["result"])
		}
	}
}

// a-api/07: what each status means and whether it is tried again.
func TestStatusTable(t *testing.T) {
	categories := table(t)
	for _, row := range rows(t, "testdata/api/07-status-table/status.tsv") {
		status, _ := strconv.Atoi(row["status"])
		r := exchange.Response{Status: status, Body: message("some_error"), Headers: map[string]string{}}
		switch row["body"] {
		case "html page":
			r.Headers["content-type"], r.Body = "text/html", json.RawMessage(`"<html><head><title>Denied</title></head><body>no</body></html>"`)
		case "empty":
			r.Body = nil
		case "rate limit":
			r.Body = message("rate_limit_error")
		case "overloaded":
			r.Body = message("overloaded_error")
		case "error object, model unknown":
			r.Body = message("not_found_error")
		}
		p, b := once(t, categories, "anthropic-messages", r)
		got := "no"
		switch {
		case b.Stop:
			got = "stop"
		case !b.RetryAt.IsZero():
			got = "yes"
		}
		want, _, _ := strings.Cut(strings.Replace(row["retry"], "few", "yes", 1), " ")
		want = strings.TrimSuffix(want, ",")
		if b.Category != row["class"] || got != want {
			t.Errorf("%d %s: %s, retry %s; want %s, %s (%v)", status, row["body"], b.Category, got, row["class"], row["retry"], p.errs[0])
		}
		known := p.bodies[0].CostKind == dag.CostReported
		if known == (strings.Contains(row["retry"], "cost unknown") || status == 204) {
			t.Errorf("%d: the cost is booked as %q", status, b.CostKind)
		}
	}
}

// a-api/13: every stop reason, in one piece and as a stream.
func TestStopReasonTable(t *testing.T) {
	categories := table(t)
	for _, row := range rows(t, "testdata/api/13-anthropic-stop-reasons/stops.tsv") {
		reason := m{"stop_reason": row["stop_reason"]}
		if row["stop_reason"] == "(null)" {
			reason["stop_reason"] = nil
		}
		var blocks []m
		switch row["content"] {
		case "full page":
			blocks = []m{{"type": "text", "text": page}}
		case "half page", "partial":
			blocks = []m{{"type": "text", "text": half}}
		case "text + tool block":
			blocks = []m{{"type": "text", "text": page}, {"type": "tool_use", "id": "t", "name": "x", "input": m{}}}
		}
		for _, r := range []exchange.Response{wholeMessage(blocks, reason), streamedMessage(blocks, reason)} {
			p, b := once(t, categories, "anthropic-messages", r)
			got := p.outcome()
			if got != row["outcome"] || !strings.HasPrefix(row["class"], b.Category) {
				t.Errorf("%s, %s: %s %s, want %s %s (%v)", row["stop_reason"], row["content"], got, b.Category, row["outcome"], row["class"], p.errs[0])
			}
			if got == "ok_warn" && !strings.Contains(strings.Join(p.res.Warnings, "\n"), strings.Trim(row["stop_reason"], "()")) {
				t.Errorf("no warning names %s: %v", row["stop_reason"], p.res.Warnings)
			}
		}
	}
}

func wholeMessage(blocks []m, reason m) exchange.Response {
	if blocks == nil {
		blocks = []m{}
	}
	body, _ := json.Marshal(m{"id": "msg_1", "type": "message", "role": "assistant", "model": "model-a", "content": blocks,
		"stop_reason": reason["stop_reason"], "usage": m{"input_tokens": 10, "output_tokens": 50}})
	return exchange.Response{Status: 200, Body: body}
}

func streamedMessage(blocks []m, reason m) exchange.Response {
	var b strings.Builder
	event := func(v m) {
		raw, _ := json.Marshal(v)
		fmt.Fprintf(&b, "event: %s\r\ndata: %s\r\n\r\n: comment\r\n\r\n", v["type"], raw)
	}
	event(m{"type": "message_start", "message": m{"model": "model-a", "content": []m{}, "usage": m{"input_tokens": 10, "output_tokens": 1}}})
	event(m{"type": "ping"})
	for i, block := range blocks {
		text, isText := block["text"].(string)
		if isText {
			block = m{"type": "text", "text": ""}
		}
		event(m{"type": "content_block_start", "index": i, "content_block": block})
		for len(text) > 0 {
			n := min(7, len(text))
			event(m{"type": "content_block_delta", "index": i, "delta": m{"type": "text_delta", "text": text[:n]}})
			text = text[n:]
		}
		event(m{"type": "content_block_stop", "index": i})
	}
	event(m{"type": "message_delta", "delta": m{"stop_reason": reason["stop_reason"]}, "usage": m{"output_tokens": 50}})
	event(m{"type": "message_stop"})
	return exchange.Response{Status: 200, Headers: map[string]string{"content-type": "text/event-stream"}, RawBody: b.String(), Drip: &exchange.Drip{Bytes: 900}}
}

// a-api/28: limits that are renewed, in six formats.
func TestResetTable(t *testing.T) {
	categories := table(t)
	for _, row := range rows(t, "testdata/api/28-ratelimit-reset-formats/resets.tsv") {
		_, b := once(t, categories, "openai-chat", exchange.Response{Status: 429, Headers: map[string]string{row["header"]: row["value"]},
			Body: json.RawMessage(`{"error":{"message":"x","type":"rate_limit_exceeded"}}`)})
		at := b.RetryAt
		if at.IsZero() {
			at = b.WaitUntil
		}
		lo, hi := 60.0, 72.0 // backoff
		if text, _, _ := strings.Cut(row["wait_s"], " "); text != "backoff" {
			lo, _ = strconv.ParseFloat(text, 64)
			lo = max(lo, 0.5)
			hi = lo*1.1 + 0.01
		}
		if d := at.Sub(noon).Seconds(); d < lo || d > hi {
			t.Errorf("%s: %s: %vs, want %v to %v (%s)", row["header"], row["value"], d, lo, hi, row["wait_s"])
		}
	}
}

// d-libs/14: an attempt ends at once when it is cancelled, and tells the last real error
// when it is not.
func TestCancelEndsARequest(t *testing.T) {
	s := exchange.Serve(t, "", exchange.Response{Status: 200, Headers: map[string]string{"content-type": "text/event-stream"}, RawBody: ": ping\n\n", End: "stall"})
	task, host := nodetest.New(t, "agent", settings("anthropic-messages", s.URL))
	ctx, cancel := context.WithCancelCause(context.Background())
	task.Beat = func() { cancel(errors.New("stopped by the user")) }
	_, err := agent.WithClock(time.Now).Run(ctx, task)
	// The stream that stands still ends as stalled: this is the cancel's own word.
	if nodetest.Category(err) != "killed" || !strings.Contains(err.Error(), "stopped by the user") {
		t.Errorf("%s: %v", nodetest.Category(err), err)
	}
	if host.Types() != "LLM_CALL_STARTED LLM_CALL_FAILED" {
		t.Errorf("facts %s", host.Types())
	}
}
