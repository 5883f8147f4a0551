package executor

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dagrun.dev/dag"
	"dagrun.dev/nodes"
)

// careful is a kind that looks at the machine first.
type careful struct {
	*play
	asked [][]json.RawMessage
}

func (c *careful) Preflight(_ context.Context, with []json.RawMessage, specDir, scratch string) ([]string, error) {
	c.asked = append(c.asked, with)
	if err := os.WriteFile(filepath.Join(scratch, "x"), nil, 0o600); err != nil {
		return nil, err
	}
	if strings.Contains(string(with[0]), "fail") {
		return []string{"slow"}, nodes.Fail("config", "nothing to see with")
	}
	return []string{"slow"}, nil
}

// P-2, P-4: a kind is asked once, for the nodes that have still to run, before anything starts.
func TestPreflight(t *testing.T) {
	onStage(t, &dag.Plan{Nodes: []dag.Node{
		{ID: "a", With: script("ok")},
		{ID: "b", Needs: []string{"a"}, With: script("ok")},
	}}, func(s *stage) {
		c := &careful{play: s.play}
		kinds := nodes.NewRegistry(c)
		r := s.open()
		said, err := Preflight(context.Background(), r, nil, kinds, s.dir, s.t.TempDir())
		if err != nil || len(said) != 1 || len(c.asked) != 1 || len(c.asked[0]) != 2 {
			t.Errorf("asked %s: %q, %v", c.asked, said, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		s.carryOn()
		r = s.open()
		defer r.Close()
		if _, err := Preflight(context.Background(), r, nil, kinds, s.dir, s.t.TempDir()); err != nil || len(c.asked) != 1 {
			t.Errorf("asked %s again although all has ended: %v", c.asked, err)
		}
	})
	onStage(t, &dag.Plan{Nodes: []dag.Node{{ID: "b", With: script("fail:refused")}}}, func(s *stage) {
		r := s.open()
		defer r.Close()
		said, err := Preflight(context.Background(), r, nil, nodes.NewRegistry(&careful{play: s.play}), s.dir, s.t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "nothing to see with") || len(said) != 1 {
			t.Errorf("%q, %v", said, err)
		}
	})
}
