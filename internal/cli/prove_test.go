package cli

import (
	"os"
	"path/filepath"
	"testing"

	"dagrun.dev/dag/run"
)

// What fails while another tick takes the place of the one that verify looks at is looked at again; what fails of one
// that stays is not, nor is it without end.
func TestVerifyBesideTicks(t *testing.T) {
	for _, c := range []struct{ replaced, calls, wrong int }{{0, 1, 1}, {1, 2, 0}, {100, 5, 1}} {
		log, calls := filepath.Join(t.TempDir(), "log"), 0
		if err := os.WriteFile(log, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		_, wrong, err := undisturbed(log, func() ([]run.Check, error) {
			if calls++; calls <= c.replaced {
				if err := os.WriteFile(log+"-new", nil, 0o600); err != nil {
					t.Fatal(err)
				}
				return []run.Check{{Pass: true}, {}}, os.Rename(log+"-new", log)
			}
			return []run.Check{{Pass: c.wrong == 0}}, nil
		})
		if calls != c.calls || wrong != c.wrong || err != nil {
			t.Errorf("replaced %d times: %d looks, %d wrong, %v; want %d, %d", c.replaced, calls, wrong, err, c.calls, c.wrong)
		}
	}
}
