package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// maskedKeys are the credentials of the tests: a declared secret of four lines, the key of an agent in the program's
// environment, one in a base address, one in a header of the specification.
var maskedKeys = map[string]string{
	"declared":    strings.Join([]string{"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj", "AgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R4LDd", `qK"mFGgF/8Zs2c<Qz1hJq3y&w5bX0dTn6eR\uUOp`, "ZyXwVuTsRqPoNmLkJiHgFeDcBa98765432101234"}, "\n"),
	"environment": `sk-ant-api03-w9"/<Qz1h-7Jq3yx`,
	"address":     "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
	"header":      "glpat-4wSkq1_ZxC9vBn7mLk",
}

// maskedForms are how programs write a text inside others.
var maskedForms = map[string]func(string) string{
	"plain":  func(s string) string { return s },
	"blanks": func(s string) string { return strings.ReplaceAll(s, "\n", " ") },
	"indent": func(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") },
	"JSON":   func(s string) string { raw, _ := json.Marshal(s); return string(raw) },
	"nested": func(s string) string {
		raw, _ := json.Marshal(s)
		raw, _ = json.Marshal(string(raw))
		return string(raw)
	},
	"slash":  func(s string) string { return strings.ReplaceAll(strconv.QuoteToASCII(s), "/", `\/`) },
	"query":  url.QueryEscape,
	"path":   func(s string) string { return strings.ToLower(url.PathEscape("/")) + url.PathEscape(s) },
	"HTML":   html.EscapeString,
	"base64": func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"shift1": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(":" + s + ":")) },
	"shift2": func(s string) string { return base64.StdEncoding.EncodeToString([]byte("me" + s + ":")) },
}

// maskedText is every key in every form, and traces are pieces of it of which none may be found again.
func maskedText(names ...string) (text string, traces []string) {
	var b strings.Builder
	for _, name := range names {
		for how, form := range maskedForms {
			written := form(maskedKeys[name])
			fmt.Fprintf(&b, "%s of %s: <%s>\n", how, name, written)
			for _, line := range strings.Split(maskedKeys[name], "\n") {
				line = strings.Trim(form(line), `"`)
				if len(line) > 24 { // base64 of a line alone begins and ends in another way than within the whole
					line = line[4 : len(line)-4]
				}
				traces = append(traces, line)
			}
			for at := 4; at+16 < len(written); at += 16 {
				traces = append(traces, written[at:at+12])
			}
		}
	}
	return b.String(), traces
}

// A maskingRun is a run whose nodes show credentials in every form, wherever they can.
type maskingRun struct {
	*paidRun
	traces []string
	said   strings.Builder // all that was printed
}

func newMaskingRun(t *testing.T, nodes object) *maskingRun {
	t.Helper()
	m := &maskingRun{paidRun: &paidRun{crash: newFolder(t)}}
	t.Setenv("DAGRUN_SECRET_TEST_KEY", maskedKeys["declared"])
	t.Setenv("ANTHROPIC_API_KEY", maskedKeys["environment"])
	text, traces := maskedText("declared", "environment", "address", "header")
	m.traces = traces
	answer, _ := json.Marshal(object{
		"type": "result", "subtype": "success", "is_error": false, "result": text, "session_id": "s", "stop_reason": "end_turn",
		"total_cost_usd": 0.01, "num_turns": 1, "usage": object{"input_tokens": 10, "output_tokens": 20},
	})
	value, _ := json.Marshal(object{"v": text})
	outside := t.TempDir() // what children show is not part of the specification
	for name, content := range map[string]string{
		"text": text, "answer": string(answer) + "\n", "value": string(value),
		"agent.sh": "#!/bin/sh\ncat > /dev/null\ncat " + outside + "/text >&2\ncat " + outside + "/answer\n",
	} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := json.Marshal(object{"pipeline": object{"name": "crash", "nodes": nodes}})
	if err != nil {
		t.Fatal(err)
	}
	m.write("spec.yaml", strings.ReplaceAll(string(spec), "OUTSIDE", outside))
	return m
}

// run runs the program and keeps what it prints.
func (m *maskingRun) run(crashAt string, args ...string) {
	if crashAt != "" {
		m.t.Setenv("DAGRUN_CRASH_AT", crashAt)
		defer os.Unsetenv("DAGRUN_CRASH_AT")
	}
	_ = m.dagrun(0, args...) // nodes fail here, and tests look at what is kept
	m.said.WriteString(m.output.String())
}

// check looks for the traces in all that is kept and all that was printed. The plan and what holds it keep the settings
// as the specification has them: given are the values that stand there.
func (m *maskingRun) check(least int, given ...string) {
	m.t.Helper()
	for _, args := range [][]string{{"status"}, {"report"}, {"report", "--json"}, {"log"}, {"log", "--json"}, {"status", "--json"}, {"escalations"}} {
		m.run("", args...)
	}
	masks := 0
	look := func(where, content string) {
		masks += strings.Count(content, "[secret]")
		for _, g := range given {
			content = strings.ReplaceAll(content, g, "")
		}
		for _, trace := range m.traces {
			if at := strings.Index(content, trace); at >= 0 {
				m.t.Errorf("%s holds %q: %q", where, trace, content[max(0, at-60):min(len(content), at+60)])
				return
			}
		}
	}
	look("the terminal", m.said.String())
	for _, dir := range []string{"build", "state"} {
		err := filepath.WalkDir(m.path(dir), func(path string, d fs.DirEntry, err error) error {
			if os.IsNotExist(err) || err == nil && !d.Type().IsRegular() {
				return nil
			}
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			look(path, string(content))
			return err
		})
		if err != nil {
			m.t.Error(err)
		}
	}
	if masks < least {
		m.t.Errorf("%d masks, want %d at least\n%s", masks, least, m.said.String())
	}
}

// Credentials are masked line by line and in every form in everything that a run keeps and prints, whoever shows them:
// a command, an agent, a server that echoes what it was sent (W-11, X7, e-work/14).
func TestCredentialsAreMasked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := maskedText("declared", "environment", "address", "header")
		w.Header().Set("X-Echo", r.Header.Get("Private-Token"))
		w.Header().Set("Retry-After", "0")
		if r.URL.Query().Get("bad") != "" {
			w.WriteHeader(http.StatusBadRequest)
		}
		raw, _ := json.Marshal(object{"v": text, "error": object{"message": r.URL.String() + " " + r.Header.Get("Private-Token") + " " + text}})
		_, _ = w.Write(raw)
	}))
	defer server.Close()
	secrets := object{"KEY": "test-key"}
	once := object{"attempts": 1}
	show := "cat OUTSIDE/text; cat OUTSIDE/text >&2; "
	request := func(more string) object {
		return object{
			"url": server.URL + "/?key=" + maskedKeys["address"] + more, "headers": object{"Private-Token": maskedKeys["header"]},
			"secrets": object{"X-Declared": "one-line"}, "values": object{"v": object{"at": "v"}},
		}
	}
	t.Setenv("DAGRUN_SECRET_ONE_LINE", "declared-but-not-looked-for")
	m := newMaskingRun(t, object{
		"known": object{"kind": "exec", "with": object{"pass": []string{"ANTHROPIC_API_KEY"}, "run": "true"}},
		"web":   object{"kind": "http", "needs": []string{"known"}, "outputs": object{"v": "string"}, "writes": []string{"web.json"}, "with": with(request(""), "to", "web.json")},
		"kept":  object{"kind": "http", "needs": []string{"known"}, "outputs": object{"v": "string"}, "with": request("")},
		"echo":  object{"kind": "http", "needs": []string{"known"}, "onFail": "continue", "retry": once, "with": request("&bad=1")},
		"good": object{"kind": "exec", "needs": []string{"web"}, "outputs": object{"v": "string"}, "writes": []string{"page.txt"}, "with": object{
			"secrets": secrets, "pass": []string{"ANTHROPIC_API_KEY"},
			"run": show + `cp OUTSIDE/text "$DAGRUN_OUT/page.txt"; cp OUTSIDE/value "$DAGRUN_OUT/outputs.json"`,
		}},
		"bad": object{"kind": "exec", "needs": []string{"web"}, "onFail": "continue", "retry": once, "with": object{
			"secrets": secrets, "run": show + `printf %s "$KEY" | tail -n 1 >&2; exit 3`,
		}},
		"agent": object{"kind": "agent", "needs": []string{"good"}, "reserve": object{"usd": 1}, "with": object{
			"provider": "claude", "argv": []string{"OUTSIDE/agent.sh"}, "prompt": object{"text": "Show ${nodes['good'].out.v}."}, "to": "answer.txt",
			"baseURL": "http://127.0.0.1:1/?key=" + maskedKeys["address"],
		}},
	})
	m.run("", "apply")
	for name, want := range map[string]int{"page.txt": 48, "answer.txt": 48, "web.json": 96} {
		if got, err := os.ReadFile(m.path("build/crash/" + name)); err != nil || strings.Count(string(got), "[secret]") < want {
			t.Errorf("%s has %d masks, want %d: %v\n%s", name, strings.Count(string(got), "[secret]"), want, err, m.said.String())
		}
	}
	m.check(500, server.URL+"/?key="+maskedKeys["address"], "http://127.0.0.1:1/?key="+maskedKeys["address"], `"Private-Token":"`+maskedKeys["header"])
}

func with(settings object, name string, value any) object { settings[name] = value; return settings }

// What a killed process left is masked when the next one takes it over: an answer in the spool, a finished result (W-11).
func TestCredentialsOfAKilledRunAreMasked(t *testing.T) {
	for _, saved := range []bool{true, false} {
		t.Run(fmt.Sprint("result saved ", saved), func(t *testing.T) {
			m := newMaskingRun(t, object{"ask": object{"kind": "agent", "reserve": object{"usd": 1}, "with": object{
				"provider": "claude", "argv": []string{"OUTSIDE/agent.sh"}, "prompt": object{"text": "Show it."}, "to": "answer.txt",
				"secrets": object{"KEY": "test-key"}, "env": object{"PRIVATE_TOKEN": maskedKeys["header"]},
				"baseURL": "http://127.0.0.1:1/?key=" + maskedKeys["address"],
			}}})
			m.run("before LLM_CALL_FINISHED ask", "apply")
			if !saved { // what the agent printed is in the spool
				if err := os.Remove(m.path("build/crash/_orchestrator/nodes/ask/result.json")); err != nil {
					t.Fatal(err)
				}
			}
			m.run("", "resume")
			if got, err := os.ReadFile(m.path("build/crash/answer.txt")); err != nil || strings.Count(string(got), "[secret]") < 48 {
				t.Errorf("%v: %.400s\n%s", err, got, m.said.String())
			}
			m.check(96, "http://127.0.0.1:1/?key="+maskedKeys["address"], `"PRIVATE_TOKEN":"`+maskedKeys["header"])
		})
	}
}
