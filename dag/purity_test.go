package dag_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// forbidden says what the core must not import, and why.
var forbidden = map[string]string{
	"os":           "the core touches no files",
	"io/fs":        "the core touches no files",
	"net":          "the core does no IO",
	"net/http":     "the core does no IO",
	"os/exec":      "the core runs nothing",
	"syscall":      "the core does no IO",
	"context":      "the core waits for nothing",
	"log":          "errors are returned, not logged",
	"log/slog":     "errors are returned, not logged",
	"math/rand":    "randomness comes from the run's seed",
	"math/rand/v2": "randomness comes from the run's seed",
	"crypto/rand":  "randomness comes from the run's seed",
	"unsafe":       "nothing here needs it",
	"sync":         "the machine belongs to one goroutine",
	"sync/atomic":  "the machine belongs to one goroutine",
}

// pure are the packages beside the standard library that the core is made of. These two are to become encoding/json/v2 and
// encoding/json/jsontext: they read and write JSON texts in memory and do nothing else.
var pure = map[string]bool{"dagrun.dev/dag": true, "dagrun.dev/dag/reuse": true, "dagrun.dev/internal/glob": true,
	"dagrun.dev/internal/number": true, "github.com/go-json-experiment/json": true, "github.com/go-json-experiment/json/jsontext": true}

// clock are the functions of package time that read the clock or wait.
var clock = map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true, "NewTimer": true,
	"NewTicker": true, "Tick": true}

// TestCoreIsPure: packages dag, reuse and machine read no clock, draw no random number, start no goroutine
// and let no order of a map be seen: the same events give the same state and the same commands, everywhere.
func TestCoreIsPure(t *testing.T) {
	for _, dir := range []string{".", "reuse", "machine"} {
		checkPure(t, dir)
	}
}

func checkPure(t *testing.T, dir string) {
	fset := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatal(dir, err)
	}
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		for _, imp := range f.Imports {
			path, _ := strconv.Unquote(imp.Path.Value)
			if path == "sync" && dir == "." {
				continue // plans and graphs are read from any goroutine, and share what is built once
			}
			if why := forbidden[path]; why != "" {
				t.Errorf("%s imports %s: %s", name, path, why)
			}
			if strings.Contains(path, ".") && !pure[path] {
				t.Errorf("%s imports %s: the core imports the standard library and its own, so that it runs inside any host", name, path)
			}
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	if _, err := conf.Check(dir, fset, files, info); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		for _, decl := range f.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s starts a goroutine: order would depend on the scheduler", fset.Position(n.Pos()))
				case *ast.SelectStmt:
					t.Errorf("%s selects: order would depend on the scheduler", fset.Position(n.Pos()))
				case *ast.SelectorExpr:
					if obj := info.Uses[n.Sel]; obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "time" && clock[obj.Name()] {
						if _, method := obj.Type().(*types.Signature); method && obj.Type().(*types.Signature).Recv() == nil {
							t.Errorf("%s uses time.%s: time comes in as an argument", fset.Position(n.Pos()), obj.Name())
						}
					}
				case *ast.RangeStmt:
					if _, ok := info.Types[n.X].Type.Underlying().(*types.Map); ok {
						t.Errorf("%s ranges over a map: the order differs from run to run", fset.Position(n.Pos()))
					}
				}
				return true
			})
		}
	}
}
