package tidy

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write shape.txt anew where numbers have fallen, and for new packages")

// shapes are the numbers of shape.txt, by package.
const shapes = "shape.txt"

// A shape is what a package asks of those who read it.
type shape struct {
	exported int // names that others may use: types, functions, constants, variables
	circles  int // references from one file to another from which a way leads back
	wide     int // lines of more than 120 columns

	where []string // these are
}

// widest is how many columns a line may have; a tab counts as one.
const widest = 120

// A package is bounded by its ideas, not by the lines of its files: by the names it exports, by its imports (see rules),
// and by files that can be read in an order. -update lowers the numbers of shape.txt where they have fallen, and enters a new
// package with what it has. Who must raise one does so by hand, with the reason in the commit.
func TestShapes(t *testing.T) {
	now, before := packageShapes(t), readShapes(t)
	for _, pkg := range slices.Sorted(maps.Keys(now)) {
		has := now[pkg]
		had, known := before[pkg]
		if !known {
			if !*update {
				t.Errorf("%s is not in %s: go test ./internal/tidy -update", pkg, shapes)
			}
			continue
		}
		for _, n := range []struct {
			what     string
			has, had int
			ask      string
		}{
			{"exported names", has.exported, had.exported, "does it hold one idea?"},
			{"references on circles between its files", has.circles, had.circles, "which file comes first?"},
			{"lines of more than 120 columns", has.wide, had.wide, strings.Join(has.where, ", ")},
		} {
			if n.has > n.had {
				t.Errorf("%s has %d %s, %d before: %s (who must, raises the number in internal/tidy/%s, and says why in the commit)",
					pkg, n.has, n.what, n.had, n.ask, shapes)
			}
		}
		now[pkg] = shape{exported: min(has.exported, had.exported), circles: min(has.circles, had.circles), wide: min(has.wide, had.wide)}
	}
	if *update {
		writeShapes(t, now)
	}
}

// packageShapes measures the packages, tests apart.
func packageShapes(t *testing.T) map[string]shape {
	t.Helper()
	packages := map[string][]*ast.File{}
	out := map[string]shape{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, b, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.ToSlash(filepath.Dir(file))
		packages[dir] = append(packages[dir], f)
		s := out[dir]
		for n, line := range bytes.Split(b, []byte("\n")) {
			if utf8.RuneCount(line) > widest {
				s.wide++
				s.where = append(s.where, fmt.Sprintf("%s:%d", file, n+1))
			}
		}
		for name := range declaredIn(f) {
			if ast.IsExported(name) {
				s.exported++
			}
		}
		out[dir] = s
	}
	for dir, files := range packages {
		s := out[dir]
		s.circles = circles(files)
		out[dir] = s
	}
	return out
}

// declaredIn are the names of a package that a file declares: at its top, and methods, as ".name".
func declaredIn(f *ast.File) map[string]bool {
	out := map[string]bool{}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				out[d.Name.Name] = true
			} else {
				out["."+d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					out[spec.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						out[n.Name] = true
					}
				}
			}
		}
	}
	return out
}

// circles counts the names of another file that a file uses where a way of such uses leads back to it. Methods are told
// by name alone, and only where one file declares it.
func circles(files []*ast.File) int {
	home := map[string]int{} // of each name; -1 where several files declare it
	for i, f := range files {
		for name := range declaredIn(f) {
			if _, twice := home[name]; twice {
				home[name] = -1
			} else {
				home[name] = i
			}
		}
	}
	uses := make([][]int, len(files)) // of the names of each other file
	for i, f := range files {
		uses[i] = make([]int, len(files))
		seen := map[string]bool{}
		use := func(name string) {
			if at, ok := home[name]; ok && at >= 0 && at != i && !seen[name] {
				seen[name] = true
				uses[i][at]++
			}
		}
		for _, id := range f.Unresolved { // neither local nor of this file
			use(id.Name)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				use("." + sel.Sel.Name)
			}
			return true
		})
	}
	leads := make([][]bool, len(files))
	for i := range leads {
		leads[i] = make([]bool, len(files))
		for j := range leads[i] {
			leads[i][j] = uses[i][j] > 0
		}
	}
	for k := range files {
		for i := range files {
			for j := range files {
				leads[i][j] = leads[i][j] || leads[i][k] && leads[k][j]
			}
		}
	}
	n := 0
	for i := range files {
		for j := range files {
			if leads[j][i] {
				n += uses[i][j]
			}
		}
	}
	return n
}

func readShapes(t *testing.T) map[string]shape {
	t.Helper()
	b, err := os.ReadFile(shapes)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]shape{}
	for in := bufio.NewScanner(bytes.NewReader(b)); in.Scan(); {
		if strings.HasPrefix(in.Text(), "#") {
			continue
		}
		var pkg string
		var s shape
		if _, err := fmt.Sscan(in.Text(), &pkg, &s.exported, &s.circles, &s.wide); err != nil {
			t.Fatalf("%s: %q: %v", shapes, in.Text(), err)
		}
		out[pkg] = s
	}
	return out
}

func writeShapes(t *testing.T, all map[string]shape) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# What each package may have at the most (shape_test.go): exported names, references on circles between its files,\n")
	b.WriteString("# lines of more than 120 columns. go test ./internal/tidy -update lowers them; whoever must raise one does so by\n")
	b.WriteString("# hand, and says why in the commit.\n")
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%-40s %4d %4d %4d\n", pkg, all[pkg].exported, all[pkg].circles, all[pkg].wide)
	}
	if err := os.WriteFile(shapes, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
