package tidy

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// open are the rows of the requirements that nothing carries out, by letter and number: telemetry that is delivered
// somewhere, and a run on several machines. Their ids stand in no test, this one included: whoever looks for rows without
// a test finds them.
var open = map[string]int{"V": 3, "B": 12}

// rows are all rows of the requirements.
func rows() (list []string) {
	for prefix, last := range map[string]int{
		"A": 6, "B": 14, "C": 13, "D": 5, "K": 5, "L": 10, "M": 7, "P": 15, "R": 8, "S": 12, "T": 5, "V": 4, "W": 11,
	} {
		for i := 1; i <= last; i++ {
			list = append(list, fmt.Sprintf("%s-%d", prefix, i))
		}
	}
	slices.Sort(list)
	return list
}

// Every row of the requirements is named by the test that proves it, and no open one by a test that cannot.
func TestEveryRowIsProven(t *testing.T) {
	row := regexp.MustCompile(`\b[A-Z]-\d+\b`)
	named := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "build") {
				return filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, ".txtar") || strings.HasSuffix(path, "ledger_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, id := range row.FindAllString(string(b), -1) {
			named[id] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range rows() {
		letter, number, _ := strings.Cut(id, "-")
		if named[id] == (fmt.Sprint(open[letter]) == number) {
			t.Errorf("row %s: named by a test: %v", id, named[id])
		}
	}
}

// The README's commands exist: make targets and subcommands that it shows.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := regexp.MustCompile(`(?m)^make ([a-z-]+)|`+"`make ([a-z-]+)`").FindAllStringSubmatch(string(readme), -1)
	if len(targets) < 2 {
		t.Errorf("the README names %d make targets, want at least two", len(targets))
	}
	for _, m := range targets {
		name := m[1] + m[2]
		if !regexp.MustCompile(`(?m)^` + name + `:`).Match(makefile) {
			t.Errorf("the README says make %s; the Makefile has no such target", name)
		}
	}
	for _, m := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(readme), -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("the README links to %s: %v", m[1], err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(root, "LICENSE")); err != nil || !strings.Contains(string(b), "MIT License") {
		t.Errorf("LICENSE: want the MIT licence, got error %v", err)
	}
}
