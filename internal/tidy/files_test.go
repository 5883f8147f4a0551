package tidy

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// goFiles returns all Go files of the main module, relative to the root.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() {
			switch {
			case rel == "build", rel == "internal/tools", rel == "dag/temporal", d.Name() == "testdata", d.Name() == "node_modules":
				return filepath.SkipDir // other modules, build results, inputs of tests
			case rel != "." && strings.HasPrefix(d.Name(), "."):
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(rel, ".go") {
			files = append(files, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found only %d Go files from %s", len(files), root)
	}
	return files
}

// Every package says in its comment what it is for, and where to read: the files that it names are there.
func TestPackageComments(t *testing.T) {
	has := map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(file)
		has[dir] = has[dir] || f.Doc != nil && len(f.Doc.Text()) > 40
		for _, name := range regexp.MustCompile(`\w+\.go\b`).FindAllString(f.Doc.Text(), -1) {
			if _, err := os.Stat(filepath.Join(root, dir, name)); err != nil {
				t.Errorf("%s: the package comment names %s, which is not there", file, name)
			}
		}
	}
	for dir, ok := range has {
		if !ok {
			t.Errorf("%s: no package comment of a sentence or more", dir)
		}
	}
}
