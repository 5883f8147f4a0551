//go:build realcli

package agent

import (
	"bufio"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	testprogram "dagrun.dev/internal/testing/program"
	"dagrun.dev/nodes"
)

// insideVariable holds the programs, by name, for the test that runs where there is no network.
const insideVariable = "DAGRUN_REAL_PROGRAMS"

// the real agents where there is no network but loopback, each of their connections seen. What the machine lacks
// for that is a failure that says so.
func TestRealCLIConfined(t *testing.T) {
	for _, tool := range []string{"unshare", "strace", "ip", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("this test needs %s (Debian packages util-linux, strace, iproute2, npm): %v", tool, err)
		}
	}
	programs := map[string]string{}
	for _, version := range realCLIs {
		programs["claude "+version] = testprogram.Claude(t, version)
	}
	programs["codex"] = installNPM(t, "@openai/codex@0.171.0", "codex")
	programs["gemini"] = installNPM(t, "@google/gemini-cli@0.61.0", "gemini")
	raw, err := json.Marshal(programs)
	if err != nil {
		t.Fatal(err)
	}
	space := "-rn"
	if os.Getuid() == 0 {
		space = "-n"
	}
	cmd := exec.Command("unshare", space, "sh", "-c", `ip link set lo up && exec "$0" -test.run '^TestInside$' -test.v -test.timeout 20m`, os.Args[0])
	cmd.Env = append(os.Environ(), insideVariable+"="+string(raw))
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: TestInside") {
		t.Errorf("inside of a namespace without network: %v", err)
	}
}

func installNPM(t *testing.T, pkg, program string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("npm", "install", "--prefix", dir, "--cache", filepath.Join(dir, "cache"), "--no-audit", "--no-fund", "--ignore-scripts", pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("npm install: %v\n%s", err, out)
	}
	return filepath.Join(dir, "node_modules", ".bin", program)
}

// TestInside is the part of TestRealCLIConfined that runs without network.
func TestInside(t *testing.T) {
	programs := map[string]string{}
	if json.Unmarshal([]byte(os.Getenv(insideVariable)), &programs) != nil {
		t.Skip("is started by TestRealCLIConfined")
	}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range programs {
			if !yield(name) {
				return
			}
		}
	}) {
		t.Run(name, func(t *testing.T) { inside(t, strings.Fields(name)[0], programs[name]) })
	}
}

func inside(t *testing.T, provider, program string) {
	outside := t.TempDir()
	secret, escaped := filepath.Join(outside, "secret.txt"), filepath.Join(outside, "escaped.txt")
	if err := os.WriteFile(secret, []byte("outside-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	api := &manyAPI{calls: map[string][][2]any{
		"claude": {{"Read", m{"file_path": secret}}, {"Write", m{"file_path": escaped, "content": "x"}}, {"Read", m{"file_path": "page.html"}}, {"Write", m{"file_path": "report.md", "content": "written inside"}}},
		"codex":  {{"exec_command", m{"cmd": "cat " + secret + "; echo x > " + escaped + "; cat page.html; echo written inside > report.md; (exec 3<>/dev/tcp/127.0.0.1/1) 2>&1"}}},
		"gemini": {{"read_file", m{"file_path": secret}}, {"write_file", m{"file_path": escaped, "content": "x"}}, {"read_file", m{"file_path": "page.html"}}, {"write_file", m{"file_path": "report.md", "content": "written inside"}}},
	}}
	server := httptest.NewServer(api)
	defer server.Close()
	model := map[string]string{"claude": "claude-sonnet-4-5", "codex": "gpt-5", "gemini": "gemini-2.5-pro"}[provider]
	ask := func(t *testing.T, behaviour string, with m) (bodies []string, res *nodes.Result, host *nodetest.Host, err error) {
		t.Helper()
		trace := filepath.Join(t.TempDir(), "trace")
		base := server.URL + "/" + behaviour
		if provider == "codex" {
			base += "/v1"
		}
		all := m{
			"provider": provider, "argv": []string{program}, "model": model, "prompt": m{"text": "Make a page."}, "baseURL": base,
			"wrapper": []string{"strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", trace},
			"env":     m{"ANTHROPIC_API_KEY": "dummy", "OPENAI_API_KEY": "dummy", "GEMINI_API_KEY": "dummy", "HTTPS_PROXY": "", "HTTP_PROXY": "", "NO_PROXY": "127.0.0.1"},
		}
		for name, value := range with {
			all[name] = value
		}
		task, host := nodetest.New(t, "agent", all)
		host.Files["page.html"] = "given page"
		task.Timeout, task.Grace = 2*time.Minute, 5*time.Second
		api.taken()
		res, err = Kind.Run(t.Context(), task)
		for _, line := range foreign(t, trace, strings.TrimPrefix(server.URL, "http://127.0.0.1:")) {
			t.Errorf("%s: another address than the API's: %s", behaviour, line)
		}
		return api.taken(), res, host, err
	}

	t.Run("without tools", func(t *testing.T) {
		with := m{}
		if provider != "codex" {
			with["maxTurns"] = 5 // so that the refusal of the tool is sent on
		}
		bodies, res, _, err := ask(t, "tools", with)
		if err != nil || len(bodies) != 2 {
			t.Fatalf("%v after %d requests", err, len(bodies))
		}
		if n := len(bodies[0]); n > 4000 {
			t.Errorf("Q2: the request has %d bytes", n)
		}
		for _, name := range []string{`"name":"Read"`, `exec_command`, `"read_file"`, `web_search`} {
			if strings.Contains(bodies[0], name) {
				t.Errorf("T2: a tool in the request: %s", name)
			}
		}
		if strings.Contains(bodies[1], "outside-secret") || exists(escaped) {
			t.Errorf("T2: a tool ran: %v", res)
		}
	})
	t.Run("tools are confined", func(t *testing.T) {
		bodies, res, host, err := ask(t, "tools", m{"tools": []string{"Read", "Write"}, "give": []m{{"file": "page.html"}}, "report": "report.md", "to": "answer.txt"})
		if err != nil || len(bodies) != 2 {
			t.Fatalf("%v after %d requests\n%s", err, len(bodies), host.Kept["stderr.txt"])
		}
		if strings.Contains(bodies[1], "outside-secret") || exists(escaped) {
			t.Errorf("T1: reached beyond its folder: %s", bodies[1])
		}
		if !strings.Contains(bodies[1], "given page") || !strings.Contains(host.Kept["raw-output.txt"], "written inside") {
			t.Errorf("its own folder was not to be had: %q\n%s", host.Kept["raw-output.txt"], bodies[1])
		}
		if provider == "claude" && !strings.Contains(strings.Join(res.Warnings, "\n"), "tools were refused: Read, Write") {
			t.Errorf("the refusals were not reported: %v", res.Warnings)
		}
	})
	t.Run("unavailable", func(t *testing.T) {
		if bodies, _, _, err := ask(t, "503", m{}); nodetest.Category(err) != "transient" || len(bodies) != 1 {
			t.Errorf("Q8: %v after %d requests, want transient after 1", err, len(bodies))
		}
	})
	if provider == "gemini" {
		return
	}
	t.Run("cut stream", func(t *testing.T) {
		if bodies, _, _, err := ask(t, "cut", m{}); err == nil || len(bodies) != 1 {
			t.Errorf("M5: %v after %d requests, want a failure after 1", err, len(bodies))
		}
	})
	if provider == "codex" {
		return
	}
	t.Run("money limit after the work", func(t *testing.T) {
		_, res, host, err := ask(t, "ok", m{"maxUSD": 0.000001, "accept": acceptPage})
		if err != nil || !strings.Contains(host.Kept["raw-output.txt"], "done") || !strings.Contains(strings.Join(res.Warnings, "\n"), "maxUSD") {
			t.Errorf("M1: %v %+v", err, res)
		}
	})
	t.Run("another model answers", func(t *testing.T) {
		_, res, _, err := ask(t, "switch", m{})
		if err != nil || !strings.Contains(strings.Join(res.Warnings, "\n"), "claude-haiku-4-5 answered") {
			t.Errorf("Q6: %v %+v", err, res)
		}
	})
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

var address = regexp.MustCompile(`sin6?_port=htons\((\d+)\).*?(?:inet_addr\("|inet_pton\(AF_INET6, ")([^"]+)"`)

// foreign returns the lines of a trace in which a program connects or sends to another address than the API's.
func foreign(t *testing.T, trace, port string) (lines []string) {
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen := false
	for in := bufio.NewScanner(f); in.Scan(); {
		a := address.FindStringSubmatch(in.Text())
		switch {
		case a == nil:
		case a[1] == port && a[2] == "127.0.0.1":
			seen = true
		default:
			lines = append(lines, in.Text())
		}
	}
	if !seen {
		t.Error("the trace does not show the call itself")
	}
	return lines
}
