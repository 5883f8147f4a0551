// Package specs_test holds the pipelines of this folder to what they promise: golden plans and
// graphs, edits that change the plan and no Go, whole offline runs. It tests nothing of the
// program that its own packages can test.
package specs_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/compile"
	"dagrun.dev/internal/testing/program"
	"dagrun.dev/nodes/all"
)

var update = flag.Bool("update", false, "write the golden files anew; read the diff")

const corpus = "corpus-integration"

var kinds = all.Registry()

// compiled compiles a specification of a folder with parameters set.
func compiled(t *testing.T, path string, set ...string) *compile.Result {
	t.Helper()
	res, err := compile.Compile(compile.Options{Path: path, Set: set, Kinds: kinds})
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return res
}

// base is the plan of the pipeline as it stands.
var base = sync.OnceValues(func() (*compile.Result, error) {
	return compile.Compile(compile.Options{Path: filepath.Join(corpus, "spec.cue"), Kinds: kinds})
})

func basePlan(t *testing.T) *compile.Result {
	t.Helper()
	res, err := base()
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// edit copies the pipeline's folder, changes spec.cue and returns the new spec's path.
func edit(t *testing.T, change func(spec string) string) string {
	t.Helper()
	return editFile(t, "spec.cue", change)
}

// editYAML is edit for spec.yaml.
func editYAML(t *testing.T, change func(spec string) string) string {
	t.Helper()
	return editFile(t, "spec.yaml", change)
}

func editFile(t *testing.T, file string, change func(spec string) string) string {
	t.Helper()
	return editIn(t, corpus, file, change)
}

// editIn copies a folder, changes one of its files and returns the path of the copy.
func editIn(t *testing.T, folder, file string, change func(spec string) string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, file)
	rewrite(t, name, change)
	return name
}

// rewrite changes a file.
func rewrite(t *testing.T, name string, change func(spec string) string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	after := change(string(b))
	if after == string(b) {
		t.Fatal("the edit changed nothing")
	}
	if err := os.WriteFile(name, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// replaced replaces one occurrence, which must be there.
func replaced(old, new string) func(string) string {
	return func(spec string) string {
		if !strings.Contains(spec, old) {
			panic(fmt.Sprintf("nothing to replace: %q", old))
		}
		return strings.Replace(spec, old, new, 1)
	}
}

var subsetBlock = regexp.MustCompile(`(?s)\t\{name: "S\d".*?\n\t\]\},\n`)

// subsetsInOrder keeps the subsets with these numbers, from 1, in this order.
func subsetsInOrder(numbers ...int) func(string) string {
	return func(spec string) string {
		blocks := subsetBlock.FindAllString(spec, -1)
		i := strings.Index(spec, blocks[0])
		all := strings.Join(blocks, "")
		var kept strings.Builder
		for _, n := range numbers {
			kept.WriteString(blocks[n-1])
		}
		return spec[:i] + kept.String() + spec[i+len(all):]
	}
}

func node(t *testing.T, p *dag.Plan, id string) *dag.Node {
	t.Helper()
	for i := range p.Nodes {
		if p.Nodes[i].ID == id {
			return &p.Nodes[i]
		}
	}
	t.Fatalf("no node %s in the plan", id)
	return nil
}

// having returns the nodes whose label has the value, in plan order.
func having(p *dag.Plan, label, value string) []*dag.Node {
	var out []*dag.Node
	for i := range p.Nodes {
		if p.Nodes[i].Labels[label] == value {
			out = append(out, &p.Nodes[i])
		}
	}
	return out
}

func TestMain(m *testing.M) {
	program.Main(m, func() {
		if root, err := sharedRuns(); err == nil {
			os.RemoveAll(root)
		}
	})
}

// ends runs a command that is to end with a status.
func (s *site) ends(status int, args ...string) string {
	s.t.Helper()
	out, err := s.dagrun(nil, args...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == status || err == nil && status == 0 {
		return out
	}
	s.t.Fatalf("dagrun %s: %v, want status %d\n%s", strings.Join(args, " "), err, status, tail(out))
	return ""
}
