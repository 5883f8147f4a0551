package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"dagrun.dev/dag/machine"
)

// What an attempt receives outlives the process that made it until its end is recorded, and belongs to
// that attempt alone (S-5, S-12).
func TestSpool(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, Command: "test"}
	r, err := Create(o, New{Graph: pages(t, nil), Seed: 1, File: inputs})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if _, err := r.Record(now, &machine.StartedBody{Node: "b1", Generation: 1, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	under, ended := Attempt{Node: "b1", Generation: 1, Attempt: 1}, Attempt{Node: "b1", Generation: 1, Attempt: 2}
	for _, a := range []Attempt{under, ended} {
		folder, err := r.Spool(a)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "stdout"), []byte("answer"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, _, err = Open(o); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Spooled(ended) != "" {
		t.Error("the folder of an attempt that is not under way is still there")
	}
	if b, err := os.ReadFile(filepath.Join(r.Spooled(under), "stdout")); err != nil || string(b) != "answer" {
		t.Errorf("%q %v", b, err)
	}
	var asked []Attempt
	err = r.Resume(now, "test", func(node string, generation, attempt int) (*machine.FinishedBody, error) {
		asked = append(asked, Attempt{Node: node, Generation: generation, Attempt: attempt})
		return nil, nil
	})
	if err != nil || len(asked) != 1 || asked[0] != under {
		t.Errorf("asked for %v, %v", asked, err)
	}
	if r.Spooled(under) != "" {
		t.Error("the folder is there after the attempt's end was recorded")
	}
}
