package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

// A recording is what a real agent printed and how it ended; see testdata/recordings/README.md.
type recording struct {
	Argv     []string `json:"argv"`
	ExitCode int      `json:"exit_code"`
}

// replay runs a program that prints a recording and ends as it did.
func replay(t *testing.T, name string) (*nodes.Result, *nodetest.Host, error) {
	t.Helper()
	base, err := filepath.Abs(filepath.Join("testdata/recordings", name))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(base + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var rec recording
	if err := json.Unmarshal(b, &rec); err != nil {
		t.Fatal(err)
	}
	parse := map[string]string{"claude": "claude-stream", "codex-": "codex-jsonl", "gemini": "gemini-json"}[name[:6]]
	if strings.HasSuffix(name, "-text") {
		parse = "text"
	}
	end := fmt.Sprintf("exit %d", rec.ExitCode)
	if rec.ExitCode < 0 {
		end = fmt.Sprintf("kill -%d $$; sleep 9", -rec.ExitCode)
	}
	script := `cat > /dev/null; cat "$REC.stdout"; [ -f "$REC.stderr" ] && cat "$REC.stderr" >&2; ` + end
	task, host := nodetest.New(t, "agent", m{
		"provider": "command", "argv": []string{"/bin/sh", "-c", script}, "prompt": m{"text": "x"},
		"command": m{"parse": parse}, "env": m{"REC": base},
	})
	res, err := Kind.Run(context.Background(), task)
	return res, host, err
}

// Every recording has a stated class in recordings.tsv: name, outcome (ok, ok_warn, fail), class,
// whether another attempt is useless, and what the answer or the message begins with.
func TestRecordings(t *testing.T) {
	b, err := os.ReadFile("testdata/recordings.tsv")
	if err != nil {
		t.Fatal(err)
	}
	stated := map[string]bool{}
	for i, row := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		f := strings.Split(row, "\t")
		if len(f) != 5 {
			t.Fatalf("row %d has %d columns", i+1, len(f))
		}
		stated[f[0]] = true
		t.Run(f[0], func(t *testing.T) {
			t.Parallel()
			res, host, err := replay(t, f[0])
			var e *nodes.Error
			outcome, class, final, text := "ok", "", "", host.Kept["raw-output.txt"]
			switch {
			case errors.As(err, &e):
				outcome, class, final, text = "fail", e.Category, fmt.Sprint(e.Permanent), e.Message
			case err != nil:
				t.Fatal(err)
			case len(res.Warnings) > 0:
				outcome = "ok_warn"
			}
			if outcome != f[1] || class != f[2] || final != f[3] || !strings.HasPrefix(text, f[4]) {
				t.Errorf("%s %s %s %.100q, want %s; warnings %q", outcome, class, final, text, row, res.Warnings)
			}
		})
	}
	files, err := filepath.Glob("testdata/recordings/*/*.json")
	if err != nil || len(files) < 110 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, file := range files {
		name, _ := strings.CutPrefix(strings.TrimSuffix(file, ".json"), "testdata/recordings/")
		if !stated[name] {
			t.Errorf("%s has no stated class", name)
		}
	}
}

// C-11, R-2: four disjoint counts and the cost as the agents report them.
func TestRecordedUsage(t *testing.T) {
	tests := []struct {
		name  string
		usage nodes.Usage
		cost  float64 // -1 = unknown
	}{
		{"claude-2.1.332/ok-streamjson", nodes.Usage{Input: 12, Output: 7}, 0.000141},
		{"claude-2.1.332/streamjson-maxtok-then-resumed", nodes.Usage{Input: 24, Output: 32007}, 0.480177},
		{"claude-2.1.332/cache", nodes.Usage{Input: 3, CacheRead: 2000, CacheWrite: 1000, Output: 50}, 0.005109},
		{"claude-2.1.332/retry0-429", nodes.Usage{}, 0},
		{"codex-0.171.0/ok", nodes.Usage{Input: 10, Output: 5}, -1},
		{"gemini-0.61.0/ok", nodes.Usage{Input: 10, Output: 5}, -1},
		{"gemini-0.61.0/streamjson", nodes.Usage{Input: 10, Output: 5}, -1},
	}
	for _, tt := range tests {
		res, _, _ := replay(t, tt.name)
		cost := -1.0
		if res.CostUSD != nil {
			cost = *res.CostUSD
		}
		if res.Usage != tt.usage || math.Abs(cost-tt.cost) > 1e-9 {
			t.Errorf("%s: usage %+v cost %v, want %+v %v", tt.name, res.Usage, cost, tt.usage, tt.cost)
		}
	}
}
