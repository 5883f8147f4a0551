package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// What became of a change.
const (
	noticed  = "noticed" // a test failed
	refused  = "refused" // what was changed is no specification any more
	invalid  = "invalid" // it does not compile, so it is no change to look at
	survived = "survived"
)

// A result is what became of a change, and of which files that is true.
type result struct {
	What   string
	By     string // the test that noticed
	Digest string
}

// results are kept from one call to the next, in a file that may be deleted.
type results struct {
	file string
	lock sync.Mutex
	all  map[string]result
}

func openResults() (*results, error) {
	r := &results{file: filepath.Join("build", "mutate", "results.json"), all: map[string]result{}}
	b, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, os.MkdirAll(filepath.Dir(r.file), 0o755)
	}
	if err != nil {
		return nil, err
	}
	return r, json.Unmarshal(b, &r.all)
}

func (r *results) get(tests []string, m mutant, changed []byte) (result, bool) {
	known, ok := r.all[m.name]
	return known, ok && known.Digest == digest(tests, changed, known.By)
}

func (r *results) put(name string, what result) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.all[name] = what
	b, err := json.MarshalIndent(r.all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(r.file, b, 0o644)
}

// digest names what a result depends on: the changed file, and the file of the test that noticed, or else all tests.
func digest(tests []string, changed []byte, by string) string {
	h := sha256.New()
	h.Write(changed)
	for _, pattern := range tests {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err == nil && (by == "" || bytes.Contains(src, []byte("func "+by+"("))) {
				h.Write(src)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
