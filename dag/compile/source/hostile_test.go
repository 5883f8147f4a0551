package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"dagrun.dev/internal/tree"
)

// TestHostileFiles: what is no specification is refused in one line, whatever it is.
func TestHostileFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) { must(t, writeFile(name, []byte(text))) }
	must(t, os.Mkdir("empty", 0o755))
	must(t, os.Mkdir("dir.cue", 0o755))
	must(t, os.Mkdir("dir.yaml", 0o755))
	must(t, unix.Mkfifo("pipe.yaml", 0o600))
	must(t, unix.Mkfifo("pipe.cue", 0o600))
	must(t, os.Mkdir("pipes", 0o755))
	must(t, unix.Mkfifo("pipes/p.cue", 0o600))
	must(t, os.Symlink("loop.yaml", "loop.yaml"))
	must(t, os.WriteFile("sparse.yaml", []byte("a"), 0o600))
	must(t, os.Truncate("sparse.yaml", 1<<36))
	must(t, os.Symlink("/dev/zero", "zero.yaml"))
	must(t, os.Symlink("/dev/zero", "zero.cue"))
	must(t, os.Symlink("/proc/self/environ", "environ.yaml"))
	must(t, os.Symlink("nowhere.yaml", "dangling.yaml"))
	write("text.txt", "name: demo\n")
	write("binary.yaml", "\x7fELF\x02\x01\x01\x00\x00\x00")
	write("binary.json", "\x7fELF\x02\x01\x01\x00\x00\x00")
	write("binary.cue", "\x7fELF\x02\x01\x01\x00\x00\x00")
	write("latin1.yaml", "name: caf\xe9\n")
	write("utf16.yaml", "\xff\xfen\x00a\x00")
	write("blank.json", " \n")
	write("blank.cue", "\n")
	write("spaces.yaml", "   \n\n")
	write("two/a.cue", "package a\n")
	write("two/b.cue", "package b\n")
	write("spek.yaml", "name: demo\n")
	write("brackets.yaml", "a: "+strings.Repeat("[", 1_000_000))
	write("brackets.json", strings.Repeat("[", 1_000_000))
	write("brackets.cue", "a: "+strings.Repeat("[", 1_000_000))
	write("chain.cue", strings.Repeat("a: ", 1_000_000)+"1")
	write("deep.yaml", "a: "+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000))
	write("deep.json", strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000))
	write("laughs.yaml", laughs(9))
	write("merges.yaml", "b: &b {"+numbered(300, "k%d: 1, ")+"}\nm:\n"+numbered(2000, "  - {<<: *b, x%d: 1}\n"))
	write("anchors.yaml", "name: demo\nx:\n"+numbered(50_000, "  - &a%d x\n"))
	write("huge.cue", "// "+strings.Repeat("x", cueBytes)+"\n")

	s := testSchema(t)
	for _, c := range []struct{ path, want string }{
		{"nothing.yaml", "nothing.yaml: no such file or folder"},
		{"spek.yml", `spek.yml: no such file or folder; did you mean "spek.yaml"?`},
		{"text.txt", "text.txt: want a .cue, .yaml, .yml or .json file, or the folder of a CUE package"},
		{"empty", "empty: the folder holds no specification"},
		{"dir.yaml", "dir.yaml: the folder holds no specification"},
		{"dir.cue", "dir.cue: the folder holds no specification"},
		{"pipe.yaml", "pipe.yaml: it is a named pipe, want a regular file"},
		{"pipe.cue", "pipe.cue: it is a named pipe, want a regular file"},
		{"pipes", "pipes/p.cue: it is a named pipe, want a regular file"},
		{"loop.yaml", "loop.yaml: too many levels of symbolic links"},
		{"zero.yaml", "zero.yaml: it is a device, want a regular file"},
		{"sparse.yaml", "sparse.yaml: the file has more than 67108864 bytes"},
		{"zero.cue", "zero.cue: it is a device, want a regular file"},
		{"environ.yaml", "environ.yaml: it is a link that leads out of its folder; put a copy in its place"},
		{"dangling.yaml", "dangling.yaml: no such file or folder"},
		{"binary.yaml", "binary.yaml:1:8: not a text file: byte 0x00"},
		{"binary.json", "binary.json:1:1: invalid character '\\x7f' at start of value"},
		{"binary.cue", "binary.cue:1:1: illegal character"},
		{"latin1.yaml", "latin1.yaml:1:10: not a text file: byte 0xe9"},
		{"utf16.yaml", "utf16.yaml: the file is in UTF-16; save it as UTF-8"},
		{"blank.json", "blank.json:2:1: the document is empty"},
		{"blank.cue", "blank.cue: no pipeline is declared here"},
		{"spaces.yaml", "spaces.yaml: the file is empty"},
		{"two", "two: the folder holds several CUE packages (a, b); name a file"},
		{"brackets.yaml", "brackets.yaml: nested far too deep"},
		{"brackets.json", "brackets.json:1:65: nested deeper than 64 levels"},
		{"brackets.cue", "brackets.cue:1: nested deeper than 1000 levels"},
		{"chain.cue", "chain.cue:1: nested deeper than 1000 levels"},
		{"deep.yaml", "nested deeper than 64 levels"},
		{"deep.json", "deep.json:1:65: nested deeper than 64 levels"},
		{"laughs.yaml", "aliases and merge keys make more than 10000 values"},
		{"merges.yaml", "aliases and merge keys make more than 10000 values"},
		{"anchors.yaml", "x: unknown field"},
		{"huge.cue", "huge.cue: the CUE source has more than 4194304 bytes"},
	} {
		_, _, err := loadAll(s, c.path, Options{})
		if err == nil {
			t.Errorf("%s: accepted", c.path)
			continue
		}
		if got := err.Error(); !strings.Contains(got, c.want) || strings.Count(got, "\n") > 0 && c.path != "anchors.yaml" {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
}

// TestNoSpec: without an argument the current folder must hold a specification.
func TestNoSpec(t *testing.T) {
	t.Chdir(t.TempDir())
	s := testSchema(t)
	want := "no specification in the current folder; name one, or add spec.cue, spec.yaml or a CUE package"
	if _, _, err := loadAll(s, "", Options{}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Error(err)
	}
	// Each file is preferred to those before it; a.cue is the package of the folder.
	for _, name := range []string{"a.cue", "spec.json", "spec.yaml", "spec.cue"} {
		text := fmt.Sprintf(`{"name": %q}`, name)
		if strings.HasSuffix(name, ".cue") {
			text = fmt.Sprintf("package p\n\npipeline: name: %q\n", name)
		}
		must(t, writeFile(name, []byte(text)))
		v, src, err := loadAll(s, "", Options{})
		if err != nil || v.Get("name").Str != name {
			t.Errorf("with %s: took %s, %v", name, src.Path, err)
		}
	}
}

// TestUnreadable: what the system refuses is told in its words.
func TestUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("root reads everything; only the wording is checked")
	}
	t.Chdir(t.TempDir())
	must(t, os.MkdirAll("shut/in", 0o755))
	must(t, writeFile("shut/p.yaml", []byte("name: demo\n")))
	must(t, os.Chmod("shut", 0))
	defer os.Chmod("shut", 0o755)
	s := testSchema(t)
	for _, path := range []string{"shut", "shut/p.yaml"} {
		_, _, err := loadAll(s, path, Options{})
		if os.Geteuid() != 0 && (err == nil || !strings.Contains(err.Error(), path+": permission denied")) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := failure("p", reason(&os.PathError{Op: "open", Path: "p", Err: unix.EACCES})).Error(); got != "p: permission denied" {
		t.Error(got)
	}
}

// TestLimits: documents beyond a limit are refused by the count, not by running out.
func TestLimits(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, writeFile("p.yaml", []byte("name: demo\nlist: ["+strings.Repeat("1, ", 100)+"]\n")))
	must(t, writeFile("p.json", []byte(`{"name": "demo", "list": [`+strings.Repeat("1, ", 100)+`1]}`)))
	must(t, writeFile("p.cue", []byte("import \"list\"\n\npipeline: {name: \"demo\", seed: 1, prices: {for i in list.Range(0, 100, 1) {\"m\\(i)\": {input: 1, output: 2}}}}\n")))
	s := testSchema(t)
	for _, path := range []string{"p.yaml", "p.json", "p.cue"} {
		lim := tree.Defaults
		lim.Values = 50
		if _, _, err := loadAll(s, path, Options{Limits: lim}); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "about ", ""), "has more than 50 values") {
			t.Errorf("%s: %v", path, err)
		}
	}
	lim := tree.Defaults
	lim.Bytes = 10
	if _, _, err := loadAll(s, "p.yaml", Options{Limits: lim}); err == nil || err.Error() != "p.yaml: the file has more than 10 bytes" {
		t.Error(err)
	}
}

// TestUntrusted: a specification of somebody else cannot take time or memory at will.
func TestUntrusted(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, writeFile("good.cue", []byte("pipeline: {name: \"demo\", nodes: a: {kind: \"exec\", with: run: \"x\"}}\n")))
	must(t, writeFile("bad.cue", []byte("pipeline: {name: \"demo\", nodes: a: {kind: \"exce\"}}\n")))
	must(t, writeFile("memory.cue", []byte("import \"list\"\n\npipeline: {name: \"demo\", seed: len(list.Range(0, 30000000, 1))}\n")))
	must(t, writeFile("time.cue", []byte("import \"list\"\n\npipeline: {name: \"demo\", title: \"\\(len([for a in r for b in r for c in r for d in r for e in r if a+b+c+d+e < 0 {a}]))\"}\nlet r = list.Range(0, 40, 1)\n")))
	s := testSchema(t)
	v, src, err := loadAll(s, "good.cue", Options{Untrusted: true})
	if err != nil || src.Language != "cue" || filepath.Base(src.Files[0]) != "good.cue" {
		t.Fatalf("%v %v", src, err)
	}
	if w, _, err := loadAll(s, "good.cue", Options{}); err != nil || !tree.Equal(v, w) {
		t.Errorf("got %s, in this process %s (%v)", v.AppendJSON(nil), w.AppendJSON(nil), err)
	}
	if _, _, err := loadAll(s, "bad.cue", Options{Untrusted: true}); err == nil || !strings.HasPrefix(err.Error(), "bad.cue:1:43: nodes.a.kind: unknown node kind") {
		t.Error(err)
	}
	was := childLimits
	defer func() { childLimits = was }()
	for _, c := range []struct {
		path            string
		memory, seconds uint64
		want            string
	}{
		{"memory.cue", 256 << 20, 60, "memory.cue: evaluating it takes more than 256 MiB of memory"},
		{"time.cue", 8 << 30, 2, "time.cue: evaluating it takes more than 2 s"},
	} {
		childLimits.Memory, childLimits.Seconds = c.memory, c.seconds
		if _, _, err := loadAll(s, c.path, Options{Untrusted: true}); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.path, err, c.want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// laughs is the classic bomb: 9 to the power of levels.
func laughs(levels int) string {
	s := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < levels; i++ {
		s += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), ", "))
	}
	return s
}

func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestEvaluationIsBounded: a slip that makes CUE compute without end, or without bound of memory, is
// told in one line.
func TestEvaluationIsBounded(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, writeFile("p.cue", []byte("import \"list\"\npipeline: {name: \"d\", nodes: {}}\nx: [for i in list.Range(0, 200000, 1) {i * 2}]\n")))
	s := testSchema(t)
	limits := ownLimits
	defer func() { ownLimits = limits }()
	ownLimits.Time = 1
	if _, _, err := loadAll(s, "p.cue", Options{}); err == nil || !strings.HasPrefix(err.Error(), "p.cue: evaluating it takes more than 1ns of processor time") {
		t.Error(err)
	}
	ownLimits = limits
	ownLimits.Memory = 1
	if _, _, err := loadAll(s, "p.cue", Options{}); err == nil || !strings.HasPrefix(err.Error(), "p.cue: evaluating it takes more than 0 MiB of memory") {
		t.Error(err)
	}
}

// TestAlternativesThatMultiply: CUE tries every combination of the alternatives that meet in one value, and cannot be
// stopped. Those that can be seen are refused before.
func TestAlternativesThatMultiply(t *testing.T) {
	s := testSchema(t)
	t.Chdir(t.TempDir())
	join := func(n int, format, by string) string {
		var all []string
		for i := range n {
			all = append(all, strings.ReplaceAll(format, "#", fmt.Sprint(i)))
		}
		return strings.Join(all, by)
	}
	const two, second = `{a#: "1"} | {a#: "2"}`, `*{a#: "1"} | {a#: "2"}`
	for name, c := range map[string]struct {
		x    string
		line int
	}{
		"conjunction":         {"X: " + join(30, "("+two+")", " & "), 2},
		"with defaults":       {"X: " + join(30, "("+second+")", " & "), 2},
		"embedded":            {"X: {\n" + join(30, two, "\n") + "\n}", 2},
		"a field, many times": {join(30, "X: "+two, "\n"), 2},
		"definitions":         {strings.ReplaceAll(join(30, "@D#: "+two, "\n")+"\nX: "+join(30, "@D#", " & "), "@", "#"), 2},
		"of three":            {"X: " + join(7, `({a#: "1"} | {a#: "2"} | {a#: "3"})`, " & "), 2},
		"side by side":        {"X: {" + join(30, `a#: *"1" | "2"`, ", ") + "}", 0},
		"in a list":           {"X: {}\n_l: [" + join(30, "{"+second+"}", ", ") + "]", 0},
		"of one another":      {"X: {}\n_o: {x: 1} | {x: 2} | " + join(30, "{y: {n: #}}", " | "), 0},
		"calling themselves":  {"X: {}\n#A: {#B, #B}\n#B: {#C, #C}\n#C: {a: int}", 0},
	} {
		must(t, writeFile("p.cue", []byte("pipeline: {name: \"p\", nodes: a: {kind: \"sh\", labels: X}}\n"+c.x+"\n")))
		_, _, err := loadAll(s, "p.cue", Options{})
		switch {
		case c.line == 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.line > 0 && (err == nil || !strings.HasPrefix(err.Error(), "p.cue:1:") || !strings.Contains(err.Error(), "more than 1024 combinations of alternatives meet here")):
			t.Errorf("%s: %v", name, err)
		}
	}
}
