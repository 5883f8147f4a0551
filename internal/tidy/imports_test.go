package tidy

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// A rule says what the packages under a path may import beside the standard library.
type rule struct {
	pkg    string   // import path; a trailing /... covers what is below
	may    []string // allowed imports outside the standard library, same notation
	reason string
}

// rules is a statement of policy, the first match counts. If a change needs another line here, talk
// about the structure first.
var rules = []rule{
	{"dagrun.dev/dag", []string{"dagrun.dev/internal/glob", "dagrun.dev/internal/number", "github.com/go-json-experiment/json/..."}, "the plan is data: anything may import it, so it imports nothing but how names match, numbers are kept and JSON is read"},
	{"dagrun.dev/dag/reuse", []string{"dagrun.dev/dag"}, "what an edit invalidates can be read alone"},
	{"dagrun.dev/dag/machine", []string{"dagrun.dev/dag", "dagrun.dev/dag/reuse"}, "the machine is pure and must fit into any host"},
	{"dagrun.dev/dag/attempt", []string{"dagrun.dev/dag", "dagrun.dev/dag/expr", "dagrun.dev/dag/machine", "dagrun.dev/nodes", "dagrun.dev/internal/..."}, "an attempt may be carried out where there is no run, no state and no loop"},
	{"dagrun.dev/dag/compile/schema", []string{"cuelang.org/go/cue/...", "dagrun.dev/internal/regular", "dagrun.dev/internal/rules", "dagrun.dev/internal/tree", "dagrun.dev/nodes", "dagrun.dev/schemas"}, "the format knows no specification"},
	{"dagrun.dev/dag/compile/source", []string{"cuelang.org/go/...", "dagrun.dev/dag/compile/schema", "dagrun.dev/internal/...", "dagrun.dev/nodes", "golang.org/x/sys/unix"}, "what a specification says is known without plans"},
	{"dagrun.dev/dag/expr", []string{"dagrun.dev/dag", "dagrun.dev/internal/...", "dagrun.dev/nodes", "github.com/google/cel-go/...", "google.golang.org/protobuf/..."}, "CEL stays behind one package"},
	{"dagrun.dev/nodes", nil, "kinds know nothing of graph, log or state"},
	{"dagrun.dev/nodes/all", []string{"dagrun.dev/nodes/..."}, "the one visible list of kinds"},
	{"dagrun.dev/nodes/...", []string{"dagrun.dev/nodes/...", "dagrun.dev/internal/...", "dagrun.dev/schemas/...", "github.com/chromedp/...", "github.com/hashicorp/go-retryablehttp", "github.com/go-json-experiment/json/...", "github.com/tdewolff/parse/v2/...", "github.com/yuin/goldmark/...", "golang.org/x/...", "gopkg.in/yaml.v3"}, "kinds know nothing of graph, log or state"},
	{"dagrun.dev/internal/folder", nil, "a folder is data, whoever walks it"},
	{"dagrun.dev/internal/glob", nil, "names are matched the same everywhere"},
	{"dagrun.dev/internal/number", nil, "a number is kept the same everywhere"},
	{"dagrun.dev/internal/rules", []string{"dagrun.dev/internal/tree"}, "rules are data, used by the compiler and by kinds"},
	{"dagrun.dev/internal/tree", []string{"dagrun.dev/internal/number", "github.com/go-json-experiment/json/jsontext"}, "data with positions"},
}

// only names packages that exactly one package may import.
var only = map[string]string{
	"cuelang.org/go/":              "dagrun.dev/dag/compile/", // schema and source; not the package that makes plans
	"github.com/google/cel-go/":    "dagrun.dev/dag/expr",
	"github.com/sony/gobreaker/v2": "dagrun.dev/dag/executor",
	"github.com/chromedp/":         "dagrun.dev/nodes/",
	"github.com/spf13/cobra":       "dagrun.dev/internal/cli",
	"github.com/tdewolff/parse/":   "dagrun.dev/nodes/validate",
	"github.com/yuin/goldmark":     "dagrun.dev/nodes/internal/markdown",
	"gopkg.in/yaml.v3":             "dagrun.dev/internal/yamltree",
}

func TestImports(t *testing.T) { // D-3: each library does its own job, behind one package
	for pkg, imports := range allImports(t) {
		for _, imp := range imports {
			if strings.HasPrefix(imp, "dagrun.dev/") || strings.Contains(strings.Split(imp, "/")[0], ".") {
				checkRule(t, pkg, imp)
			}
			for lib, owner := range only {
				if strings.HasPrefix(imp, lib) && !strings.HasPrefix(pkg, owner) && pkg != "dagrun.dev/internal/testing/mutate" { // which only parses
					t.Errorf("%s imports %s; only %s may", pkg, imp, owner)
				}
			}
		}
	}
}

func checkRule(t *testing.T, pkg, imp string) {
	t.Helper()
	for _, r := range rules {
		if !matches(r.pkg, pkg) {
			continue
		}
		for _, m := range r.may {
			if matches(m, imp) {
				return
			}
		}
		t.Errorf("%s imports %s: %s", pkg, imp, r.reason)
		return
	}
}

func matches(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return pattern == path
}

// allImports returns the imports of every package's non-test files, by import path.
func allImports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		pkg := "dagrun.dev"
		if dir := filepath.ToSlash(filepath.Dir(file)); dir != "." {
			pkg += "/" + dir
		}
		for _, imp := range f.Imports {
			out[pkg] = append(out[pkg], strings.Trim(imp.Path.Value, `"`))
		}
	}
	for _, l := range out {
		sort.Strings(l)
	}
	return out
}
