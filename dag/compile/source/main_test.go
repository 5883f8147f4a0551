package source

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// TestMain lets the test binary be its own child, as the program is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ChildCommand {
		os.Exit(Child(os.Stdin, os.Stdout, testRegistry))
	}
	os.Exit(m.Run())
}

var testRegistry = nodes.NewRegistry(
	testKind("exec", "package spec\n#Exec: {run?: string}\n"),
	testKind("sh", "package spec\n#Sh: {cmd?: string}\n"))

// testKind is a kind of node with a schema and nothing else.
func testKind(name, schema string) nodes.Kind {
	return nodes.Kind{Name: name, Schema: schema, Parse: func(json.RawMessage) (nodes.Settings, error) { return nothing{}, nil }}
}

type nothing struct{}

func (nothing) Traits() nodes.Traits                                    { return nodes.Traits{Effect: "pure"} }
func (nothing) Run(context.Context, *nodes.Task) (*nodes.Result, error) { panic("not run") }

func testSchema(t testing.TB) *schema.Schema {
	t.Helper()
	s, err := schema.For(testRegistry)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// loadAll reads a specification and holds it against the rules.
func loadAll(s *schema.Schema, path string, o Options) (*tree.Value, Source, error) {
	out, err := Load(s, path, o)
	if err != nil {
		return nil, out.Source, err
	}
	mistakes, _ := s.Rule("Pipeline").CheckTemplates(out.Tree, "")
	if mistakes = append(out.Faults, mistakes...); len(mistakes) > 0 {
		return nil, out.Source, mistakes
	}
	return out.Tree, out.Source, nil
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
