package gates

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "4") // they wait more than they compute
	os.Exit(m.Run())
}

type m = map[string]any

const plain = `<!DOCTYPE html><html lang="en"><title>page</title><style>body{margin:0} main{width:950px;padding:0 16px;box-sizing:border-box}
	@media (max-width:800px){main{width:auto}}</style><main><h1>Heading</h1><p>Several longer words</p></main><!-- INTENT: a --><!-- INTENT: b --></html>`

// run carries out a node over a page with checks and rules.
func run(t *testing.T, page string, with m) (*nodes.Result, *report, *nodetest.Host, error) {
	t.Helper()
	common := m{
		"page": m{"artifact": "p.html"}, "viewports": []m{{"width": 1440, "height": 900}},
		"verdict": m{"rules": []m{}, "else": "GO"}, "waits": m{"settle": "10ms"},
	}
	for name, v := range common {
		if _, given := with[name]; !given {
			with[name] = v
		}
	}
	task, h := nodetest.New(t, "gates", with)
	h.Artifacts["p.html"] = page
	h.Files["brief.md"] = "# Brief\n\nSeveral longer words, and something unheard.\n"
	h.Files["check.js"] = "// The number of headings.\n(args, note) => {\n  const n = document.querySelectorAll(args.tag).length;\n  note(n + ' found');\n  return n;\n}\n"
	if _, err := (Kind).Describe(task.With); err != nil {
		t.Fatal(err)
	}
	res, err := Kind.Run(context.Background(), task)
	if err != nil {
		return res, nil, h, err
	}
	var got report
	if err := json.Unmarshal([]byte(h.Kept["gates.json"]), &got); err != nil {
		t.Fatal(err)
	}
	return res, &got, h, nil
}

// P-5: only a truth value, or a number within its bounds, passes; everything else fails with the reason.
func TestWhatChecksGive(t *testing.T) {
	t.Parallel()
	one, ten := 1.0, 10.0
	list := []struct {
		js       string
		min, max *float64
		pass     bool
		reason   string
	}{
		{"true", nil, nil, true, ""},
		{"false", nil, nil, false, "false"},
		{"1 + 1", &one, &ten, true, ""},
		{"1;", &one, nil, true, ""},
		{"0.5", &one, &ten, false, "0.5 is below 1"},
		{"11", &one, &ten, false, "11 is above 10"},
		{"-0", &one, nil, false, "0 is below 1"},
		{"3", nil, nil, false, "no min or max"},
		{"true", &one, nil, false, "true where a number was asked for"},
		{"null", nil, nil, false, "null"},
		{"undefined", nil, nil, false, "undefined"},
		{"NaN", &one, nil, false, "NaN"},
		{"1/0", &one, nil, false, "Infinity"},
		{"10n", &one, nil, false, "bigint"},
		{"'true'", nil, nil, false, "string"},
		{"({})", nil, nil, false, "an object"},
		{"[1]", &one, nil, false, "an object"},
		{"new Number(2)", &one, nil, false, "an object"},
		{"new Map()", nil, nil, false, "an object"},
		{"document.body", nil, nil, false, "an object"},
		{"window", nil, nil, false, "an object"},
		{"Symbol('x')", nil, nil, false, "symbol"},
		{"() => () => true", nil, nil, false, "function"},
		{"() => true", nil, nil, true, ""},
		{"async () => 2", &one, nil, true, ""},
		{"function () { return true }", nil, nil, true, ""},
		{"const a = 5; return a", &one, nil, true, ""},
		{"const a = 5;", &one, nil, false, "undefined"},
		{"Promise.resolve(true)", nil, nil, true, ""},
		{"await Promise.resolve(7)", &one, nil, true, ""},
		{"Promise.reject(new Error('refused'))", nil, nil, false, "Error: refused"},
		{"throw new TypeError('thrown')", nil, nil, false, "TypeError: thrown"},
		{"throw 5", nil, nil, false, "5"},
		{"nothing.at.all", nil, nil, false, "ReferenceError"},
		{"if (", nil, nil, false, "SyntaxError"},
		{"", nil, nil, false, ""}, // replaced below: a check from a file
		{"new Promise(() => {})", nil, nil, false, "a promise that never settles"},
		{"for (;;);", nil, nil, false, "a loop that never ends"},
		{"document.querySelectorAll('h1').length", &one, &one, true, ""}, // the page still answers
		{"devicePixelRatio", &one, &one, true, ""},
		{"innerWidth === 1440 && document.documentElement.clientWidth === 1440", nil, nil, true, ""},
		{"getComputedStyle(document.querySelector('main')).width === '950px'", nil, nil, true, ""},
		{"document.querySelector('main').clientWidth - 32", &one, nil, true, ""},
	}
	checks := make([]m, len(list))
	for i, c := range list {
		checks[i] = m{"name": fmt.Sprintf("c%d", i), "class": "x", "js": c.js, "timeout": "1s"}
		if c.js == "" {
			delete(checks[i], "js")
			checks[i]["file"], checks[i]["args"], checks[i]["min"] = "check.js", m{"tag": "h1"}, 2
		}
		if c.min != nil {
			checks[i]["min"] = *c.min
		}
		if c.max != nil {
			checks[i]["max"] = *c.max
		}
	}
	res, got, _, err := run(t, plain, m{"checks": checks})
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for i, c := range list {
		x := got.Checks[i]
		if c.js == "" {
			c.reason = "1 is below 2"
			if len(x.Results) != 1 || !slices.Equal(x.Results[0].Notes, []string{"1 found"}) {
				t.Errorf("a check from a file left %+v, want the note 1 found", x.Results)
			}
		}
		if (x.Status == pass) != c.pass || !strings.Contains(x.Reason, c.reason) {
			t.Errorf("%s: %s, %q; want pass %v, %q", c.js, x.Status, x.Reason, c.pass, c.reason)
		}
		if c.pass {
			passed++
		}
	}
	if res.Values["passed"] != passed || res.Values["failed"] != len(list)-passed || res.Values["notRun"] != 0 || res.Values["verdict"] != "GO" {
		t.Errorf("values %v", res.Values)
	}
}

// P-6: the order of the declared rules decides, and counts what is declared.
func TestVerdict(t *testing.T) {
	table := verdict{
		Rules: []rule{
			{Class: "dpr", AtLeast: 1, Then: "BLOCK_SCREENSHOTS"},
			{Class: "quality", AtLeast: 1, Then: "BLOCK_PA"},
			{Class: "identity", AtLeast: 1, Then: "RETHINK"},
			{Class: "recommended", AtLeast: 3, Then: "RETHINK", Reason: "too much is missing"},
			{Checks: []string{"p1", "p2"}, AtLeast: 2, Then: "LOOK"},
			{Class: "perception", AtLeast: 1, Then: "IMPROVE"},
			{Class: "coverage", AtLeast: 1, Then: "INCOMPLETE"},
		},
		Else: "PROCEED", Incomplete: "UNKNOWN",
	}
	class := map[string]string{"d": "dpr", "q": "quality", "i1": "identity", "i2": "identity", "r1": "recommended", "r2": "recommended", "r3": "recommended", "p1": "perception", "p2": "perception", "c": "coverage"}
	for _, c := range []struct{ failed, open, want, rule string }{
		{"", "", "PROCEED", "else"},
		{"d q i1", "", "BLOCK_SCREENSHOTS", "1 dpr"},
		{"q i1", "", "BLOCK_PA", "2 quality"},
		{"i2", "", "RETHINK", "3 identity"},
		{"r1 r2", "", "PROCEED", "else"},
		{"r1 r2 r3 p1", "", "RETHINK", "4 recommended"},
		{"p1 c", "", "IMPROVE", "6 perception"},
		{"p1 p2", "", "LOOK", "5 p1+p2"},
		{"c", "i1", "INCOMPLETE", "7 coverage"},
		{"", "i1", "UNKNOWN", "incomplete"},
		{"", "d q i1 i2 r1 r2 r3 p1 p2", "UNKNOWN", "incomplete"},
		{"r1", "i1", "UNKNOWN", "incomplete"},
	} {
		var results []*result
		for _, name := range []string{"d", "q", "i1", "i2", "r1", "r2", "r3", "p1", "p2", "c"} {
			x := &result{Name: name, Status: pass, check: &check{Name: name, Class: class[name]}}
			if slices.Contains(strings.Fields(c.failed), name) {
				x.Status = fail
			}
			if slices.Contains(strings.Fields(c.open), name) {
				x.Status = notRun
			}
			results = append(results, x)
		}
		if got := decide(table, results); got.name != c.want || got.rule != c.rule {
			t.Errorf("failed %q, open %q: %s by %s, want %s by %s", c.failed, c.open, got.name, got.rule, c.want, c.rule)
		}
	}
}

// P-5: checks at declared viewports, of texts, of recorded values, and of the checks themselves.
func TestKindsOfChecks(t *testing.T) {
	t.Parallel()
	res, got, h, err := run(t, plain, m{
		"viewports": []m{{"width": 1440, "height": 900}, {"width": 768, "height": 1024}},
		"repeat":    2,
		"checks": []m{
			{"name": "box", "class": "identity", "title": "content box", "js": "document.querySelector('main').getBoundingClientRect().width", "min": 940, "max": 960},
			{"name": "box-wide", "class": "identity", "js": "document.querySelector('main').getBoundingClientRect().width", "min": 940, "max": 960, "viewports": []m{{"width": 1440, "height": 900}}},
			{"name": "narrow", "class": "recommended", "js": "innerWidth < 800"},
			{"name": "wavers", "class": "recommended", "js": "window.n = (window.n || 0) + 1; return window.n", "max": 1},
			{"name": "intents", "class": "recommended", "text": m{"matches": "<!-- INTENT: .*? -->"}, "min": 2},
			{"name": "improvements", "class": "recommended", "text": m{"matches": "<!-- IMPROVEMENTS"}},
			{"name": "brief", "class": "recommended", "text": m{"sharedWith": m{"file": "brief.md"}}, "min": 0.5, "max": 0.75},
			{"name": "given", "class": "recommended", "text": m{"of": m{"text": "a b a"}, "matches": "a"}, "min": 2, "max": 2},
			{"name": "blanks", "class": "quality", "value": 2, "max": 2},
			{"name": "share", "class": "quality", "value": 0.3, "max": 0.2},
			{"name": "ready", "class": "quality", "value": true},
			{"name": "word", "class": "quality", "value": "yes"},
			{"name": "none", "class": "quality", "value": nil},
			{"name": "coverage", "class": "meta", "meta": "coverage"},
			{"name": "consistency", "class": "meta", "meta": "consistency"},
		},
		"verdict": m{"rules": []m{{"class": "identity", "then": "RETHINK"}}, "else": "GO"},
		"to":      "out/gates.json",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"box": "768x1024: 768 is below 940", "box-wide": "", "narrow": "1440x900: false", "wavers": "2 is above 1",
		"intents": "", "improvements": "0 is below 1", "brief": "", "given": "", "blanks": "", "share": "0.3 is above 0.2", "ready": "",
		"word": "neither a truth value nor a number: yes", "none": "null", "coverage": "", "consistency": "",
	}
	want["consistency"] = "narrow differs between 1440x900 and 768x1024; wavers changes between two looks at 1440x900"
	var failures []string
	for _, x := range got.Checks {
		reason := want[x.Name]
		if (x.Status == pass) != (reason == "") || !strings.Contains(x.Reason, reason) {
			t.Errorf("%s: %s, %q; want %q", x.Name, x.Status, x.Reason, reason)
		}
		if reason != "" {
			failures = append(failures, x.Name)
		}
	}
	v := res.Values
	if v["verdict"] != "RETHINK" || v["rule"] != "1 identity" || !slices.Equal(v["failures"].([]string), failures) || v["degraded"] != false {
		t.Errorf("values %v, want failures %v", v, failures)
	}
	byClass := v["byClass"].(map[string]any)
	if byClass["identity"] != 1 || byClass["recommended"] != 3 || byClass["quality"] != 3 || byClass["meta"] != 1 {
		t.Errorf("failed by class: %v", byClass)
	}
	if n := len(got.Checks[0].Results); n != 4 {
		t.Errorf("box was measured %d times, want 4: two viewports, twice", n)
	}
	if res.Writes["out/gates.json"] == "" || !strings.Contains(h.Kept["gates.json"], `"content box"`) {
		t.Error("gates.json is not there, or lacks a title")
	}
	started, finished := 0, map[any]any{}
	for _, f := range h.Facts {
		switch f["type"] {
		case "GATE_RUN_STARTED":
			started++
		case "GATE_RUN_FINISHED":
			finished[f["gate"]] = f["status"]
		}
	}
	if started != 15 || len(finished) != 15 || finished["box"] != "fail" || finished["ready"] != "pass" {
		t.Errorf("%d gates started; finished %v", started, finished)
	}
}

// P-4, P-5: what cannot be tried is not run, and no verdict comes of silence.
func TestNotRun(t *testing.T) {
	for _, c := range []struct {
		name, page string
		with       m
		verdict    string
		open       []string
		reason     string
		category   string
	}{
		{name: "no browser, insisted on", page: plain, with: m{"browser": m{"path": "no-such-browser"}}, category: "config"},
		{name: "no browser", page: plain, with: m{"browser": m{"path": "no-such-browser", "missing": "degrade"}},
			verdict: "INCOMPLETE", open: []string{"js"}, reason: "no browser found"},
		{name: "no browser, named by a rule", page: plain, with: m{"browser": m{"path": "no-such-browser", "missing": "degrade"},
			"verdict": m{"rules": []m{{"class": "meta", "then": "PARTLY"}}, "else": "GO"}}, verdict: "PARTLY", open: []string{"js"}, reason: "no browser found"},
		{name: "the page hangs", page: plain + `<script>onload=()=>setTimeout(()=>{for(;;);},50)</script>`, with: m{"waits": m{"command": "2s", "idle": "2s"}},
			verdict: "INCOMPLETE", open: []string{"js"}, reason: "did not answer"},
		{name: "the page runs", page: plain, with: m{}, verdict: "GO"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, given := c.with["checks"]; !given {
				c.with["checks"] = []m{
					{"name": "js", "class": "x", "js": "true"},
					{"name": "intents", "class": "x", "text": m{"matches": "INTENT"}},
					{"name": "coverage", "class": "meta", "meta": "coverage"},
				}
			}
			res, got, h, err := run(t, c.page, c.with)
			if cat := nodetest.Category(err); cat != c.category {
				t.Fatalf("category %q, want %q: %v", cat, c.category, err)
			}
			if err != nil {
				return
			}
			var open []string
			for _, x := range got.Checks {
				if x.Status == notRun {
					open = append(open, x.Name)
					if !strings.Contains(x.Reason, c.reason) {
						t.Errorf("%s is not run because %q, want %q", x.Name, x.Reason, c.reason)
					}
				}
			}
			if !slices.Equal(open, c.open) || res.Values["verdict"] != c.verdict || res.Values["degraded"] != (len(c.open) > 0) {
				t.Errorf("not run %v, verdict %v, want %v, %s", open, res.Values["verdict"], c.open, c.verdict)
			}
			if len(c.open) > 0 && (len(res.Warnings) == 0 || !strings.Contains(h.Types(), "GATE_RUN_FINISHED")) {
				t.Errorf("warnings %q, facts %s", res.Warnings, h.Types())
			}
		})
	}
}

// A check that leaves the page takes the ones after it along: they would check another page.
func TestLeft(t *testing.T) {
	t.Parallel()
	res, got, _, err := run(t, plain, m{"checks": []m{
		{"name": "leaves", "class": "x", "js": "location = 'about:blank'; return new Promise(() => {})"},
		{"name": "after", "class": "x", "js": "new Promise(done => setTimeout(() => done(true), 300))"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Checks[0].Status == pass || got.Checks[1].Status != notRun || !strings.Contains(got.Checks[1].Reason, "the page was left") || res.Values["verdict"] != "INCOMPLETE" {
		t.Errorf("checks %+v %+v, verdict %v", got.Checks[0], got.Checks[1], res.Values["verdict"])
	}
}

// A check that never lets the page answer again takes only what comes after it along.
func TestStuck(t *testing.T) {
	t.Parallel()
	_, got, _, err := run(t, plain, m{"checks": []m{
		{"name": "before", "class": "x", "js": "true"},
		{"name": "stuck", "class": "x", "js": "setInterval(() => { const end = Date.now() + 60000; while (Date.now() < end); }, 0); return new Promise(() => {})", "timeout": "500ms"},
		{"name": "after", "class": "x", "js": "true"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Checks[0].Status != pass || got.Checks[1].Status != fail || got.Checks[2].Status != notRun || !strings.Contains(got.Checks[2].Reason, "since check stuck") {
		t.Errorf("checks %+v %+v %+v", got.Checks[0], got.Checks[1], got.Checks[2])
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	task, h := nodetest.New(t, "gates", m{"page": m{"artifact": "p.html"}, "viewports": []m{{"width": 400, "height": 300}},
		"checks": []m{{"name": "js", "class": "x", "js": "new Promise(() => {})", "timeout": "60s"}}, "verdict": m{"rules": []m{}, "else": "GO"}})
	h.Artifacts["p.html"] = plain
	stopped := errors.New("stopped by a person")
	ctx, cancel := context.WithCancelCause(t.Context())
	task.Beat = func() { cancel(stopped) }
	if _, err := (Kind).Run(ctx, task); !errors.Is(err, stopped) {
		t.Errorf("error %v, want %v", err, stopped)
	}
}

// What becomes of a check is not what it found when the browser ended under it, or somebody stopped the task: it is made
// again, or not at all.
func TestInterrupted(t *testing.T) {
	stopped := errors.New("stopped by a person")
	for _, c := range []struct {
		name string
		stop bool
		want error
	}{{"the browser ends", false, nil}, {"the task is stopped", true, stopped}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var task *nodes.Task
			var asked atomic.Int32
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path != "/now":
					w.Header().Set("Content-Type", "text/html")
					_, _ = w.Write([]byte(plain))
				case asked.Add(1) > 1:
					_, _ = w.Write([]byte("again"))
				case c.stop:
					cancel(stopped)
				default:
					killBrowser(t, task.Scratch)
					<-r.Context().Done() // it is gone
				}
			}))
			defer s.Close()
			task, _ = nodetest.New(t, "gates", m{"page": m{"url": s.URL + "/"}, "viewports": []m{{"width": 400, "height": 300}}, "verdict": m{"rules": []m{}, "else": "GO"},
				"checks": []m{{"name": "js", "class": "x", "js": "(async () => await (await fetch('/now')).text() === 'again')()", "timeout": "60s"}}})
			res, err := Kind.Run(ctx, task)
			if !errors.Is(err, c.want) || err == nil && (res.Values["verdict"] != "GO" || res.Values["passed"] != 1) {
				t.Errorf("error %v, want %v; values %v", err, c.want, res.Values)
			}
		})
	}
}

// killBrowser kills the program that has a folder among its arguments.
func killBrowser(t *testing.T, folder string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if !bytes.Contains(b, []byte(folder)) || bytes.Contains(b, []byte("--type=")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			t.Error(err)
		}
		return
	}
	t.Error("there is no browser to kill")
}

func TestDescribe(t *testing.T) {
	const rest = `"verdict":{"rules":[],"else":"GO"}`
	const page = `"page":{"artifact":"p.html"},"viewports":[{"width":9,"height":9}],`
	for _, c := range []struct{ with, at string }{
		{`{` + page + `"checks":[{"name":"a","class":"x","js":"true"}],` + rest + `}`, ""},
		{`{"checks":[{"name":"a","class":"x","value":true}],` + rest + `}`, ""},
		{`{"checks":[{"name":"a","class":"x","js":"true"}],` + rest + `}`, "page"},
		{`{"page":{"artifact":"p"},"checks":[{"name":"a","class":"x","js":"true"}],` + rest + `}`, "checks.0"},
		{`{` + page + `"checks":[],` + rest + `}`, "checks"},
		{`{` + page + `"checks":[{"name":"a","class":"x"}],` + rest + `}`, "checks.0"},
		{`{` + page + `"checks":[{"name":"a","class":"x","js":"1","file":"x.js"}],` + rest + `}`, "checks.0"},
		{`{` + page + `"checks":[{"name":"a","class":"x","js":"1"},{"name":"a","class":"x","js":"1"}],` + rest + `}`, "checks.1.name"},
		{`{` + page + `"checks":[{"name":"a","class":"x","js":"1","min":2,"max":1}],` + rest + `}`, "checks.0.min"},
		{`{"checks":[{"name":"a","class":"x","value":1}],` + rest + `}`, "checks.0"},
		{`{"checks":[{"name":"a","class":"x","value":true,"min":1}],` + rest + `}`, "checks.0"},
		{`{"checks":[{"name":"a","class":"x","text":{"matches":"x"}}],` + rest + `}`, "checks.0.text.of"},
		{`{` + page + `"checks":[{"name":"a","class":"x","text":{"matches":"("}}],` + rest + `}`, "checks.0.text.matches"},
		{`{` + page + `"checks":[{"name":"a","class":"x","text":{}}],` + rest + `}`, "checks.0.text"},
		{`{` + page + `"checks":[{"name":"a","class":"x","meta":"coverage","min":1}],` + rest + `}`, "checks.0"},
		{`{"checks":[{"name":"a","class":"x","value":true}],"verdict":{"rules":[{"class":"y","then":"NO"}],"else":"GO"}}`, "verdict.rules.0.class"},
		{`{"checks":[{"name":"a","class":"x","value":true}],"verdict":{"rules":[{"checks":["b"],"then":"NO"}],"else":"GO"}}`, "verdict.rules.0.checks.0"},
		{`{"checks":[{"name":"a","class":"x","value":true}],"verdict":{"rules":[{"class":"x","atLeast":2,"then":"NO"}],"else":"GO"}}`, "verdict.rules.0.atLeast"},
	} {
		tr, err := Kind.Describe([]byte(c.with))
		if err != nil {
			t.Errorf("%s: %v", c.with, err)
			continue
		}
		at := ""
		if len(tr.Problems) > 0 {
			at = tr.Problems[0].Path
		}
		if at != c.at {
			t.Errorf("%s: problem at %q, want %q: %v", c.with, at, c.at, tr.Problems)
		}
	}
	tr, _ := Kind.Describe([]byte(`{` + page + `"checks":[{"name":"a","class":"x","file":"a.js"},{"name":"b","class":"y","text":{"sharedWith":{"file":"brief.md"}}}],"to":"g.json",` + rest + `}`))
	if !slices.Equal(tr.Files, []string{"a.js", "brief.md"}) || !slices.Equal(tr.Reads, []string{"p.html"}) || !slices.Equal(tr.Writes, []string{"g.json"}) {
		t.Errorf("traits %+v", tr)
	}
}

// P-5, P-6: a plan shows what is checked, where, within which bounds, and what follows from it.
func TestNotes(t *testing.T) {
	tr, err := Kind.Describe([]byte(`{"page":{"artifact":"p.html"},"viewports":[{"width":9,"height":8},{"width":7,"height":6}],"checks":[
		{"name":"a","class":"x","file":"a.js"},
		{"name":"b","class":"y","js":"1","viewports":[{"width":7,"height":6}],"min":0.5,"max":2},
		{"name":"c","class":"x","meta":"coverage"},
		{"name":"d","class":"z","value":1,"max":3}],
		"verdict":{"rules":[{"class":"x","then":"NO"},{"class":"y","atLeast":1,"then":"MAYBE"},{"checks":["c","d"],"then":"ODD","atLeast":2}],"else":"GO"}}`))
	if err != nil || len(tr.Problems) > 0 {
		t.Fatal(err, tr.Problems)
	}
	want := []string{
		"4 checks at 9x8, 7x6", "x checks: a, c", "y checks: b >= 0.5 <= 2 at 7x6", "z checks: d <= 3",
		"verdict: x -> NO, y -> MAYBE, 2 c+d -> ODD, else GO",
	}
	if !slices.Equal(tr.Notes, want) {
		t.Errorf("got %q", tr.Notes)
	}
}

// What a page has made of the language, or forbids, deceives no check; one that asks for it sees the page's own variables.
func TestWorlds(t *testing.T) {
	t.Parallel()
	page := `<meta http-equiv="Content-Security-Policy" content="script-src 'unsafe-inline'; require-trusted-types-for 'script'">` + plain + `<script>
		var answer = 42; Array.prototype.every = () => true; Document.prototype.querySelectorAll = () => [1, 2, 3]
		Promise.race = () => ({Type: "boolean", Value: true}); window.setTimeout = () => {}; Number.isFinite = () => true; Array.prototype.push = () => { throw 1 }
		Object.defineProperty(window, "innerWidth", {get: () => 9}); Date.now = () => { throw 1 }; JSON.stringify = () => "true"</script>`
	one := 1
	_, got, _, err := run(t, page, m{"checks": []m{
		{"name": "array", "class": "x", "js": "[false].every(x => x)"},
		{"name": "document", "class": "x", "js": "document.querySelectorAll('h1').length", "min": one, "max": one},
		{"name": "window", "class": "x", "js": "innerWidth === 1440 && Date.now() > 0 && JSON.stringify(1) === '1'"},
		{"name": "variable", "class": "x", "js": "typeof answer === 'undefined'"},
		{"name": "own", "class": "x", "js": "answer", "min": 42, "max": 42, "world": "page"},
		{"name": "own deceived", "class": "x", "js": "[false].every(x => x)", "world": "page"},
		{"name": "code", "class": "x", "js": "new Function('return true')()"},
		{"name": "own false", "class": "x", "js": "false", "world": "page"},
		{"name": "own NaN", "class": "x", "js": "NaN", "min": 0, "world": "page"},
		{"name": "own promise", "class": "x", "js": "new Promise(() => {})", "world": "page", "timeout": "500ms"},
		{"name": "own note", "class": "x", "js": "note('x'); return true", "world": "page"},
		{"name": "changes the language", "class": "x", "js": "Promise.race = () => ({Type: 'boolean', Value: true}); setTimeout = () => {}; return true"},
		{"name": "next", "class": "x", "js": "new Promise(done => setTimeout(() => done(false), 10))"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{fail, pass, pass, pass, pass, pass, pass, fail, fail, fail, pass, pass, fail} {
		if c := got.Checks[i]; c.Status != want {
			t.Errorf("%s: %s, want %s: %s", c.Name, c.Status, want, c.Reason)
		}
	}
}
