package tidy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	proof  = regexp.MustCompile(`^(Test|Fuzz|Benchmark)[A-Z]\w*(/[\w-]+)?$`)
	place  = regexp.MustCompile(`^(cmd|dag|docs|examples|internal|nodes|schemas|specs|testdata)(/[\w.*-]+)*/?$`)
	dotted = regexp.MustCompile(`^[A-Za-z_][\w.]*$`)
	word   = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// What ARCHITECTURE.md names is there: tests, scripts, paths and names of code.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests, scripts, words := named(t)
	for n, line := range strings.Split(string(text), "\n") {
		if len([]rune(line)) > 120 && !strings.HasPrefix(line, "|") {
			t.Errorf("ARCHITECTURE.md:%d: more than 120 columns", n+1)
		}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			switch name := m[1]; {
			case proof.MatchString(name):
				test, script, _ := strings.Cut(name, "/")
				if !tests[test] || script != "" && !scripts[script] {
					t.Errorf("ARCHITECTURE.md:%d: there is no test %s", n+1, name)
				}
			case place.MatchString(name):
				if found, err := filepath.Glob(filepath.Join(root, name)); err != nil || len(found) == 0 {
					t.Errorf("ARCHITECTURE.md:%d: there is no %s", n+1, name)
				}
			case dotted.MatchString(name):
				last := name[strings.LastIndexByte(name, '.')+1:]
				if !words[last] {
					t.Errorf("ARCHITECTURE.md:%d: nothing is named %s", n+1, name)
				}
			}
		}
	}
}

// named returns the functions of tests, the names of their scripts and cases, and all words of the sources and of the names
// of files.
func named(t *testing.T) (tests, scripts, words map[string]bool) {
	t.Helper()
	tests, scripts, words = map[string]bool{}, map[string]bool{}, map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "build") {
			return filepath.SkipDir
		}
		ext := filepath.Ext(path)
		if strings.Contains(path, "testdata/") && (ext == ".txt" || ext == ".txtar") {
			scripts[strings.TrimSuffix(d.Name(), ext)] = true
		}
		for _, w := range word.FindAllString(d.Name(), -1) {
			words[w] = true
		}
		if d.Name() != "Makefile" && ext != ".go" && ext != ".cue" && ext != ".tmpl" {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range function.FindAllSubmatch(b, -1) {
			tests[string(m[1])] = true
		}
		for _, w := range word.FindAll(b, -1) {
			words[string(w)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests, scripts, words
}
