// Package statedir keeps what outlives a run on this machine: how long nodes took and cost, and the
// state of named breakers.
//
// Nothing in it is needed for correctness: a missing or unreadable file is an empty one.
package statedir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
)

// A Dir is the state directory. All methods may be called from any goroutine and by several
// processes at once.
type Dir struct{ dir string }

// Open uses dir, or when empty $XDG_STATE_HOME/dagrun, or ~/.local/state/dagrun. It is made on the
// first write.
func Open(dir string) (*Dir, error) {
	if dir == "" {
		base := os.Getenv("XDG_STATE_HOME")
		if !filepath.IsAbs(base) { // relative ones are to be ignored, says the convention
			home, err := os.UserHomeDir()
			if err != nil {
				return nil, errors.New("no state directory: set XDG_STATE_HOME or name one with --state-dir")
			}
			base = filepath.Join(home, ".local", "state")
		}
		dir = filepath.Join(base, "dagrun")
	}
	dir, err := filepath.Abs(dir)
	return &Dir{dir}, err
}

// Path returns the directory.
func (d *Dir) Path() string { return d.dir }

// A Sample is what one completed attempt took.
type Sample struct {
	Seconds float64 `json:"seconds"`
	USD     dag.USD `json:"usd,omitzero"`
	Tokens  int64   `json:"tokens,omitempty"`
}

// Kept is how many samples of a node are kept.
const Kept = 8

// History returns the samples of a pipeline's nodes by id, newest first, at most 8 a node.
func (d *Dir) History(pipeline string) (map[string][]Sample, error) {
	h := map[string][]Sample{}
	return h, d.load("history", pipeline, &h)
}

// AddHistory adds samples, one a node.
func (d *Dir) AddHistory(pipeline string, samples map[string]Sample) error {
	if len(samples) == 0 {
		return nil
	}
	h := map[string][]Sample{}
	return d.change("history", pipeline, &h, func() bool {
		for id, s := range samples {
			list := append([]Sample{s}, h[id]...)
			h[id] = list[:min(len(list), Kept)]
		}
		return true
	})
}

// A Breaker is the kept state of a named breaker.
type Breaker struct {
	State   string         `json:"state"`
	Until   time.Time      `json:"until,omitzero"`
	Counts  machine.Counts `json:"counts,omitzero"`
	Updated time.Time      `json:"updated"`
}

// Breaker returns the state kept under a key (breaker name and provider base URL).
func (d *Dir) Breaker(key string) (Breaker, bool, error) {
	var b Breaker
	err := d.load("breakers", key, &b)
	return b, b.State != "", err
}

// SetBreaker keeps the state of a breaker, unless a later one is kept already.
func (d *Dir) SetBreaker(key string, b Breaker) error {
	var have Breaker
	return d.change("breakers", key, &have, func() bool {
		if have.Updated.After(b.Updated) {
			return false
		}
		have = b
		return true
	})
}

// load reads one file into v, leaving v as it is when there is none that can be read.
func (d *Dir) load(kind, key string, v any) error {
	b, err := os.ReadFile(filepath.Join(d.dir, kind, fileName(key)))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	var f file
	if json.Unmarshal(b, &f) != nil || f.Key != key {
		return nil
	}
	_ = json.Unmarshal(f.Value, v) // of another version: as if there were none
	return nil
}

// A file names its key in full, for the reader and because names are shortened.
type file struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

// change reads, changes and replaces one file under a lock against other processes.
func (d *Dir) change(kind, key string, v any, edit func() bool) error {
	dir := filepath.Join(d.dir, kind)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fsys, err := disk.Open(dir)
	if err != nil {
		return err
	}
	defer fsys.Close()
	lock, err := fsys.OpenFile(".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := lock.Lock(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err := d.load(kind, key, v); err != nil || !edit() {
		return err
	}
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b, err := json.Marshal(file{key, value})
	if err != nil {
		return err
	}
	return disk.WriteFile(fsys, fileName(key), append(b, '\n'))
}

// fileName makes a file name of a key: its letters and digits, and enough of its hash to be unique.
func fileName(key string) string {
	safe := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '-'
	}, key)
	sum := sha256.Sum256([]byte(key))
	return safe[:min(len(safe), 80)] + "-" + hex.EncodeToString(sum[:6]) + ".json"
}
