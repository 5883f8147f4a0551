package run

import (
	"slices"
	"testing"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/internal/testing/disktest"
)

// S-6, S-12: a process that adopts a changed plan dies, or the power fails, at every step of it, with an attempt
// of the dead process before still open. The next one goes on under the old plan or the new one: what the change does not
// touch stays, and both end with the page and the notes.
func TestCrashWhileAdopting(t *testing.T) {
	changed := pages(t, func(p *dag.Plan) { node(p, "b3").With = []byte(`{"argv":["build","-v"]}`) })
	at := start0.Add(time.Hour)
	adopt := func(n int) (*disktest.Mem, int) {
		m := interrupted(t, "b2", "published")
		hook := disktest.CrashAt(n)
		if n == 0 {
			hook = nil
		}
		f, fsys := disktest.NewFaulty(m.FS(), hook)
		r, _, err := Open(memOptions(fsys))
		if err != nil {
			return m, f.Steps()
		}
		if _, err = r.Adopt(at, changed, inputs, nil); err == nil {
			err = r.Resume(at, "apply", nil)
		}
		if n == 0 && err != nil {
			t.Fatal(err)
		}
		r.Abandon()
		return m, f.Steps()
	}
	_, steps := adopt(0)
	if steps < 10 {
		t.Fatalf("adopting takes %d steps", steps)
	}
	for n := 1; n <= steps; n++ {
		m, _ := adopt(n)
		for _, c := range []struct {
			name  string
			after *disktest.Mem
		}{{"killed, the new plan", m.Kill()}, {"killed, its own plan", m.Kill()}, {"power lost, the new plan", m.PowerLoss(nil)}, {"power lost, its own plan", m.PowerLoss(nil)}} {
			r, rep, err := Open(memOptions(c.after.FS()))
			if err != nil || len(rep.Edited) > 0 {
				t.Fatalf("step %d of %d, %s: %v %+v", n, steps, c.name, err, rep)
			}
			if c.name == "killed, the new plan" || c.name == "power lost, the new plan" {
				if _, err := r.Adopt(at, changed, inputs, nil); err != nil {
					t.Fatalf("step %d of %d, %s: %v", n, steps, c.name, err)
				}
			}
			w := finish(t, r, c.after.FS())
			if slices.Contains(w.ran, "b1") || !slices.Contains(w.ran, "b3") {
				t.Fatalf("step %d of %d, %s: ran %v", n, steps, c.name, w.ran)
			}
			if got := contents(t, c.after.FS()); got != wantPages {
				t.Fatalf("step %d of %d, %s: got\n%s", n, steps, c.name, got)
			}
			verified(t, c.after.FS(), c.name)
		}
	}
}
