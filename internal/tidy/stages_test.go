package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// raced says of packages that start goroutines and are not in RACED why that is, or what is raced of them.
var raced = map[string]string{
	"dag/compile/source":        "the tests SideBySide of dag/compile are",
	"internal/cli":              "scripts with a raced program are",
	"internal/testing/bench":    "a measurement",
	"internal/testing/nodetest": "runs within the tests of kinds, which are",
}

// makeVar returns a variable of the Makefile, lines that go on joined.
func makeVar(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + ` := (.*)$`).FindStringSubmatch(strings.ReplaceAll(string(b), "\\\n", " "))
	if m == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return m[1]
}

// The stages leave nothing out: what the race stage skips is named, exists, and is run whole by the unit stage; packages
// that start goroutines are raced; and no test makes itself shorter without a word.
func TestStagesLeaveNothingOut(t *testing.T) {
	inRace := func(dir string) bool {
		for _, pattern := range strings.Fields(makeVar(t, "RACED")) {
			base := strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "/...")
			if dir == base || strings.HasPrefix(dir, base+"/") {
				return true
			}
		}
		return false
	}
	for _, pattern := range append(strings.Fields(makeVar(t, "RACED")), strings.Fields(makeVar(t, "SIDE_BY_SIDE"))...) {
		if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(pattern, "/..."))); err != nil {
			t.Errorf("the Makefile's race stage names a package that is not there: %v", err)
		}
	}
	names := regexp.MustCompile(`^\^Test\(([\w|]*)\)\$\$((?:\|\^Test\w+\$\$/\^\w+\$\$)*)$`).FindStringSubmatch(makeVar(t, "UNRACED"))
	if names == nil {
		t.Fatalf("UNRACED is %s, want ^Test(A|B|C)$$|^TestD$$/^a_case_of_it$$", makeVar(t, "UNRACED"))
	}
	skipped := map[string]bool{}
	for _, name := range strings.Split(names[1], "|") {
		skipped["Test"+name] = false
	}
	for _, one := range regexp.MustCompile(`\^(Test\w+)\$\$/`).FindAllStringSubmatch(names[2], -1) {
		skipped[one[1]] = false
	}
	for _, file := range goFiles(t) {
		dir, test := filepath.Dir(file), strings.HasSuffix(file, "_test.go")
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if _, ok := skipped[n.Name.Name]; ok && test && inRace(dir) {
					skipped[n.Name.Name] = true
				}
			case *ast.GoStmt:
				if !test && !inRace(dir) && raced[dir] == "" {
					t.Errorf("%s starts a goroutine: put its package into RACED in the Makefile", file)
				}
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "testing" && n.Sel.Name == "Short" {
					t.Errorf("%s makes tests shorter where nobody sees it: name them in UNRACED", file)
				}
			}
			return true
		})
	}
	for name, found := range skipped {
		if !found {
			t.Errorf("UNRACED names %s, which no package of RACED has", name)
		}
	}
	scripts := regexp.MustCompile(`^\^TestScripts\$\$/\^\((.*)\)\$\$$`).FindStringSubmatch(makeVar(t, "SCRIPTS"))
	if scripts == nil {
		t.Fatalf("SCRIPTS is %s", makeVar(t, "SCRIPTS"))
	}
	for _, name := range strings.Split(scripts[1], "|") {
		if _, err := os.Stat(filepath.Join(root, "internal/cli/testdata/script", name+".txtar")); err != nil {
			t.Error(err)
		}
	}
}
