package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

// recorded is a node whose program prints what claude printed when dagrun drove it.
func recorded(t *testing.T, name string, change m) (*nodes.Task, *nodetest.Host) {
	t.Helper()
	file, err := filepath.Abs("testdata/recordings/claude-2.1.332-through-dagrun/" + name + ".stdout")
	if err != nil {
		t.Fatal(err)
	}
	with := m{
		"provider": "claude", "argv": []string{"/bin/sh", "-c", `cat > /dev/null; eval "$BEFORE"; cat "$FILE"; exit "${STATUS:-1}"`, "claude"},
		"prompt": m{"text": "x"}, "env": m{"FILE": file}, "maxTurns": 3, "maxUSD": 0.03,
	}
	for name, value := range change {
		with[name] = value
	}
	with["env"].(m)["FILE"] = file
	return nodetest.New(t, "agent", with)
}

// M1, A-5: a limit of money or turns that is reached after the work does not undo it: the text, or the
// report, is judged as any other. Messages name the fields of the specification.
func TestLimitReachedAfterTheWork(t *testing.T) {
	const money, turns = "over-budget-after-a-whole-page", "turn-limit-after-report-written"
	report := m{"BEFORE": "echo 'the report' > report.md"}
	long := []m{{"validate": m{"checks": []m{{"minChars": 1000000}}}}}
	for _, tt := range []struct {
		name, recording string
		change          m
		category, words string
		kept            string
	}{
		{"a page, accepted", money, m{"accept": acceptPage}, "", "maxUSD: 0.03", "Here it is."},
		{"a page, nothing asked of it: the model had ended its turn", money, m{}, "", "raise maxUSD", "Here it is."},
		{"a page that is not accepted", money, m{"accept": long}, "budget", "maxUSD: 0.03", "Here it is."},
		{"a report of this attempt", turns, m{"report": "report.md", "env": report}, "", "maxTurns: 3", "the report"},
		{"a report that is not accepted", turns, m{"report": "report.md", "env": report, "accept": long}, "budget", "maxTurns: 3", "the report"},
		{"no report, no text", turns, m{"report": "report.md"}, "budget", "raise maxTurns", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.change["env"] == nil {
				tt.change["env"] = m{}
			} else {
				tt.change["env"] = m{"BEFORE": report["BEFORE"]}
			}
			task, host := recorded(t, tt.recording, tt.change)
			res, err := Kind.Run(context.Background(), task)
			if got := nodetest.Category(err); got != tt.category {
				t.Fatalf("%q (%v), want %q", got, err, tt.category)
			}
			var e *nodes.Error
			if errors.As(err, &e) && (!e.Permanent || strings.Contains(e.Message, "error_max")) {
				t.Errorf("%+v", e)
			}
			if said := fmt.Sprint(err, res.Warnings); !strings.Contains(said, tt.words) {
				t.Errorf("%s does not say %q", said, tt.words)
			}
			if !strings.HasPrefix(host.Kept["raw-output.txt"], tt.kept) {
				t.Errorf("kept %.60q", host.Kept["raw-output.txt"])
			}
			if res.CostUSD == nil || *res.CostUSD < 0.25 {
				t.Errorf("cost %v", res.CostUSD) // the overrun is the ledger's affair
			}
		})
	}
}

// Q6: what counts is the model in the messages, not the one that the sums go by.
func TestAnotherModelAnswered(t *testing.T) {
	for set, category := range map[string]string{"warn": "", "fail": "transient"} {
		task, _ := recorded(t, "answered-by-another-model", m{"model": "claude-sonnet-4-6", "onModelSwitch": set, "env": m{"STATUS": "0"}})
		res, err := Kind.Run(context.Background(), task)
		if got := nodetest.Category(err); got != category || res.Model != "claude-haiku-4-5" {
			t.Errorf("%s: %q (%v), model %q", set, got, err, res.Model)
		}
		if said := fmt.Sprint(err, res.Warnings); !strings.Contains(said, "claude-sonnet-4-6 was asked for, claude-haiku-4-5 answered") {
			t.Errorf("%s: %s", set, said)
		}
	}
}

// head is a stream that broke off: its head told what the call read.
const head = `{"type":"system","subtype":"init","model":"a"}
{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1","model":"a","usage":{"input_tokens":900,"cache_read_input_tokens":50,"cache_creation_input_tokens":40,"cache_creation":{"ephemeral_1h_input_tokens":30},"output_tokens":1}}}}
{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"twelve chars"}}}
`

var headUsage = nodes.Usage{Input: 900, CacheRead: 50, CacheWrite: 40, CacheWriteHour: 30, Output: 3}

// M5, M6: an answer that broke off costs what its stream shows, however the program ended; only a program of
// which nothing is known keeps its reservation. M2: what the service refused is free.
func TestCostOfWhatBrokeOff(t *testing.T) {
	cut := `{"type":"result","subtype":"success","is_error":true,"api_error":"connection_failed","result":"API Error: Connection lost mid-response","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0}}`
	counted := `{"type":"assistant","message":{"id":"m","model":"model-a","content":[{"type":"text","text":"` + strings.Repeat("internationalization ", 20) + `"}],"usage":{"input_tokens":10,"output_tokens":1}}}` + "\n" +
		`{"type":"result","subtype":"success","is_error":true,"result":"x","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":60}}`
	quarter := 0.25
	half := strings.Replace(cut, `"total_cost_usd":0`, `"total_cost_usd":0.5`, 1)
	reset := `{"type":"result","subtype":"success","is_error":true,"api_error":"connection_failed","result":"API Error: Connection dropped (ECONNRESET)","total_cost_usd":0}`
	refused := `{"type":"result","subtype":"success","is_error":true,"api_error":"connection_failed","result":"API Error: Connection refused (ECONNREFUSED)","total_cost_usd":0}`
	free := new(float64)
	for _, tt := range []struct {
		name, out, end, category string
		usage                    nodes.Usage
		cost                     *float64
	}{
		{"less was counted than the stream shows, but its money", head + half, "exit 1", "transient", headUsage, nil},
		{"all was counted, in words of more than four characters a token", counted, "exit 1", "transient", nodes.Usage{Input: 10, Output: 60}, &quarter},
		{"the connection was cut", head + cut, "exit 1", "transient", headUsage, nil},
		{"killed", head, "kill -9 $$; sleep 9", "killed", headUsage, nil},
		{"ended without a result", head, "exit 0", "protocol", headUsage, nil},
		{"reset before a head: it may have run", reset, "exit 1", "transient", nodes.Usage{}, nil},
		{"the service was not reached", refused, "exit 1", "transient", nodes.Usage{}, free},
		{"nothing is known", "", "exit 1", "exit_nonzero", nodes.Usage{}, nil},
	} {
		with := printing("claude-stream", tt.out)
		with["argv"] = []string{"/bin/sh", "-c", `cat > /dev/null; printf %s "$OUT"; ` + tt.end}
		task, _ := nodetest.New(t, "agent", with)
		res, err := Kind.Run(context.Background(), task)
		if got := nodetest.Category(err); got != tt.category || res.Usage != tt.usage || (res.CostUSD == nil) != (tt.cost == nil) {
			t.Errorf("%s: %q (%v), usage %+v, cost %v; want %q %+v %v", tt.name, got, err, res.Usage, res.CostUSD, tt.category, tt.usage, tt.cost)
		}
		if (res.LeastUSD == 0.5) != strings.Contains(tt.out, "0.5") {
			t.Errorf("%s: at least $%v", tt.name, res.LeastUSD)
		}
	}
}

// M2: what a specification declares to be a refusal of the service is free, of a program that dagrun does not know too.
func TestDeclaredRefusalIsFree(t *testing.T) {
	for category, free := range map[string]bool{"rate_limited": true, "auth": true, "quota_wait": true, "transient": false} {
		for _, end := range []string{"exit 0", "exit 1", "echo 'slow down' >&2; exit 1"} {
			with := printing("text", "slow down")
			with["command"] = m{"parse": "text", "errors": []m{{"match": "slow down", "category": category}}}
			with["argv"] = []string{"/bin/sh", "-c", `cat > /dev/null; printf %s "$OUT"; ` + end}
			task, _ := nodetest.New(t, "agent", with)
			res, err := Kind.Run(context.Background(), task)
			if got := nodetest.Category(err); got != category || (res.CostUSD != nil) != free {
				t.Errorf("%s, %s: %q (%v), cost %v", category, end, got, err, res.CostUSD)
			}
		}
	}
}

// M6: the host died while a program was at work. What its stream's head told is known; that it ended is not.
func TestRescueOfWhatWasUnderWay(t *testing.T) {
	for out, want := range map[string]nodes.Usage{head: headUsage, `{"type":"system","subtype":"init"}` + "\n": {}} {
		task, host := nodetest.New(t, "agent", printing("claude-stream", ""))
		task.Spool = t.TempDir()
		for name, text := range map[string]string{"stdout": out, "stderr": ""} {
			if err := os.WriteFile(filepath.Join(task.Spool, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		res, err := rescued(task)
		if want == (nodes.Usage{}) {
			if res != nil || err != nil {
				t.Errorf("%+v %v of a stream without a head", res, err)
			}
			continue
		}
		if nodetest.Category(err) != "lost" || res.Usage != want || res.CostUSD != nil || host.Types() != "" {
			t.Errorf("%v %+v, facts %q", err, res, host.Types())
		}
	}
}

// X6: a limit of silence is for programs that tell of their work as it goes. One that prints its answer at
// the end is not taken for dead, neither here nor by the host.
func TestSilence(t *testing.T) {
	page, _ := json.Marshal(page)
	result := fmt.Sprintf(`{"type":"result","is_error":false,"num_turns":1,"result":%s}`, page)
	for parse, category := range map[string]string{"text": "", "claude-json": "", "gemini-json": "", "claude-stream": "stalled"} {
		t.Run(parse, func(t *testing.T) {
			t.Parallel()
			out := map[string]string{"text": "an answer", "gemini-json": fmt.Sprintf(`{"response":%s}`, page)}[parse]
			with := printing(parse, cmp.Or(out, result))
			delete(with, "accept")
			pause := "1"
			if category != "" {
				pause = "300" // so that it is dead however late it is looked at
			}
			with["argv"] = []string{"/bin/sh", "-c", `cat > /dev/null; sleep ` + pause + `; printf %s "$OUT"`}
			task, _ := nodetest.New(t, "agent", with)
			var beats atomic.Int32
			task.Silence, task.Beat = 200*time.Millisecond, func() { beats.Add(1) }
			_, err := Kind.Run(context.Background(), task)
			traits, bad := Kind.Describe(task.With)
			if noted := strings.Contains(fmt.Sprint(traits.Notes), "timeout.silence does not count"); bad != nil || noted != (category == "") {
				t.Errorf("the plan notes it: %v (%v)", noted, bad)
			}
			if got := nodetest.Category(err); got != category || category == "" && beats.Load() == 0 {
				t.Errorf("%q (%v), want %q; %d signs of life", got, err, category, beats.Load())
			}
		})
	}
}
