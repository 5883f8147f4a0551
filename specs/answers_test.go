package specs_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/exchange"
	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/agent"
)

// An answered is what came of a shipped node whose agent gave an answer.
type answered struct {
	*nodes.Result
	host   *nodetest.Host
	task   *nodes.Task
	failed string // category
	reason string
	prompt string
	blocks []string // of the message, as the service is given them
}

// ask has a node of the shipped plan ask once, as it would in a run, and gives it an answer over HTTP. What it reads is what
// the host has; where it has no file of a name, the pipeline's own.
func ask(t *testing.T, id string, sc past, host *nodetest.Host, answer string) answered {
	t.Helper()
	t.Setenv("ANTHROPIC_API_KEY", "sk-of-a-test")
	settings := resolved(t, id, sc)
	delete(settings, "sim")
	settings["provider"], settings["model"] = "anthropic", "claude-sonnet-4-6"
	quoted, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	service := exchange.Serve(t, "", exchange.Response{Status: 200, Headers: map[string]string{"content-type": "text/event-stream"},
		RawBody: fmt.Sprintf(overHTTP["anthropic"].events, quoted)})
	settings["baseURL"] = service.URL
	n := node(t, basePlan(t).Plan, id)
	task := host.Task(t, "agent", settings)
	task.Node, task.Reads, task.Writes, task.Outputs, task.Labels, task.Timeout = id, n.Reads, n.Writes, n.Outputs, n.Labels, time.Minute
	task.File = func(name string) (io.ReadCloser, error) {
		if _, ok := host.Files[name]; ok {
			return host.OpenFile(name)
		}
		return os.Open(filepath.Join(corpus, name))
	}
	res, err := agent.Kind.Run(t.Context(), task)
	a := answered{Result: res, host: host, task: task, failed: nodetest.Category(err), prompt: host.Kept["prompt.md"]}
	if err != nil {
		a.reason = err.Error()
	}
	var sent struct {
		Messages []struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(service.Requests()[0].Body), &sent); err != nil {
		t.Fatal(err)
	}
	for _, part := range sent.Messages[0].Content {
		a.blocks = append(a.blocks, part.Text)
	}
	if res == nil {
		a.Result = &nodes.Result{}
	}
	return a
}

func newHost() *nodetest.Host {
	return &nodetest.Host{Artifacts: map[string]string{"artifact.html": sized(900, "940px")}, Files: map[string]string{}, Secrets: map[string]string{}, Accumulators: map[string][]nodes.Entry{}}
}

// writes are the names of the artifacts that an answer has made.
func (a answered) writes() string {
	var names []string
	for name := range a.Result.Writes {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// entries are the texts and headings of what was added to accumulators.
func (a answered) entries() string {
	var lines []string
	for _, e := range a.Entries {
		lines = append(lines, e.Accumulator+": "+strings.ReplaceAll(strings.TrimSpace(e.String()), "\n", " "))
	}
	return strings.Join(lines, "\n")
}

// noted are the fields of a record for the log of quality.
func (a answered) noted(typ string) string {
	for _, n := range a.Notes {
		if n.Log == "quality" && n.Type == typ {
			fields, _ := json.Marshal(n.Fields)
			return string(fields)
		}
	}
	return ""
}

// sized is a page of so many characters with a container of this width.
func sized(chars int, width string) string {
	page := `<!DOCTYPE html><html><head><style>.page{max-width:` + width + `}</style></head><body class="page">FILL</body></html>`
	return strings.Replace(page, "FILL", strings.Repeat("x", chars-len(page)+len("FILL")), 1)
}

// C-8, C-10, K-5: what builders, refinements and rebuilds of the shipped specification hand on, on either side of each bound.
func TestPagesThatAreTaken(t *testing.T) {
	const learned = "\n<!-- CONVICTION_ADDITION_START -->Facts first.<!-- CONVICTION_ADDITION_END -->\n<!-- DISCOVERY_LOG_START -->A gap.<!-- DISCOVERY_LOG_END -->\n"
	fenced := func(page string) string { return "```html\n" + page + "\n```\n" }
	const left = "\n## Remaining improvements\n\n- [HIGH] More air.\n"
	whole := sized(2000, "950px")
	for _, id := range []string{"S3/p4", h(2, "refine-1"), h(2, "rebuild")} {
		for _, tt := range []struct{ name, answer, why, warned string }{
			{"whole", fenced(whole), "", ""},
			{"in a fence of no language", "Here it is.\n\n" + whole, "", ""},
			{"narrowest", fenced(sized(2000, "940px")), "", ""},
			{"widest", fenced(sized(2000, "960px")), "", ""},
			{"too narrow", fenced(sized(2000, "939px")), "container-width: ", ""},
			{"too wide", fenced(sized(2000, "961px")), "container-width: ", ""},
			{"no width", fenced(strings.Replace(whole, "max-width", "min-width", 1)), "container-width: ", ""},
			{"another container", fenced(strings.Replace(whole, ".page", ".pages", 1)), "container-width: ", ""},
			{"shortish", fenced(sized(1999, "950px")), "", "short: the page is short"},
			{"shortest", fenced(sized(501, "950px")), "", "short: the page is short"},
			{"too short", fenced(sized(500, "950px")), "minimum-length: ", ""},
			{"not closed", fenced(strings.Replace(whole, "</body>", "", 1)), "html-complete: ", ""},
			{"no doctype", fenced(strings.Replace(sized(2015, "950px"), "<!DOCTYPE html>", "", 1)), "", "DOCTYPE"},
			{"no page", "I could not.", "no HTML document", ""},
		} {
			a := ask(t, id, past{}, newHost(), tt.answer+learned+left)
			if ok := a.failed == ""; ok != (tt.why == "") || !strings.Contains(a.reason, tt.why) {
				t.Errorf("%s, %s: failed as %q: %s; want %q", id, tt.name, a.failed, a.reason, tt.why)
			}
			if ok := a.writes() == "artifact.html"; ok != (tt.why == "") {
				t.Errorf("%s, %s: it writes %q", id, tt.name, a.writes())
			}
			if warned := strings.Join(a.Warnings, "\n"); tt.why == "" && (!strings.Contains(warned, tt.warned) || tt.warned == "" && warned != "") {
				t.Errorf("%s, %s: warnings %q, want %q", id, tt.name, warned, tt.warned)
			}
			want := ""
			if id == "S3/p4" { // what it learned counts, whatever became of its page
				want = "conviction-layer: ### Pass 20 — rotation: B · step: 4/8 · subset: S3  Facts first.\ndiscovery-log: ### Pass 20 — rotation: B · step: 4/8 · subset: S3  A gap."
			}
			if got := a.entries(); got != want {
				t.Errorf("%s, %s: it adds\n%s\nwant\n%s", id, tt.name, got, want)
			}
		}
	}
	if got := ask(t, h(2, "refine-1"), past{}, newHost(), fenced(whole)+left).Values["remaining"]; got != "- [HIGH] More air." {
		t.Errorf("a refinement leaves %q", got)
	}
	if got := ask(t, h(2, "refine-1"), past{}, newHost(), fenced(whole)); got.failed != "" || got.Values["remaining"] != nil && got.Values["remaining"] != "" {
		t.Errorf("a refinement that leaves nothing: %s, %q", got.reason, got.Values["remaining"])
	}
}

func object(fields string) string { return "\n```json\n{" + fields + "}\n```\n" }

// C-5, C-13, P-7, P-9, K-5: what those who look and judge must answer by the shipped specification: their sections, each
// number within its bounds, and what becomes of it.
func TestJudgementsThatAreTaken(t *testing.T) {
	sections := func(titles ...string) string {
		text := "I looked.\n"
		for _, title := range titles {
			text += "\n## " + title + "\n\n- one\n"
		}
		return text
	}
	type tested struct {
		name, id, answer string
		why              string // it is asked again, or fails, for this
		record           string // for the log of quality
		entry            string
	}
	depth := `"deeplyIntegrated":3,"surfaceLevel":0,"absent":1`
	tests := []tested{
		{"verifier", "S3/p5", sections("Deeply integrated", "Surface level", "Absent") + object(depth), "", `{"absent":1,"deeplyIntegrated":3,"surfaceLevel":0}`, "observations-S3: ### Pass 21 — rotation: B  I looked."},
		{"cross-check", "S4/cross-check", sections("Still visible", "Faded") + object(`"stillVisible":4,"faded":0`), "", `{"faded":0,"stillVisible":4}`, ""},
		{"retrospective", "S3/retrospective", sections("Summary"), "", "", "subset-summaries: ### Subset S3 — about: Durability  - one"},
		{"retrospective without a summary", "S3/retrospective", sections("Summaries"), "sections are missing: Summary", "", ""},
	}
	for _, left := range []string{"Deeply integrated", "Surface level", "Absent"} {
		titles := slices.DeleteFunc([]string{"Deeply integrated", "Surface level", "Absent"}, func(s string) bool { return s == left })
		tests = append(tests, tested{"without " + left, "S3/p5", sections(titles...) + object(depth), "observations: ", "", ""})
	}
	for _, left := range []string{"Still visible", "Faded"} {
		titles := slices.DeleteFunc([]string{"Still visible", "Faded"}, func(s string) bool { return s == left })
		tests = append(tests, tested{"without " + left, "S4/cross-check", sections(titles...) + object(`"stillVisible":4,"faded":0`), "observations: ", "", ""})
	}
	for _, field := range []string{"deeplyIntegrated", "surfaceLevel", "absent"} {
		below := regexp.MustCompile(`"`+field+`":\d`).ReplaceAllString(depth, `"`+field+`":-1`)
		tests = append(tests, tested{"below nothing: " + field, "S3/p5", sections("Deeply integrated", "Surface level", "Absent") + object(below), field, "", ""})
		at := regexp.MustCompile(`"`+field+`":\d`).ReplaceAllString(depth, `"`+field+`":0`)
		tests = append(tests, tested{"nothing: " + field, "S3/p5", sections("Deeply integrated", "Surface level", "Absent") + object(at), "", `"` + field + `":0`, "observations-S3"})
	}
	for field, rest := range map[string]string{"stillVisible": `"faded":0`, "faded": `"stillVisible":0`} {
		tests = append(tests, tested{"below nothing: " + field, "S4/cross-check", sections("Still visible", "Faded") + object(`"`+field+`":-1,`+rest), field, "", ""},
			tested{"nothing: " + field, "S4/cross-check", sections("Still visible", "Faded") + object(`"`+field+`":0,`+rest), "", `"` + field + `":0`, ""})
	}
	completion := func(n int, ids ...string) string {
		var rows []string
		for _, id := range ids[:n] {
			rows = append(rows, `{"question":"`+id+`","answered":true,"finding":"fine"}`)
		}
		return `"completion":[` + strings.Join(rows, ",") + `]`
	}
	report := sections("Completion")
	own := []string{"PA-06", "PA-07", "PA-08", "PA-09"}
	tests = append(tests,
		tested{"auditor", h(2, "auditor-B"), report + object(completion(4, own...)+`,"pa05":3.2`), "", `"pa05":3.2`, "reports-2: ### Auditor B — focus: reading  I looked."},
		tested{"auditor without a score", h(2, "auditor-B"), report + object(completion(4, own...)), "", `"completion"`, "reports-2"},
		tested{"auditor of the best", h(2, "auditor-B"), report + object(completion(4, own...)+`,"pa05":4`), "", `"pa05":4`, "reports-2"},
		tested{"auditor of the worst", h(2, "auditor-B"), report + object(completion(4, own...)+`,"pa05":0`), "", `"pa05":0`, "reports-2"},
		tested{"auditor better than the best", h(2, "auditor-B"), report + object(completion(4, own...)+`,"pa05":4.05`), "pa05", "", ""},
		tested{"auditor worse than the worst", h(2, "auditor-B"), report + object(completion(4, own...)+`,"pa05":-0.05`), "pa05", "", ""},
		tested{"auditor of a question too few", h(2, "auditor-B"), report + object(completion(3, own...)+`,"pa05":3.2`), "completion", "", ""},
		tested{"auditor of another's question", h(2, "auditor-B"), report + object(completion(4, "PA-06", "PA-07", "PA-08", "PA-10")+`,"pa05":3.2`), "question", "", ""},
		tested{"auditor without a table", h(2, "auditor-B"), sections("Report") + object(completion(4, own...)+`,"pa05":3.2`), "completion: ", "", ""},
		tested{"the first auditor scores", h(2, "auditor-A"), report + object(completion(5, "PA-01", "PA-02", "PA-03", "PA-04", "PA-05")+`,"pa05":3.2`), "", `"pa05":3.2`, "reports-2: ### Auditor A"},
		tested{"who is not asked scores nothing", h(2, "auditor-D"), report + object(completion(4, "PA-14", "PA-15", "PA-16", "PA-17")+`,"pa05":3.2`), "pa05", "", ""},
		tested{"the integrative one", h(2, "auditor-I"), report + object(completion(6, "PA-24", "PA-25", "PA-26", "PA-27", "PA-28", "PA-48")), "", `"completion"`, "reports-2: ### Auditor I"},
	)
	for _, tt := range tests {
		a := ask(t, tt.id, past{}, newHost(), tt.answer)
		if ok := a.failed == ""; ok != (tt.why == "") || !strings.Contains(a.reason, tt.why) {
			t.Errorf("%s: failed as %q: %s; want %q", tt.name, a.failed, a.reason, tt.why)
			continue
		}
		if tt.why != "" {
			continue
		}
		record := map[string]string{"S3/p5": "verifier-depth", "S4/cross-check": "cross-check"}[tt.id]
		if record == "" {
			record = "auditor"
		}
		if got := a.noted(record); !strings.Contains(got, tt.record) || tt.record == "" && got != "" {
			t.Errorf("%s: recorded as %s: %s, want %s", tt.name, record, got, tt.record)
		}
		if got := a.entries(); !strings.HasPrefix(got, tt.entry) || tt.entry == "" && got != "" {
			t.Errorf("%s: it adds %q, want %q", tt.name, got, tt.entry)
		}
		if strings.HasPrefix(tt.id, "hardening/") {
			if want := "hardening/cycle-2/" + strings.TrimPrefix(tt.id, "hardening/2/") + "-report.md"; a.writes() != want {
				t.Errorf("%s: it writes %s, want %s", tt.name, a.writes(), want)
			}
		}
	}
	// What is handed on of a long answer is bounded.
	long := strings.Repeat("word ", 10000)
	for id, most := range map[string]int{"S3/p5": 12000, h(2, "auditor-D"): 40000} {
		answer := sections("Deeply integrated", "Surface level", "Absent", "Completion") + long
		if id == "S3/p5" {
			answer += object(depth)
		} else {
			answer += object(completion(4, "PA-14", "PA-15", "PA-16", "PA-17"))
		}
		a := ask(t, id, past{}, newHost(), answer)
		if len(a.Entries) != 1 || len([]rune(a.Entries[0].Text)) != most {
			t.Errorf("%s hands on %d characters, want %d: %s", id, len([]rune(a.Entries[0].Text)), most, a.reason)
		}
	}
}

// C-3, C-5, K-5: what a pass has read, in its order, stands in its log, and a retrospective's summary in its output.
func TestWhatIsNotedOfAnAnswer(t *testing.T) {
	order := "[artifacts-by-content full-disks-and-locks checkpoints-and-revert what-a-crash-costs written-then-synced]"
	for id, answer := range map[string]string{
		"S3/p4": "```html\n" + sized(2000, "950px") + "\n```\n",
		"S3/p5": "## Deeply integrated\n- a\n## Surface level\n- b\n## Absent\n- c\n" + object(`"deeplyIntegrated":3,"surfaceLevel":0,"absent":1`),
	} {
		a := ask(t, id, past{}, newHost(), answer)
		if !slices.ContainsFunc(a.Notes, func(n nodes.LogLine) bool {
			return n.Log == "node" && n.Type == "files" && fmt.Sprint(n.Fields["corpusFiles"]) == order
		}) {
			t.Errorf("%s records %v, want files in the order %s", id, a.Notes, order)
		}
	}
	if a := ask(t, "S3/retrospective", past{}, newHost(), "## Summary\n\nAll is kept.\n"); a.Values["summary"] != "All is kept." {
		t.Errorf("a retrospective ends with %v: %s", a.Values, a.reason)
	}
}

// P-9, P-11, K-1, K-3, K-5: each field of the weaver's judgement within its bounds; what is outside makes it one that cannot be
// read, which releases nothing.
func TestWeaverJudges(t *testing.T) {
	whole := map[string]string{"pa05": "3.2", "tier5": "7", "decision": `"RELEASE"`, "blockers": `[]`, "anchor": `"Calm."`, "vector": `"Less."`,
		"changes": `[{"class":"MECHANICAL","text":"Shorter."}]`, "arc": `{"surprise":1,"delight":10,"authority":5,"earnedClosure":5}`}
	said := func(change ...string) string {
		var fields []string
		for name, value := range whole {
			for i := 0; i < len(change); i += 2 {
				if change[i] == name {
					value = change[i+1]
				}
			}
			if value != "" {
				fields = append(fields, fmt.Sprintf("%q:%s", name, value))
			}
		}
		return "# Report\n" + object(strings.Join(fields, ","))
	}
	arc := func(field, value string) string {
		return regexp.MustCompile(`"`+field+`":\d+`).ReplaceAllString(whole["arc"], `"`+field+`":`+value)
	}
	change := func(class, text string) string { return fmt.Sprintf(`{"class":%q,"text":%q}`, class, text) }
	good, bad := []string{}, []string{}
	add := func(list *[]string, field string, values ...string) {
		for _, v := range values {
			*list = append(*list, field, v)
		}
	}
	add(&good, "pa05", "0", "4", "")
	add(&bad, "pa05", "-0.05", "4.05", `"3"`)
	add(&good, "tier5", "0", "9", "")
	add(&bad, "tier5", "-1", "10")
	add(&good, "decision", `"RELEASE"`, `"POLISH"`, `"IMPROVE"`, `"RETHINK"`)
	add(&bad, "decision", `"SHIP"`, "")
	add(&good, "blockers", `["cut off"]`)
	add(&bad, "blockers", "")
	five := strings.Repeat(change("STRUCTURAL", "x")+",", 4) + change("COMPOSITIONAL", "x")
	add(&good, "changes", "["+five+"]", "[]")
	add(&bad, "changes", "["+five+","+change("MECHANICAL", "x")+"]", "["+change("COSMETIC", "x")+"]", "["+change("MECHANICAL", "Raise PA-12.")+"]", "")
	add(&good, "arc", "")
	for _, field := range []string{"surprise", "delight", "authority", "earnedClosure"} {
		add(&good, "arc", arc(field, "1"), arc(field, "10"))
		add(&bad, "arc", arc(field, "0"), arc(field, "11"))
	}
	for _, field := range []string{"anchor", "vector"} {
		add(&good, field, `""`, `"Of 4 chapters 9 would do, 3.5 em apart."`)
		add(&bad, field, `"PA-05 is low"`, `"GR-11"`, `"BV-08"`, `"A-03"`, `"3/4"`, `"7 / 9"`, `"3.2 of 4"`, `"3 out of four"`, `"6 of nine"`, `"7 out of 9"`, "")
	}
	sc := past{}.ended(h(2, "auditor-A")).ended(h(2, "auditor-B"))
	for i := 0; i < len(good); i += 2 {
		a := ask(t, h(2, "weaver"), sc, newHost(), said(good[i], good[i+1]))
		got, _ := json.Marshal(a.Values[good[i]])
		if want := good[i+1]; a.failed != "" || !jsonEqual(string(got), want) {
			t.Errorf("%s %s: recorded as %s: %s", good[i], want, got, a.reason)
		}
		if i == 0 && (a.writes() != "hardening/cycle-2/weaver-synthesis.md" || a.noted("weaver") == "") {
			t.Errorf("the weaver writes %s and records %s", a.writes(), a.noted("weaver"))
		}
	}
	for i := 0; i < len(bad); i += 2 {
		a := ask(t, h(2, "weaver"), sc, newHost(), said(bad[i], bad[i+1]))
		if a.failed != "" || a.Values["decision"] != "IMPROVE" || a.Values["pa05"] != nil || a.Values["tier5"] != nil {
			t.Errorf("%s %s is taken, or fails as %q: %v", bad[i], bad[i+1], a.failed, a.Values)
		}
	}
}

func jsonEqual(a, b string) bool {
	var x, y any
	_ = json.Unmarshal([]byte(a), &x)
	_ = json.Unmarshal([]byte(b), &y)
	return fmt.Sprint(x) == fmt.Sprint(y)
}
