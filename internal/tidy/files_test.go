package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
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

// Every package says in its comment what it is for.
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
	}
	for dir, ok := range has {
		if !ok {
			t.Errorf("%s: no package comment of a sentence or more", dir)
		}
	}
}

// The core takes time as an argument, starts no goroutine and draws no random number; what it needs
// from outside is an event.
func TestCoreIsPure(t *testing.T) {
	forbidden := map[string]string{
		"os": "no IO", "io/fs": "no IO", "net": "no IO", "net/http": "no IO", "os/exec": "no IO", "syscall": "no IO",
		"math/rand": "no random source", "math/rand/v2": "no random source", "crypto/rand": "no random source",
		"sync": "one goroutine owns the state", "log": "errors are returned", "context": "no waiting",
	}
	for _, file := range goFiles(t) {
		dir := filepath.Dir(file)
		if dir != "dag" && dir != "dag/reuse" && dir != "dag/machine" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, filepath.Join(root, file), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imp := range f.Imports {
			why := forbidden[strings.Trim(imp.Path.Value, `"`)]
			if dir == "dag" && imp.Path.Value == `"sync"` {
				why = "" // plans and graphs are read from any goroutine, and share what is built once
			}
			if why != "" {
				t.Errorf("%s imports %s: %s", file, imp.Path.Value, why)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: starts a goroutine", fset.Position(n.Pos()))
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if ok && x.Name == "time" && (n.Sel.Name == "Now" || n.Sel.Name == "Since" || n.Sel.Name == "Until" || n.Sel.Name == "Sleep" || n.Sel.Name == "After" || n.Sel.Name == "NewTimer") {
					t.Errorf("%s: reads the clock", fset.Position(n.Pos()))
				}
			}
			return true
		})
	}
}
