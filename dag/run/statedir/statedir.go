// Package statedir keeps what outlives a run on this machine: how long nodes took and cost, the
// state of named breakers, and which saved plans were applied.
//
// No run needs any of it to go on: a missing or unreadable file is an empty one.
package statedir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dagrun.dev/dag"
	"dagrun.dev/dag/machine"
	"dagrun.dev/internal/disk"
	"dagrun.dev/internal/regular"
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
	kept, err := load[map[string]series](d, "history", pipeline)
	if err != nil {
		return nil, err
	}
	h := make(map[string][]Sample, len(kept))
	for id, rows := range kept {
		h[id] = rows.samples()
	}
	return h, nil
}

// AddHistory adds samples, one a node.
func (d *Dir) AddHistory(pipeline string, samples map[string]Sample) error {
	if len(samples) == 0 {
		return nil
	}
	return change(d, "history", pipeline, func(h *map[string]series) bool {
		if *h == nil {
			*h = make(map[string]series, len(samples))
		}
		for id, s := range samples {
			(*h)[id] = (*h)[id].add(s)
		}
		return true
	})
}

// A series is the samples of one node as they are kept: up to three rows, newest first, of seconds,
// of millionths of a dollar and of tokens. Zeros at the end of a row are left out, and empty rows
// at the end. History is read and written whole: this is a quarter of an object a sample.
type series [][]float64

func (rows series) add(s Sample) series {
	for i, v := range [3]float64{s.Seconds, float64(s.USD), float64(s.Tokens)} {
		if i == len(rows) {
			rows = append(rows, nil)
		}
		row := append([]float64{v}, rows[i]...)
		row = row[:min(len(row), Kept)]
		for i > 0 && len(row) > 0 && row[len(row)-1] == 0 {
			row = row[:len(row)-1]
		}
		rows[i] = row
	}
	for len(rows) > 1 && len(rows[len(rows)-1]) == 0 {
		rows = rows[:len(rows)-1]
	}
	return rows
}

func (rows series) samples() []Sample {
	if len(rows) == 0 || len(rows) > 3 {
		return nil
	}
	list := make([]Sample, len(rows[0]))
	for k, row := range rows {
		for i, v := range row[:min(len(row), len(list))] {
			switch k {
			case 0:
				list[i].Seconds = v
			case 1:
				list[i].USD = dag.USD(v)
			case 2:
				list[i].Tokens = int64(v)
			}
		}
	}
	return list
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
	b, err := load[Breaker](d, "breakers", key)
	return b, b.State != "", err
}

// SetBreaker keeps the state of a breaker, unless a later one is kept already.
func (d *Dir) SetBreaker(key string, b Breaker) error {
	return change(d, "breakers", key, func(have *Breaker) bool {
		if have.Updated.After(b.Updated) {
			return false
		}
		*have = b
		return true
	})
}

// A UsedPlan is what is remembered of a saved plan that was applied.
type UsedPlan struct {
	Dir  string    `json:"dir"` // absolute, of the run
	Time time.Time `json:"time"`
	// Recorded: the run holds the fact. Before that the plan may be applied to the same directory once more, because the
	// process may have died in between.
	Recorded bool `json:"recorded,omitempty"`
}

// UsePlan remembers that the saved plan of an id is applied. Where it was before, to another directory or for good,
// nothing changes and earlier says so; it is nil otherwise.
func (d *Dir) UsePlan(id string, use UsedPlan) (earlier *UsedPlan, err error) {
	err = change(d, "plans", id, func(have *UsedPlan) bool {
		if have.Recorded || have.Dir != "" && have.Dir != use.Dir {
			earlier = have
			return false
		}
		*have = use
		return true
	})
	return earlier, err
}

// A file names its key in full, for the reader and because names are shortened.
type file[T any] struct {
	Key   string `json:"key"`
	Value T      `json:"value"`
}

// mostFile is far above what any of the files holds, in bytes.
const mostFile = 1 << 30

// load reads one file; the zero value when there is none that can be read, or it is another key's or
// version's.
func load[T any](d *Dir, kind, key string) (v T, err error) {
	b, err := regular.Read(filepath.Join(d.dir, kind, fileName(key)), mostFile)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	var f file[T]
	if json.Unmarshal(b, &f) != nil || f.Key != key {
		return v, nil
	}
	return f.Value, nil
}

// change reads, changes and replaces one file under a lock against other processes.
func change[T any](d *Dir, kind, key string, edit func(*T) bool) error {
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
	v, err := load[T](d, kind, key)
	if err != nil || !edit(&v) {
		return err
	}
	b, err := json.Marshal(file[T]{key, v})
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

// places are the directories of runs, the one begun or carried on last in front.
type places []string

// mostPlaces bounds how many are remembered.
const mostPlaces = 200

// AddPlace remembers the directory of a run.
func (d *Dir) AddPlace(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return change(d, "places", "runs", func(list *places) bool {
		if len(*list) > 0 && (*list)[0] == dir {
			return false
		}
		rest := slices.DeleteFunc(*list, func(p string) bool { return p == dir })
		*list = append(places{dir}, rest[:min(len(rest), mostPlaces-1)]...)
		return true
	})
}

// Places returns the directories of the runs that were begun or carried on, the last first. They need not exist any
// more.
func (d *Dir) Places() ([]string, error) {
	list, err := load[places](d, "places", "runs")
	return list, err
}
