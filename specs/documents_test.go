package specs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// documented holds docs/reference/documents.md to a run: every place that its rows name is there (K-2). Which rows are
// meant the first cell says, of which there are so many at least.
func documented(t *testing.T, s *site, first string, least int) {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/documents.md")
	if err != nil {
		t.Fatal(err)
	}
	p := places{s, map[string]any{}, map[string]string{}}
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for n, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.ReplaceAll(line, `\|`, "\x00"), " | ")
		if len(cells) != 3 || !regexp.MustCompile(`^\| `+first+`$`).MatchString(cells[0]) {
			continue
		}
		rows++
		where := strings.ReplaceAll(cells[2], "\x00", "|")
		found := 0
		for _, m := range quoted.FindAllStringSubmatch(where, -1) {
			if why, is := p.missing(m[1]); is {
				found++
				if why != "" {
					t.Errorf("documents.md:%d: %s: `%s` %s", n+1, strings.TrimSpace(cells[1]), m[1], why)
				}
			}
		}
		if found == 0 && !strings.HasPrefix(where, "not kept: ") {
			t.Errorf("documents.md:%d: %s has no place", n+1, strings.TrimSpace(cells[1]))
		}
	}
	if rows < least {
		t.Errorf("only %d rows were read", rows)
	}
}

// places looks up what the table names.
type places struct {
	*site
	read  map[string]any    // JSON files, and lists of the lines of logs
	shown map[string]string // output of commands
}

var testNames = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// missing says what is wrong with a place; false where a text is no place but a word of the sentence.
func (p places) missing(place string) (why string, is bool) {
	kind, what, has := strings.Cut(place, ": ")
	switch {
	case kind == "test":
		for _, pattern := range []string{"*_test.go", "../*/*_test.go", "../*/*/*_test.go", "../*/*/*/*_test.go"} {
			names, _ := filepath.Glob(pattern)
			for _, name := range names {
				b, _ := os.ReadFile(name)
				for _, m := range testNames.FindAllSubmatch(b, -1) {
					if string(m[1]) == what {
						return "", true
					}
				}
			}
		}
		return "names no test", true
	case kind == "event":
		return holdsIf(slices.ContainsFunc(p.events(), func(e record) bool { return e.Type == what })), true
	case strings.HasPrefix(kind, "dagrun ") && has:
		if _, ok := p.shown[kind]; !ok {
			args := strings.Fields(kind)[1:]
			if slices.Contains(args, "--help") || args[0] == "explain" {
				p.shown[kind] = (&site{t: p.t}).plain(args...)
			} else {
				p.shown[kind] = p.must(args...)
			}
		}
		return holdsIf(strings.Contains(p.shown[kind], what)), true
	case kind == "spec":
		for _, pattern := range []string{"corpus-integration/*.cue", "corpus-integration/templates/*", "../schemas/flow/*.cue"} {
			names, _ := filepath.Glob(pattern)
			for _, name := range names {
				if b, _ := os.ReadFile(name); strings.Contains(string(b), what) {
					return "", true
				}
			}
		}
		return "is not in the specification", true
	case !strings.ContainsAny(kind, "./") || strings.ContainsAny(kind, " ("):
		return "", false
	}
	names, _ := filepath.Glob(filepath.Join(p.out, "_orchestrator", kind))
	if len(names) == 0 {
		if !has && !strings.Contains(kind, "/") {
			return "", false
		}
		return "is no file of the run", true
	}
	if !has {
		return "", true
	}
	if strings.HasSuffix(kind, ".log") || strings.HasSuffix(kind, ".md") {
		b, err := os.ReadFile(names[0])
		return holdsIf(err == nil && regexp.MustCompile(`(?m)`+pattern(what)).Match(b)), true
	}
	path, want, _ := strings.Cut(what, "=")
	return holdsIf(in(p.json(names[0]), strings.Split(path, "."), want)), true
}

// pattern is a text of a log in which only digits and brackets escaped by a backslash are not meant literally.
func pattern(text string) string {
	if strings.Contains(text, `\`) {
		return text
	}
	return regexp.QuoteMeta(text)
}

func holdsIf(ok bool) string {
	if ok {
		return ""
	}
	return "is not there"
}

// json reads a file of JSON, or a log as the list of its lines.
func (p places) json(name string) any {
	if v, ok := p.read[name]; ok {
		return v
	}
	b, err := os.ReadFile(name)
	if err != nil {
		p.t.Fatal(err)
	}
	var v any
	if strings.HasSuffix(name, ".jsonl") {
		var list logLines
		for line := range strings.Lines(string(b)) {
			var one any
			if err := json.Unmarshal([]byte(line), &one); err != nil {
				p.t.Fatalf("%s: %v", name, err)
			}
			list = append(list, one)
		}
		v = list
	} else {
		read := json.Unmarshal
		if strings.HasSuffix(name, ".yaml") {
			read = yaml.Unmarshal
		}
		if err := read(b, &v); err != nil {
			p.t.Fatalf("%s: %v", name, err)
		}
	}
	p.read[name] = v
	return v
}

// logLines are the lines of a log.
type logLines []any

// in reports whether a value has what a path leads to, equal to want where that is not empty.
func in(v any, path []string, want string) bool {
	if len(path) == 0 {
		return want == "" || fmt.Sprint(v) == want
	}
	var next []any
	switch v := v.(type) {
	case logLines:
		return slices.ContainsFunc(v, func(line any) bool { return in(line, path, want) })
	case map[string]any:
		for name, x := range v {
			if path[0] == "*" || path[0] == name {
				next = append(next, x)
			}
		}
	case []any:
		if path[0] == "*" {
			next = v
		}
	}
	return slices.ContainsFunc(next, func(x any) bool { return in(x, path[1:], want) })
}
