package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dagrun.dev/internal/testing/nodetest"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/proc"
)

type m = map[string]any

func run(t *testing.T, with m, change ...func(*nodes.Task, *nodetest.Host)) (*nodes.Task, *nodetest.Host, *nodes.Result, error) {
	t.Helper()
	task, host := nodetest.New(t, "exec", with)
	for _, f := range change {
		f(task, host)
	}
	res, err := Kind.Run(context.Background(), task)
	return task, host, res, err
}

func TestCommandGetsWhatItIsTold(t *testing.T) {
	t.Setenv("EXEC_TEST_TOKEN", "leak")
	t.Setenv("EXEC_TEST_WANTED", "yes")
	script := `
		printf '%s\n' "$TEXT" "$NUMBER" "$FLAG" "$KEY" "$EXEC_TEST_WANTED" "${EXEC_TEST_TOKEN-}"
		printf '%s\n' "$DAGRUN_NODE $DAGRUN_GENERATION $DAGRUN_SEED"
		cat "$DAGRUN_IN/page.html" "$DAGRUN_IN/notes"; ls "$DAGRUN_IN" | tr '\n' ' '; cat; pwd > "$DAGRUN_OUT/where.txt"`
	task, host, res, err := run(t, m{
		"run": script, "env": m{"TEXT": "a b; $(exit 3)", "NUMBER": 1.5, "FLAG": true},
		"pass": []string{"EXEC_TEST_WANTED"}, "secrets": m{"KEY": "api"}, "stdin": m{"artifact": "in.txt"}, "dir": "sub",
	}, func(task *nodes.Task, h *nodetest.Host) {
		task.Reads = []string{"page.html", "notes", "nobody-wrote-this"}
		task.Writes = []string{"where.txt"}
		h.Artifacts["page.html"], h.Artifacts["in.txt"] = "<p>\n", "from stdin"
		h.Accumulators["notes"] = []nodes.Entry{{Text: "first", Meta: map[string]string{"title": "T"}}, {Text: "second"}}
		h.Secrets["api"] = "s3cret"
		if err := os.Mkdir(filepath.Join(task.SpecDir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "a b; $(exit 3)\n1.5\ntrue\ns3cret\nyes\n\nn 1 1\n<p>\n# notes\n\n### T\n\nfirst\n\nsecond\nnotes page.html from stdin"
	if got := host.Kept["stdout.txt"]; got != want {
		t.Errorf("stdout\n%q want\n%q", got, want)
	}
	sub, err := filepath.EvalSymlinks(filepath.Join(task.SpecDir, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	if where := nodetest.Stage(t, task, res, "where.txt"); where != sub+"\n" {
		t.Errorf("ran in %q", where)
	}
	if _, kept := host.Kept["stderr.txt"]; kept {
		t.Error("an empty stderr was kept")
	}
}

func TestSilentCommandKeepsNothing(t *testing.T) {
	_, host, res, err := run(t, m{"argv": []string{"/bin/true"}})
	if err != nil || len(host.Kept) != 0 || len(res.Writes) != 0 || len(res.Warnings) != 0 {
		t.Errorf("error %v, kept %v, result %+v", err, host.Kept, res)
	}
}

func TestArtifacts(t *testing.T) {
	writes := func(names ...string) func(*nodes.Task, *nodetest.Host) {
		return func(task *nodes.Task, _ *nodetest.Host) { task.Writes = names }
	}
	t.Run("staged, with folders and bytes as they are", func(t *testing.T) {
		task, _, res, err := run(t, m{"run": `mkdir "$DAGRUN_OUT/d"; printf 'a\000\377' > "$DAGRUN_OUT/d/x"; : > "$DAGRUN_OUT/empty"`}, writes("d/x", "empty"))
		if err != nil {
			t.Fatal(err)
		}
		if x := nodetest.Stage(t, task, res, "d/x"); x != "a\x00\xff" {
			t.Errorf("d/x = %q", x)
		}
		nodetest.Stage(t, task, res, "empty")
	})
	t.Run("stdout as an artifact", func(t *testing.T) {
		task, host, res, err := run(t, m{"argv": []string{"echo", "hi"}, "stdout": "d/out.txt"}, writes("d/out.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if out := nodetest.Stage(t, task, res, "d/out.txt"); out != "hi\n" {
			t.Errorf("%q", out)
		}
		if len(host.Kept) != 0 {
			t.Errorf("kept twice: %v", host.Kept)
		}
	})
	t.Run("missing", func(t *testing.T) {
		_, host, _, err := run(t, m{"run": "echo words"}, writes("report.txt"))
		if nodetest.Category(err) != "no_artifact" || !strings.Contains(err.Error(), "report.txt") || host.Kept["stdout.txt"] != "words\n" {
			t.Errorf("error %v, kept %v", err, host.Kept)
		}
	})
	t.Run("where the command started", func(t *testing.T) {
		_, _, _, err := run(t, m{"run": "echo words > report.txt"}, writes("report.txt"))
		if want := `; report.txt stands in the folder that it started in: write to "$DAGRUN_OUT/report.txt"`; !strings.HasSuffix(err.Error(), want) {
			t.Error(err)
		}
	})
	t.Run("a folder that is declared as a file", func(t *testing.T) {
		_, _, _, err := run(t, m{"run": `mkdir "$DAGRUN_OUT/site"`}, writes("site"))
		if nodetest.Category(err) != "no_artifact" || !strings.Contains(err.Error(), "is a folder: name it site/ in writes") {
			t.Error(err)
		}
	})
	t.Run("a link out of the folder", func(t *testing.T) {
		for _, script := range []string{`ln -s /etc/passwd "$DAGRUN_OUT/x"`, `ln -s /etc "$DAGRUN_OUT/d"`} {
			_, _, _, err := run(t, m{"run": script}, writes(map[bool]string{true: "x", false: "d/passwd"}[strings.Contains(script, "passwd")]))
			if nodetest.Category(err) != "no_artifact" {
				t.Errorf("%s: %v", script, err)
			}
		}
	})
	t.Run("undeclared", func(t *testing.T) {
		_, _, res, err := run(t, m{"run": `mkdir "$DAGRUN_OUT/d"; echo > "$DAGRUN_OUT/d/x"; cd "$DAGRUN_OUT"; echo > extra; echo > more`}, writes("d/x"))
		if err != nil || len(res.Warnings) != 1 || !strings.HasSuffix(res.Warnings[0], `: "extra", "more"`) {
			t.Errorf("error %v, warnings %v", err, res.Warnings)
		}
	})
}

// TestLines: what is printed can be a value, line by line.
func TestLines(t *testing.T) {
	for script, want := range map[string]string{
		`printf 'a\nb c\n\n<d>'`: `["a","b c","","\u003cd\u003e"]`, "true": "[]", "echo": `[""]`, `printf '\377'`: "not UTF-8",
		`echo '{"names": []}' > "$DAGRUN_OUT/outputs.json"`: "names takes the lines that are printed, and is in outputs.json too",
	} {
		_, host, res, err := run(t, m{"run": script, "lines": "names"}, func(task *nodes.Task, _ *nodetest.Host) {
			task.Outputs = map[string]string{"names": "list"}
		})
		switch {
		case err != nil:
			if nodetest.Category(err) != "protocol" || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", script, err)
			}
		case fmt.Sprintf("%s", res.Values["names"]) != want:
			t.Errorf("%s: %s, want %s (kept %v)", script, res.Values["names"], want, host.Kept)
		}
	}
}

// TestPrograms: what the settings say is started may be executed where the command reads it, and nothing else.
func TestPrograms(t *testing.T) {
	reads := func(task *nodes.Task, h *nodetest.Host) {
		h.Artifacts["bin/app"], h.Artifacts["data"] = "#!/bin/sh\necho ran\n", "#!/bin/sh\necho ran\n"
		task.Reads = []string{"bin/app", "data"}
	}
	_, host, _, err := run(t, m{"programs": []string{"bin/app"}, "run": `"$DAGRUN_IN/bin/app"; test ! -x "$DAGRUN_IN/data"`}, reads)
	if err != nil || host.Kept["stdout.txt"] != "ran\n" {
		t.Errorf("error %v, kept %v", err, host.Kept)
	}
	_, _, _, err = run(t, m{"run": `"$DAGRUN_IN/data"`}, reads)
	if err == nil || !strings.HasSuffix(err.Error(), "of what a node reads only what stands in with.programs may be started") {
		t.Error(err)
	}
}

// V-1: an artifact is held to its declared shape, and its record names the schema.
func TestShapes(t *testing.T) {
	schema := m{"type": "object", "properties": m{"n": m{"type": "integer"}}, "required": []string{"n"}}
	for text, want := range map[string]string{`{"n": 1}`: "", `{"n": "1"}`: "facts.json.n", `{}`: "facts.json", `[1]`: "facts.json", `{"n": 1`: "facts.json"} {
		with := m{"run": `printf %s "$TEXT" > "$DAGRUN_OUT/facts.json"`, "env": m{"TEXT": text}, "shapes": []m{{"of": "facts.json", "name": "facts", "schema": schema}}}
		_, _, res, err := run(t, with, func(task *nodes.Task, _ *nodetest.Host) { task.Writes = []string{"facts.json"} })
		if want == "" && (err != nil || res.Schemas["facts.json"] != "facts") || want != "" && (nodetest.Category(err) != "protocol" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, schemas %v", text, err, res.Schemas)
		}
	}
	for text, want := range map[string]string{`{"type": "array"}`: "shapes.0.schema.type", `{"type": "object", "properties": {"a": {"typ": "string"}}}`: "shapes.0.schema.properties.a.typ"} {
		tr, err := Kind.Describe([]byte(`{"run": "true", "shapes": [{"of": "a.json", "schema": ` + text + `}]}`))
		if err != nil || len(tr.Problems) != 1 || tr.Problems[0].Path != want || !slices.Contains(tr.Writes, "a.json") {
			t.Errorf("%s: %+v, %v", text, tr, err)
		}
	}
}

func TestOutputs(t *testing.T) {
	declared := map[string]string{"n": "int", "ok": "bool", "maybe": "int?"} // K-1: maybe may be absent
	tests := []struct{ json, want, category string }{
		{`{"n": 12345678901234567, "ok": true}`, `{"n":12345678901234567,"ok":true}`, ""},
		{`{"n": 1, "ok": true, "maybe": null}`, `{"n":1,"ok":true}`, ""},
		{`{"n": 1, "ok": true, "maybe": 2}`, `{"maybe":2,"n":1,"ok":true}`, ""},
		{`{"n": 1}`, "", "protocol"},
		{`{"n": null, "ok": true}`, `{"n":null,"ok":true}`, ""}, // the host refuses it by its type
		{`{"n": 1, "ok": tru`, "", "protocol"},
		{`{"n": 1, "ok": true} {}`, "", "protocol"},
		{`[1]`, "", "protocol"},
		{``, "", "protocol"},
	}
	large := m{"run": `head -c 16777217 /dev/zero > "$DAGRUN_OUT/outputs.json"`}
	if _, _, _, err := run(t, large); nodetest.Category(err) != "protocol" {
		t.Errorf("too much: %v", err)
	}
	for _, tt := range tests {
		_, _, res, err := run(t, m{"run": `printf '%s' "$J" > "$DAGRUN_OUT/outputs.json"`, "env": m{"J": tt.json}},
			func(task *nodes.Task, _ *nodetest.Host) { task.Outputs = declared })
		if got := nodetest.Category(err); got != tt.category {
			t.Errorf("%.40s: category %q (%v)", tt.json, got, err)
			continue
		}
		if tt.want != "" {
			if got, _ := json.Marshal(res.Values); string(got) != tt.want {
				t.Errorf("values %s", got)
			}
		}
	}
	twice := m{"run": `printf '{"n": 1, "ok": true, "n": 2}' > "$DAGRUN_OUT/outputs.json"`}
	if _, _, res, err := run(t, twice); err != nil || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], `"n" appears twice`) {
		t.Errorf("a name twice: %v %v", res, err)
	}
	if _, _, res, err := run(t, m{"argv": []string{"/bin/true"}}); err != nil || res.Values != nil {
		t.Errorf("without declarations: %v %v", res, err)
	}
}

// how a command failed, with what it said.
func TestFailures(t *testing.T) {
	tests := []struct {
		name     string
		with     m
		change   func(*nodes.Task)
		category string
		message  string // part of it
		final    bool
	}{
		{"status", m{"run": "echo first; echo 'the reason' >&2; exit 3"}, nil, "exit_nonzero", "exit status 3: the reason", false},
		{"declared status", m{"run": "exit 75", "exit": m{"75": "transient"}}, nil, "transient", "exit status 75", false},
		{"declared as good", m{"run": "exit 1", "exit": m{"1": "ok"}}, nil, "", "", false},
		{"not found", m{"argv": []string{"no-such-command-x1"}}, nil, "spawn_failed", "no-such-command-x1", true},
		{"not found by a shell", m{"run": "no-such-command-x1"}, nil, "spawn_failed", "not found", true},
		{"too long a variable", m{"run": "true", "env": m{"A": "x", "TEXT": strings.Repeat("x", 1<<22)}}, nil, "spawn_failed", "the longest is env.TEXT with 4194304 bytes; hand it over in a file", true},
		{"127 of its own", m{"run": "exit 127"}, nil, "exit_nonzero", "exit status 127", false},
		{"not executable", m{"argv": []string{"./plain.txt"}}, nil, "spawn_failed", "permission denied", true},
		{"signal from outside", m{"run": "kill -KILL $$"}, nil, "killed", "signal 9", false},
		{"silence", m{"run": "echo a; exec sleep 300"}, func(t *nodes.Task) { t.Silence = 200 * time.Millisecond }, "stalled", "printed nothing", false},
		{"no such secret", m{"argv": []string{"/bin/true"}, "secrets": m{"K": "none"}}, nil, "config", "none", true},
		{"no such stdin", m{"argv": []string{"cat"}, "stdin": m{"artifact": "none"}}, nil, "config", "none", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, host, _, err := run(t, tt.with, func(task *nodes.Task, h *nodetest.Host) {
				if err := os.WriteFile(filepath.Join(task.SpecDir, "plain.txt"), []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
				if tt.change != nil {
					tt.change(task)
				}
			})
			if got := nodetest.Category(err); got != tt.category {
				t.Fatalf("category %q (%v), want %q", got, err, tt.category)
			}
			if err == nil {
				return
			}
			var e *nodes.Error
			errors.As(err, &e)
			if !strings.Contains(err.Error(), tt.message) || e.Permanent != tt.final || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, permanent %v", err, e.Permanent)
			}
			if cut := tt.category == "killed" || tt.category == "stalled"; e.Unknown != cut {
				t.Errorf("its effect is unknown: %v", e.Unknown)
			}
			if tt.name == "status" && (!strings.Contains(e.Diagnostics, "first") || host.Kept["stderr.txt"] != "the reason\n") {
				t.Errorf("diagnostics %q, kept %v", e.Diagnostics, host.Kept)
			}
		})
	}
}

// SIGTERM to the group, grace, SIGKILL; the partial output is kept.
func TestTimeout(t *testing.T) {
	task, host := nodetest.New(t, "exec", m{"run": "trap '' TERM; echo partial; while :; do sleep 1; done"})
	task.Grace, task.Silence = 100*time.Millisecond, time.Hour
	ctx, pass := nodetest.Deadline()
	task.Beat = func() { pass() } // it has printed
	_, err := Kind.Run(ctx, task)
	if nodetest.Category(err) != "stalled" || host.Kept["stdout.txt"] != "partial\n" {
		t.Errorf("error %v, kept %v", err, host.Kept)
	}
}

func TestCancelIsTheHostsWord(t *testing.T) {
	stopped := errors.New("stopped by the user")
	task, _ := nodetest.New(t, "exec", m{"argv": []string{"sleep", "300"}})
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(100*time.Millisecond, func() { cancel(stopped) })
	if _, err := (Kind).Run(ctx, task); !errors.Is(err, stopped) {
		t.Errorf("error %v", err)
	}
}

func TestDiagnosticsAreBoundedAndSafe(t *testing.T) {
	_, _, _, err := run(t, m{"run": `i=0; while [ $i -lt 3000 ]; do printf 'ä\033[31m%d\n' $i >&2; echo "out $i"; i=$((i+1)); done; exit 1`})
	var e *nodes.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if len(e.Diagnostics) > 2000 || strings.ContainsRune(e.Diagnostics, 0x1b) || !strings.Contains(e.Diagnostics, "2999") {
		t.Errorf("%d bytes: %q", len(e.Diagnostics), e.Diagnostics)
	}
}

// B-10: what a command leaves behind is ended and named.
func TestLeftovers(t *testing.T) {
	_, _, res, err := run(t, m{"run": "setsid sleep 299 & sleep 0.05"})
	if err != nil || len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0], "sleep 299") || len(res.Survivors) != 0 {
		t.Errorf("error %v, result %+v", err, res)
	}
}

// B-3: a lost attempt is resolved by its probe: yes, no, or a question.
func TestProbe(t *testing.T) {
	tests := []struct {
		probe m
		took  bool
		err   string
	}{
		{m{"argv": []string{"/bin/true"}}, true, ""},
		{m{"run": "test \"$WHAT\" = done"}, true, ""},
		{m{"run": "exit 1"}, false, ""},
		{m{"run": "echo cannot tell >&2; exit 2"}, false, "exit status 2: cannot tell"},
		{m{"argv": []string{"no-such-command-x1"}}, false, "not found"},
		{nil, false, "names no probe"},
	}
	for _, tt := range tests {
		with := m{"run": "echo effect >> log", "env": m{"WHAT": "done"}}
		if tt.probe != nil {
			with["probe"] = tt.probe
		}
		task, _ := nodetest.New(t, "exec", with)
		prober, _ := nodes.Able[nodes.Prober](Kind, task.With)
		took, err := prober.Probe(context.Background(), task)
		if took != tt.took || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%v: %v %v", tt.probe, took, err)
		}
		if _, err := os.Stat(filepath.Join(task.SpecDir, "log")); err == nil {
			t.Errorf("%v: the command itself ran", tt.probe)
		}
	}
}

// A machine that is short of processes or files has them again in a while; a program that is none stays so.
func TestStartFailure(t *testing.T) {
	for errno, final := range map[syscall.Errno]bool{
		syscall.EAGAIN: false, syscall.ENOMEM: false, syscall.EMFILE: false, syscall.ENFILE: false, syscall.ENOENT: true, syscall.EACCES: true, syscall.ENOEXEC: true,
	} {
		var e *nodes.Error
		if err := (&settings{}).startFailure(&proc.StartError{Path: "x", Err: errno}); !errors.As(err, &e) || e.Category != "spawn_failed" || e.Permanent != final {
			t.Errorf("%v: %v, want for good: %v", errno, err, final)
		}
	}
}

func TestDescribe(t *testing.T) {
	tests := []struct{ with, want string }{
		{`{"argv": ["make"]}`, "[]"},
		{`{}`, "[{argv missing: what to run, as argv: [...] or run: \"...\"}]"},
		{`{"argv": ["a"], "run": "b"}`, "[{run give argv or run, not both}]"},
		{`{"argv": ["a"], "stdin": {}}`, "[{stdin want exactly one of artifact, file, text}]"},
		{`{"argv": ["a"], "stdin": {"text": "", "file": "x"}}`, "[{stdin want exactly one of artifact, file, text}]"},
		{`{"argv": ["a"], "probe": {}}`, "[{probe want exactly one of argv, run}]"},
		{`{"argv": ["a"], "exit": {"0": "ok"}}`, "[{exit.0 an exit status is a number from 1 to 255}]"},
		{`{"argv": ["a"], "env": {"K": "v"}, "secrets": {"K": "s"}}`, "[{secrets.K the variable is set by env too}]"},
	}
	for _, tt := range tests {
		tr, err := Kind.Describe(json.RawMessage(tt.with))
		if err != nil || fmt.Sprint(tr.Problems) != tt.want && !(tt.want == "[]" && len(tr.Problems) == 0) {
			t.Errorf("%s: %v %v", tt.with, tr.Problems, err)
		}
	}
	tr, err := Kind.Describe(json.RawMessage(`{"argv": ["a"], "stdin": {"artifact": "r"}, "stdout": "w", "secrets": {"A": "s", "B": "s"}}`))
	if err != nil || fmt.Sprintf("%v %v %v %v", tr.Effect, tr.Reads, tr.Writes, tr.Secrets) != "idempotent [r] [w] [s]" {
		t.Errorf("%+v %v", tr, err)
	}
	if _, err := (Kind).Describe(json.RawMessage(`{"argvv": []}`)); err == nil {
		t.Error("an unknown field was accepted")
	}
}

// X7: a credential that is handed on from the environment is masked by its name; what the specification itself sets
// stands there for all to read, and masking it would only break what the command prints.
func TestCredentialsHandedOn(t *testing.T) {
	t.Setenv("EXEC_TEST_API_KEY", "a-key-of-the-user")
	_, host, _, err := run(t, m{"run": "true", "pass": []string{"EXEC_TEST_API_KEY"}, "env": m{"SORT_KEY": "created_at"}})
	if err != nil || len(host.Masked) != 1 || host.Masked[0] != "a-key-of-the-user" {
		t.Errorf("masked %q, %v", host.Masked, err)
	}
}

// W-7: a script is shown as it was written, also where its settings are still a template.
func TestWhatItDoes(t *testing.T) {
	tr, err := Kind.Describe(json.RawMessage(`{"run":"for f in *; do\n  echo \"$${f##*/}\"\ndone"}`))
	if want := `for f in *; do; echo "${f##*/}"; done`; err != nil || tr.Does != want {
		t.Errorf("does %q (%v), want %q", tr.Does, err, want)
	}
}
