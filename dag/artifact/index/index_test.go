package index

import (
	"slices"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
)

// folded applies bodies to an index of the plan a -> {b, c} -> d, with e beside all.
func folded(t *testing.T, bodies ...machine.Body) (*Index, *dag.Graph) {
	t.Helper()
	n := func(id string, needs ...string) dag.Node {
		return dag.Node{ID: id, Kind: "exec", Effect: "pure", Needs: needs}
	}
	g, err := dag.NewGraph(&dag.Plan{Format: dag.Format, Name: "p", Nodes: []dag.Node{n("a"), n("b", "a"), n("c", "a"), n("d", "b", "c"), n("e")}})
	if err != nil {
		t.Fatal(err)
	}
	x := New()
	for i, b := range bodies {
		e := machine.New(time.Unix(1700000000, 0), b)
		e.Seq = int64(i + 1)
		x.Apply(&e, g)
	}
	return x, g
}

func started(node string) machine.Body {
	return &machine.StartedBody{Node: node, Generation: 1, Attempt: 1}
}

func ends(node string, status dag.Status) machine.Body {
	return &machine.FinishedBody{Node: node, Generation: 1, Attempt: 1, Status: status}
}

func wrote(node, name, digest string, entry bool) machine.Body {
	return &machine.ArtifactWrittenBody{Node: node, Generation: 1, Attempt: 1, Name: name, Path: name, Digest: digest, Entry: entry}
}

func digests(list []Version) (ds []string) {
	for _, v := range list {
		ds = append(ds, v.Digest)
	}
	return ds
}

// §13.14: a reader sees the entries of its ancestors in plan order, whatever the order in time; those
// of attempts under way or lost are nobody's, those of failed ones count.
func TestEntriesOfAncestorsInPlanOrder(t *testing.T) {
	x, g := folded(t,
		started("a"), wrote("a", "notes", "a1", true), wrote("a", "notes", "a2", true), ends("a", dag.StatusCompleted),
		started("c"), started("b"), started("e"),
		wrote("c", "notes", "c1", true), ends("c", dag.StatusFailed),
		wrote("e", "notes", "e1", true), ends("e", dag.StatusCompleted),
		wrote("b", "notes", "b1", true),
	)
	if got := digests(x.Entries(g, "d", "notes")); !slices.Equal(got, []string{"a1", "a2", "c1"}) {
		t.Errorf("while b runs: %v", got)
	}
	e := machine.New(time.Unix(1700000000, 0), ends("b", dag.StatusCompleted))
	x.Apply(&e, g)
	for reader, want := range map[string][]string{
		"d": {"a1", "a2", "b1", "c1"}, "b": {"a1", "a2"}, "c": {"a1", "a2"}, "a": nil, "e": nil, "": {"a1", "a2", "b1", "c1", "e1"}, "nobody": nil,
	} {
		if got := digests(x.Entries(g, reader, "notes")); !slices.Equal(got, want) {
			t.Errorf("%q sees %v, want %v", reader, got, want)
		}
	}
	x, g = folded(t, started("a"), wrote("a", "notes", "a1", true), ends("a", dag.StatusLost))
	if got := x.Entries(g, "d", "notes"); len(got) != 0 {
		t.Errorf("of a lost attempt: %v", got)
	}
}

// S-3: readers see the last version written by an ancestor, an edit in its writer's place, and what became of it.
func TestVersionThatANodeSees(t *testing.T) {
	before := []machine.Body{started("a"), wrote("a", "page", "1", false), ends("a", dag.StatusCompleted)}
	second := &machine.ArtifactWrittenBody{Node: "b", Generation: 1, Attempt: 1, Name: "page", Path: "page", Digest: "2", Previous: "1"}
	salvaged := &machine.FinishedBody{Node: "b", Generation: 1, Attempt: 1, Status: dag.StatusFailed, Final: true, Salvaged: []string{"page"}}
	edit := &machine.ArtifactWrittenBody{Name: "page", Path: "page", Digest: "edited", Previous: "1", Why: "user-edit"}
	for _, c := range []struct {
		name   string
		more   []machine.Body
		sees   map[string]string
		live   string
		anyone string // what a reader without ancestors sees
	}{
		{"written", nil, map[string]string{"b": "1", "d": "1"}, "1", ""},
		{"under way", []machine.Body{started("b"), second}, map[string]string{"c": "1", "d": "1"}, "2", ""},
		{"by a later one", []machine.Body{started("b"), second, ends("b", dag.StatusCompleted)}, map[string]string{"c": "1", "d": "2"}, "2", ""},
		{"by a failed one", []machine.Body{started("b"), second, ends("b", dag.StatusFailed)}, map[string]string{"d": "1"}, "1", ""},
		{"of what failed, salvaged", []machine.Body{started("b"), second, salvaged}, map[string]string{"c": "1", "d": "2"}, "2", ""},
		{"and tried once more", []machine.Body{started("b"), second, salvaged, &machine.StartedBody{Node: "b", Generation: 1, Attempt: 2}},
			map[string]string{"d": "1"}, "2", ""},
		{"edited", []machine.Body{edit}, map[string]string{"b": "edited", "d": "edited"}, "edited", ""},
		{"sent back", []machine.Body{&machine.RewoundBody{To: "a", Nodes: []string{"a"}}}, map[string]string{"d": ""}, "1", ""},
	} {
		x, g := folded(t, append(slices.Clone(before), c.more...)...)
		for reader, want := range c.sees {
			if v, _ := x.Visible(g, reader, "page"); v.Digest != want {
				t.Errorf("%s: %s sees %q, want %q", c.name, reader, v.Digest, want)
			}
		}
		if v, _ := x.Visible(g, "e", "page"); v.Digest != c.anyone {
			t.Errorf("%s: e sees %q", c.name, v.Digest)
		}
		if live, _ := x.Live("page"); live != c.live {
			t.Errorf("%s: live %q, want %q", c.name, live, c.live)
		}
	}
	// A file that was there before any node wrote it is everybody's.
	x, g := folded(t, &machine.ArtifactWrittenBody{Name: "page", Path: "page", Digest: "0", Why: "user-edit"})
	if v, _ := x.Visible(g, "e", "page"); v.Digest != "0" {
		t.Errorf("e sees %q", v.Digest)
	}
}

// An index comes back from a snapshot as it was.
func TestIndexComesBack(t *testing.T) {
	x, _ := folded(t, started("a"), wrote("a", "page", "1", false), wrote("a", "notes", "2", true), ends("a", dag.StatusCompleted), &machine.CheckpointBody{ID: "cp", Node: "a"})
	raw, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(raw, &machine.State{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := back.Encode()
	if err != nil || string(again) != string(raw) {
		t.Errorf("%v\n%s\n%s", err, raw, again)
	}
}

// S-2: a node's versions come back in the order in which they were written, whatever artifacts were there before.
func TestVersionsComeBackInOrder(t *testing.T) {
	x, g := folded(t, started("a"), wrote("a", "one", "1", false), wrote("a", "two", "1", false), ends("a", dag.StatusCompleted),
		started("b"), wrote("b", "two", "2", false), wrote("b", "one", "2", false))
	e := machine.New(time.Unix(1700000000, 0), ends("b", dag.StatusCompleted))
	x.Apply(&e, g)
	raw, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(raw, &machine.State{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []*Index{x, back} {
		if list := x.WrittenBy("b", 1, Valid); len(list) != 2 || list[0].Path != list[1].Path && list[0].Seq > list[1].Seq {
			t.Errorf("%+v", list)
		}
	}
}
