package specs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// An asking is what one pass sent of the program's own words, in the blocks in which it was sent.
type asking struct {
	blocks []string
	marks  []bool // the service is to keep what ends there
	at     time.Duration
}

// taken are the seconds that the passes of a subset take: builders 160 s, verifiers 45 s.
var taken = []time.Duration{160, 45, 160, 160, 45, 160, 160, 45}

// kept is how long a service remembers what it has read.
const kept = 300 * time.Second

// over the first eight passes of a subset at least 40 % of the characters that the program wrote repeat as a prefix
// of an earlier request of the last five minutes, counted by characters and by whole blocks. -v prints the numbers.
func TestPromptsRepeat(t *testing.T) {
	t.Parallel()
	base := corpusRun(t)
	var answers []string
	for pass := range taken {
		answers = append(answers, base.read(fmt.Sprintf("_orchestrator/passes/pass-%03d/raw-output.txt", pass+1)))
	}
	before := asksAnthropic(t, answers, "testdata/order-before")
	after := asksAnthropic(t, answers, "")
	claude := asksClaude(t, answers)
	for _, tt := range []struct {
		name string
		list []asking
		most float64 // share of characters; 0 = at least 40 %, either way
	}{{"anthropic, order before", before, 0.1}, {"anthropic", after, 0}, {"claude", claude, 0}} {
		chars, blocks, cost := repeated(tt.list)
		t.Logf("%-24s by characters %4.1f %%, by whole blocks %4.1f %%, $%.4f at $3 a million tokens", tt.name, 100*chars, 100*blocks, cost)
		if tt.most > 0 && chars > tt.most || tt.most == 0 && min(chars, blocks) < 0.4 {
			t.Errorf("%s: %.3f of the characters repeat, %.3f by whole blocks", tt.name, chars, blocks)
		}
	}
	_, _, was := repeated(before)
	if _, _, is := repeated(after); is > was*0.7 {
		t.Errorf("the prompts cost $%.4f, in the order before $%.4f", is, was)
	}
	for i := range after {
		text := strings.Join(after[i].blocks, "")
		if text != strings.Replace(strings.Join(claude[i].blocks, ""), system+"\n\n", system, 1) {
			t.Errorf("pass %d: claude is asked something else than the API", i+1)
		}
	}
}

// system is how the corpus agents' system text ends.
const system = "answer in the form it asks for, and add nothing."

// repeated returns the shares of characters that repeat, and what the prompts cost: read from the cache a tenth, written to it
// five quarters. Less than 1,024 tokens are not kept.
func repeated(list []asking) (chars, blocks, cost float64) {
	cache := map[string]time.Duration{}
	var total, byChars, byBlocks int
	for i, a := range list {
		text := strings.Join(a.blocks, "")
		mostChars, mostBlocks := 0, 0
		for _, b := range list[:i] {
			if a.at-b.at <= kept {
				mostChars = max(mostChars, common(text, strings.Join(b.blocks, "")))
				mostBlocks = max(mostBlocks, commonBlocks(a.blocks, b.blocks))
			}
		}
		byChars, byBlocks, total = byChars+mostChars, byBlocks+mostBlocks, total+utf8.RuneCountInString(text)
		cost += price(a, cache) / 4 * 3 / 1e6
	}
	return float64(byChars) / float64(total), float64(byBlocks) / float64(total), cost
}

// price is what a request costs, in characters of fresh input.
func price(a asking, cache map[string]time.Duration) float64 {
	read, written, prefix := 0, 0, ""
	for i, b := range a.blocks {
		prefix += b
		n := utf8.RuneCountInString(prefix)
		if at, ok := cache[prefix]; ok && a.at-at <= kept {
			cache[prefix], read = a.at, n
		}
		if a.marks[i] && n >= 4*1024 {
			cache[prefix], written = a.at, n
		}
	}
	written = max(written, read)
	return 0.1*float64(read) + 1.25*float64(written-read) + float64(utf8.RuneCountInString(prefix)-written)
}

func common(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return utf8.RuneCountInString(a[:n])
}

func commonBlocks(a, b []string) (n int) {
	for i := 0; i < min(len(a), len(b)) && a[i] == b[i]; i++ {
		n += utf8.RuneCountInString(a[i])
	}
	return n
}

// timed sets when each request is sent.
func timed(t *testing.T, list []asking) []asking {
	t.Helper()
	if len(list) < len(taken) {
		t.Fatalf("%d requests", len(list))
	}
	at := time.Duration(0)
	for i, takes := range taken {
		list[i].at = at
		at += takes * time.Second
	}
	return list[:len(taken)]
}

// asksAnthropic runs the first passes with the HTTP provider and returns what a server was sent; templates is a folder that
// takes the place of some.
func asksAnthropic(t *testing.T, answers []string, templates string) []asking {
	t.Helper()
	var mu sync.Mutex
	var list []asking
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		list = append(list, sent(t, raw))
		if len(list) > len(answers) { // a login that is refused pauses the run
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		quoted, _ := json.Marshal(answers[len(list)-1])
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"type\":\"message_start\",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":1}}}\n\n"+
			"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%s}}\n\n"+
			"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\ndata: {\"type\":\"message_stop\"}\n\n", quoted)
	}))
	defer server.Close()
	spec := editYAML(t, beside(`baseURL: "`+server.URL+`"`))
	if templates != "" {
		for _, name := range []string{"builder.md", "verifier.md"} {
			b, err := os.ReadFile(filepath.Join(templates, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(filepath.Dir(spec), "templates", name), b, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	s := newSite(t)
	out, err := s.dagrun([]string{"ANTHROPIC_API_KEY=sk-ant-of-a-test"}, "apply", spec, "--set", "agent.provider=anthropic", "--set", "agent.model=m", "--quiet")
	if err == nil {
		t.Fatalf("the run does not pause:\n%s", tail(out))
	}
	return timed(t, list)
}

// beside puts a setting beside the provider of all agents.
func beside(setting string) func(string) string {
	return func(spec string) string {
		for _, line := range []string{"          provider: &provider", "          provider: *provider"} {
			spec = strings.ReplaceAll(spec, line, "          "+setting+"\n"+line)
		}
		return spec
	}
}

// sent reads the blocks and marks of a request of the Messages API.
func sent(t *testing.T, raw []byte) (a asking) {
	type blocks []struct {
		Text string
		Mark json.RawMessage `json:"cache_control"`
	}
	var body struct {
		System   json.RawMessage
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.Unmarshal(raw, &body); err != nil || len(body.Messages) != 1 {
		t.Errorf("a request with %d messages: %v", len(body.Messages), err)
		return a
	}
	for _, part := range []json.RawMessage{body.System, body.Messages[0].Content} {
		var text string
		var list blocks
		if json.Unmarshal(part, &text) == nil {
			a.blocks, a.marks = append(a.blocks, text), append(a.marks, false)
		} else if err := json.Unmarshal(part, &list); err != nil {
			t.Error(err)
		}
		for _, b := range list {
			a.blocks, a.marks = append(a.blocks, b.Text), append(a.marks, len(b.Mark) > 0)
		}
	}
	return a
}

// asksClaude runs the first passes with a program in the place of the claude command line agent, and returns what it
// was given: the system text, and the prompt on its standard input.
func asksClaude(t *testing.T, answers []string) []asking {
	t.Helper()
	dir := t.TempDir()
	for i, text := range answers {
		quoted, _ := json.Marshal(text)
		result := fmt.Sprintf(`{"type":"result","subtype":"success","is_error":false,"result":%s,"num_turns":1,"stop_reason":"end_turn","total_cost_usd":0.01}`+"\n", quoted)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.answer", i+1)), []byte(result), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(dir, "claude.sh")
	if err := os.WriteFile(script, []byte(`cd "$(dirname "$0")" || exit 1
n=$(($(cat count 2>/dev/null || echo 0) + 1))
echo $n > count
cat > $n.stdin
while [ $# -gt 1 ]; do
  [ "$1" = --system-prompt ] && printf %s "$2" > $n.system
  [ "$1" = --system-prompt-file ] && cat "$2" > $n.system
  shift
done
[ -f $n.answer ] || { echo "Invalid API key · Please run /login" >&2; exit 1; }
cat $n.answer
`), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := editYAML(t, beside(`argv: [sh, "`+script+`"]`))
	s := newSite(t)
	if out, err := s.dagrun(nil, "apply", spec, "--set", "agent.provider=claude", "--quiet"); err == nil {
		t.Fatalf("the run does not pause:\n%s", tail(out))
	}
	var list []asking
	for i := range taken {
		stdin, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.stdin", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%d.system", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		_, prompt, _ := strings.Cut(string(stdin), "\n\n") // behind the line that every prompt begins with
		list = append(list, asking{blocks: []string{string(text), prompt}, marks: []bool{true, false}})
	}
	return timed(t, list)
}
