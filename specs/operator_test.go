package specs_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// What differs between two runs of one seed: instants, times, digests and the run's id.
var (
	instants = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)`)
	times    = regexp.MustCompile(`(^|[ "(])(<?\d+(\.\d+)?s|\d+m\d\ds)`)
	lasted   = regexp.MustCompile(`"durationMs":\d+`)
	names    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{64}`)
)

// told is a text as it is for every run of one seed.
func (s *site) told(text string) string {
	text = strings.ReplaceAll(text, s.out, "RUN")
	text = instants.ReplaceAllString(text, "INSTANT")
	text = times.ReplaceAllString(text, "${1}TIME")
	text = strings.ReplaceAll(text, "INSTANT (TIME ago)", "INSTANT") // is said once a minute has passed
	text = lasted.ReplaceAllString(text, `"durationMs":MS`)
	return names.ReplaceAllString(text, "ID")
}

// about are the lines of a log that tell of some nodes.
func (s *site) about(log string, nodes ...string) (out []string) {
	for line := range strings.Lines(s.read("_orchestrator/logs/" + log)) {
		for _, n := range nodes {
			if strings.Contains(line, n) {
				out = append(out, line)
				break
			}
		}
	}
	return out
}

// K-2, T-1, T-4: what somebody sees of the corpus part, beside 000 §2 and §9.1 and 004 step 16: the status, the
// checkpoints, and what each log says of one builder and of the verifier behind it.
func TestWhatTheOperatorSees(t *testing.T) {
	s := corpusRun(t)
	var all strings.Builder
	for _, view := range []string{"status", "checkpoints"} {
		fmt.Fprintf(&all, "== dagrun %s\n%s\n", view, s.must(view))
	}
	from, to := -1, -1
	log := strings.SplitAfter(s.read("_orchestrator/logs/orchestrator.log"), "\n")
	for i, line := range log {
		switch {
		case strings.Contains(line, "S3/p4 starts"):
			from = i
		case strings.Contains(line, "S3/p6 starts"):
			to = i
		}
	}
	if from < 0 || to < from {
		t.Fatal("orchestrator.log does not tell of S3/p4")
	}
	fmt.Fprintf(&all, "== orchestrator.log\n%s\n", strings.Join(log[from:to], ""))
	for _, log := range []string{"decisions.jsonl", "errors.jsonl", "cost.jsonl", "quality.jsonl", "passes.jsonl"} {
		fmt.Fprintf(&all, "== %s\n%s\n", log, strings.Join(s.about(log, `"S3/p4"`, `"S3/p5"`), ""))
	}
	golden(t, "operator.txt", []byte(s.told(all.String())))
}

// scores holds a run with hardening to 000 §2.6, §7.2 and §8.3.4: each cycle's score, as it came, in the logs and in the
// status. K-2, T-1
func scores(t *testing.T, s *site, want ...string) {
	t.Helper()
	lines := s.about("quality.jsonl", `"type":"pa-score"`)
	if len(lines) != len(want) {
		t.Fatalf("%d scores, want %d: %s", len(lines), len(want), lines)
	}
	for i, line := range lines {
		var f struct {
			Cycle, AuditorCount int
			Score               json.Number
			Threshold           float64
			MetThreshold        *bool
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		met := i == len(want)-1
		if f.Cycle != i+1 || f.Score.String() != want[i] || f.Threshold != 3.5 || f.AuditorCount != 9 || f.MetThreshold == nil || *f.MetThreshold != met {
			t.Errorf("the score of cycle %d: %s", i+1, line)
		}
		text := fmt.Sprintf("(Cycle %d: Route) COMPLETE | pa-score: score %s, threshold 3.5", i+1, want[i])
		if len(s.about("orchestrator.log", text)) != 1 {
			t.Errorf("orchestrator.log does not say %q", text)
		}
	}
	status := s.must("status")
	for _, text := range []string{"56/56 corpus passes (100%), 3/6 PA cycles (50%)", "pa-score: score " + strings.Join(want, " -> ") + ", threshold 3.5"} {
		if !strings.Contains(status, text) {
			t.Errorf("status does not say %q:\n%s", text, status)
		}
	}
}
