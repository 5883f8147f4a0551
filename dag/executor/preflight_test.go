package executor

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/dag/reuse"
	"dagrun.dev/nodes"
)

// careful are settings that name what they need.
type careful struct {
	*play
	name   string
	looked *[]string
}

func (c *careful) Needs() []nodes.Need {
	name := c.name
	return []nodes.Need{{Name: name, Later: strings.HasPrefix(name, "later"),
		Find: func(_ context.Context, m nodes.Machine) (string, []string, error) {
			*c.looked = append(*c.looked, name)
			if err := os.WriteFile(filepath.Join(m.Scratch, "x"), nil, 0o600); err != nil {
				return "", nil, err
			}
			if strings.Contains(name, "bad") {
				return "", nil, errors.New("no\n" + name)
			}
			return name, []string{"slow"}, nil
		}}}
}

// W-8, P-2: each thing that is needed is looked for once, before anything starts; what an earlier node may make is
// a warning, all that is missing is said at once, with its nodes, and what does not run needs nothing.
func TestPreflight(t *testing.T) {
	need := func(id, what string, needs ...string) dag.Node {
		return dag.Node{ID: id, Kind: "play", Effect: "pure", Needs: needs, With: json.RawMessage(`"` + what + `"`)}
	}
	g, err := dag.NewGraph(&dag.Plan{Name: "p", Nodes: []dag.Node{
		need("a", "tool"), need("b", "tool"), need("c", "bad"), need("d", "bad", "a"), need("e", "later bad"),
		need("f", "later bad 2", "a"), need("g", "bad 2"),
		{ID: "h", Kind: "none", Undo: &dag.Undo{Kind: "play", With: json.RawMessage(`"undo"`)}},
		{ID: "i", Kind: "none", Foreach: &dag.Foreach{Template: json.RawMessage(`{"kind": "play", "with": "item"}`)}},
		{ID: "j", Kind: "none", Secrets: []string{"key"}, When: "false"}, need("k", "bad"),
		{ID: "l", Kind: "play", With: json.RawMessage(`"bad"`), Undo: &dag.Undo{Kind: "play", With: json.RawMessage(`"bad"`)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var looked []string
	kind := nodes.Kind{Name: "play", Parse: func(with json.RawMessage) (nodes.Settings, error) {
		c := &careful{play: &play{}, looked: &looked}
		return c, json.Unmarshal(with, &c.name)
	}}
	d := reuse.Fresh(g)
	part := reuse.Part{Selection: dag.Selection{Only: []string{"a", "b", "c", "d", "e", "f", "h", "i", "j", "k", "l"}}}
	if err := part.Take(nil, d); err != nil {
		t.Fatal(err)
	}
	secret := func(name string) (string, error) { return "", errors.New(name + " is not set") }
	dir := t.TempDir()
	r := Preflight(context.Background(), d, nodes.NewRegistry(kind), nodes.Machine{Secret: secret}, filepath.Join(dir, "not/yet"))
	if got := strings.Join(looked, ", "); got != "tool, bad, later bad, later bad 2, undo, item" {
		t.Errorf("looked for %s", got)
	}
	if got := strings.Join(r.Problems, "; "); got != `no bad (needed by c, d, k and 1 more); no later bad (needed by e); `+
		`key is not set (needed by j)` {
		t.Errorf("missing: %s", got)
	}
	if got := strings.Join(r.Warnings, "; "); !strings.Contains(got, "a node before may make it (needed by f)") {
		t.Errorf("warnings: %s", got)
	}
	if got := strings.Join(r.Found, ", "); !strings.HasPrefix(got, "tool, undo, item") {
		t.Errorf("found: %s", got)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
