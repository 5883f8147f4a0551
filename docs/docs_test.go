// Package docs_test does what the pages say, as a reader would: it types their commands, saves their files, and compares
// what comes.
package docs_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "dagrun.dev/internal/cli" // so that a result of this test is forgotten when the program changes
	"dagrun.dev/internal/testing/program"
)

var update = flag.Bool("update", false, "put what commands print into the pages; read the diff")

func TestMain(m *testing.M) { program.Main(m) }

// pages are all pages, and the README, relative to this folder.
func pages(t *testing.T) (names []string) {
	for _, pattern := range []string{"../README.md", "*.md", "*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	return names
}

// A page is played from its top in an empty folder. Its blocks say what they are behind the word for the language:
//
//	yaml save=spec.yaml     the reader saves this
//	yaml shows=spec.yaml    the file that is there has these lines
//	console                 what is typed (behind "$ "), and all that comes, times and ids aside; "..." is any lines
func TestPages(t *testing.T) {
	played := 0
	for _, name := range pages(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile("(?m)^```\\w+ (save|shows)=|^```console$").Match(text) || strings.HasPrefix(name, "..") {
			continue
		}
		played++
		t.Run(strings.TrimSuffix(name, ".md"), func(t *testing.T) {
			t.Parallel()
			p := player{t: t, dir: t.TempDir()}
			if after := p.play(string(text)); *update && after != string(text) {
				if err := os.WriteFile(name, []byte(after), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if played == 0 {
		t.Error("no page has commands")
	}
}

type player struct {
	t   *testing.T
	dir string
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)(?: (save|shows)=(\\S+))?\\n(.*?)^```$")

// play carries out a page and returns it with what its commands print now.
func (p *player) play(text string) string {
	var out strings.Builder
	at := 0
	for _, m := range fence.FindAllStringSubmatchIndex(text, -1) {
		sub := func(n int) string {
			if m[2*n] < 0 {
				return ""
			}
			return text[m[2*n]:m[2*n+1]]
		}
		out.WriteString(text[at:m[8]])
		body := sub(4)
		line := 1 + strings.Count(text[:m[0]], "\n")
		file := filepath.Join(p.dir, sub(3))
		switch {
		case sub(2) == "save":
			p.check(os.MkdirAll(filepath.Dir(file), 0o755))
			p.check(os.WriteFile(file, []byte(body), 0o644))
		case sub(2) == "shows":
			if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), body) {
				p.t.Errorf("line %d: %s has not these lines (%v); it is\n%s", line, sub(3), err, content)
			}
		case sub(1) == "console":
			body = p.console(body, line)
		}
		out.WriteString(body)
		at = m[9]
	}
	return out.String() + text[at:]
}

func (p *player) check(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// console types the commands of a block and compares what comes.
func (p *player) console(body string, line int) string {
	var out strings.Builder
	for _, part := range strings.Split("\n"+body, "\n$ ")[1:] {
		command, want, _ := strings.Cut(part, "\n")
		for strings.HasSuffix(command, "\\") {
			var next string
			next, want, _ = strings.Cut(want, "\n")
			command += "\n" + next
		}
		want = strings.TrimSuffix(want, "\n")
		got := p.run(command)
		if !matches(plain(got), plain(want)) {
			p.t.Errorf("line %d: $ %s\nprints\n%s\nand not\n%s", line, command, got, want)
			if *update && !strings.Contains("\n"+want+"\n", "\n...\n") {
				want = got
			}
		}
		out.WriteString("$ " + command + "\n")
		if want != "" {
			out.WriteString(want + "\n")
		}
	}
	return out.String()
}

// run types a command as in a terminal: what goes to stderr comes too.
func (p *player) run(command string) string {
	c := exec.Command("bash", "-c", command)
	c.Dir = p.dir
	c.Env = []string{"PATH=" + program.Folder(p.t) + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + p.dir,
		"XDG_STATE_HOME=" + filepath.Join(p.dir, ".state"), "LC_ALL=C.UTF-8"}
	got, _ := c.CombinedOutput() // a status other than 0 shows in what is printed
	return strings.TrimSuffix(string(got), "\n")
}

// variable is what differs from one run to the next.
var variable = []struct {
	re *regexp.Regexp
	as string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?( ?[A-Z]+|[+-]\d\d:\d\d)?`), "INSTANT"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d [A-Z]+`), "INSTANT"},
	{regexp.MustCompile(`\b[0-9a-f]{12,64}\b`), "DIGEST"},
	{regexp.MustCompile(`process \d+`), "process N"},
	{regexp.MustCompile(`\d+ at once`), "N at once"},
	{regexp.MustCompile(`[\d.]+ .iB free`), "ROOM free"},
	{regexp.MustCompile(`/usr/bin/`), "/bin/"},
	{regexp.MustCompile(`<?\b(\d+(\.\d+)?(ms|s|m|h))+\b`), "TIME"},
	{regexp.MustCompile(`INSTANT \(TIME ago\)`), "INSTANT"}, // is said once a minute has passed
	{regexp.MustCompile(` +`), " "},
}

func plain(text string) []string {
	for _, v := range variable {
		text = v.re.ReplaceAllString(text, v.as)
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// matches compares line by line; "..." stands for any lines.
func matches(got, want []string) bool {
	i := slices.Index(want, "...")
	if i < 0 {
		return slices.Equal(got, want)
	}
	if len(got) < i || !slices.Equal(got[:i], want[:i]) {
		return false
	}
	for rest := got[i:]; ; rest = rest[1:] {
		if matches(rest, want[i+1:]) {
			return true
		}
		if len(rest) == 0 {
			return false
		}
	}
}

// Every page is linked from the index, directly or by one that is, and every link leads somewhere.
func TestLinks(t *testing.T) {
	reached := map[string]bool{}
	var follow func(page string)
	follow = func(page string) {
		if reached[page] {
			return
		}
		reached[page] = true
		text, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			return
		}
		for _, m := range regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]*))?\)`).FindAllStringSubmatch(string(text), -1) {
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			content, err := os.ReadFile(to)
			if fi, e := os.Stat(to); e == nil && fi.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
				continue
			}
			if m[2] != "" && !slices.Contains(anchors(string(content)), m[2]) {
				t.Errorf("%s: %s has no heading #%s", page, to, m[2])
			}
			if strings.HasSuffix(to, ".md") && !strings.HasPrefix(to, "..") {
				follow(to)
			}
		}
	}
	follow("README.md")
	for _, page := range pages(t) {
		if !strings.HasPrefix(page, "..") && !reached[page] {
			t.Errorf("no link leads to %s", page)
		}
	}
}

// anchors are what links may end in, as GitHub makes them of headings.
func anchors(page string) (out []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}

// Every command and flag that a page names exists.
func TestCommandsExist(t *testing.T) {
	help := map[string]string{}
	n := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`dagrun ([a-z]+)([^`]*)`").FindAllStringSubmatch(string(text), -1) {
			if _, asked := help[m[1]]; !asked {
				out, err := exec.Command(filepath.Join(program.Folder(t), "dagrun"), m[1], "--help").CombinedOutput()
				if help[m[1]] = string(out); err != nil {
					t.Errorf("%s: dagrun %s: %s", page, m[1], out)
				}
			}
			for _, f := range regexp.MustCompile(`--[a-z-]+`).FindAllString(m[2], -1) {
				if n++; !strings.Contains(help[m[1]], f) {
					t.Errorf("%s: `dagrun %s%s`: there is no flag %s", page, m[1], m[2], f)
				}
			}
		}
	}
	if n < 10 {
		t.Error(fmt.Sprint("only ", n, " flags looked at"))
	}
}
