package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
)

// What became of a change.
const (
	noticed  = "noticed" // a test failed
	refused  = "refused" // what was changed is no specification any more
	hangs    = "hangs"   // a test came to no end twice, the second time with nothing beside it
	invalid  = "invalid" // it does not compile, so it is no change to look at
	survived = "survived"
)

// A result is what became of a change, and of which files that is true.
type result struct {
	What   string
	By     string // the test that noticed
	Digest string
}

// results are kept from one call to the next, in a file that may be deleted: a line each, of which the last of a name
// counts, so that a call that is stopped at any moment loses nothing.
type results struct {
	file *os.File
	lock sync.Mutex
	all  map[string]result
}

// A line of the file.
type line struct {
	Name string
	result
}

func openResults() (*results, error) {
	name := filepath.Join("build", "mutate", "results.ndjson")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	r := &results{file: file, all: map[string]result{}}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) == nil { // and was not cut off
			r.all[l.Name] = l.result
		}
	}
	return r, lines.Err()
}

func (r *results) get(tests []string, m mutant, changed []byte) (result, bool) {
	known, ok := r.all[m.name]
	return known, ok && known.Digest == digest(tests, changed, known.By)
}

func (r *results) put(name string, what result) error {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.all[name] = what
	b, err := json.Marshal(line{name, what})
	if err != nil {
		return err
	}
	_, err = r.file.WriteString("\n" + string(b)) // behind what was cut off, if anything was
	return err
}

// digest names what a result depends on: the changed file, and the test that noticed, or else all tests.
func digest(tests []string, changed []byte, by string) string {
	h := sha256.New()
	h.Write(changed)
	for _, pattern := range tests {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			src, _ := os.ReadFile(file)
			if by != "" {
				_, src, _ = bytes.Cut(src, []byte("func "+by+"("))
				src, _, _ = bytes.Cut(src, []byte("\n}\n"))
			}
			h.Write(src)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
