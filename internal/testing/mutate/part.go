package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A part is what is changed, and the tests that should notice.
type part struct {
	name   string
	folder string
	files  []string // patterns within the folder
	find   func(file string, src []byte) ([]mutant, error)
	tests  []string // patterns of the files that hold the tests
	quick  bool     // only tests that take no time: what survives them is not tried yet
	// ready prepares so many places for trying in a folder that is empty, and returns what tries a change there.
	ready func(p *part, dir string, places int) ([]trial, error)
}

// A trial makes a change and says what the tests print, and whether they failed. It gives them so many times the time
// that they can need.
type trial func(m mutant, changed []byte, patience int) (out string, failed bool, err error)

func (p *part) mutants() (all []mutant, err error) {
	for _, pattern := range p.files {
		names, err := filepath.Glob(filepath.Join(p.folder, pattern))
		if err != nil || len(names) == 0 {
			return nil, fmt.Errorf("there is no %s in %s (run it in the root of the project): %w", pattern, p.folder, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			src, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			found, err := p.find(name, src)
			if err != nil {
				return nil, err
			}
			all = append(all, named(name, src, found)...)
		}
	}
	return all, nil
}

// A tried change is one with what became of it.
type tried struct {
	mutant
	changed []byte
	result  result
	known   bool
}

func (p *part) tryAll(
	all, chosen []mutant, until time.Time, places int, accepted []acceptance, known *results,
) (int, error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	total := len(chosen)
	chosen = slices.DeleteFunc(chosen, func(m mutant) bool {
		return slices.ContainsFunc(accepted, func(a acceptance) bool { return a.name != m.name && a.holds(m.name) })
	})
	start, list, anew := time.Now(), make([]tried, len(chosen)), make(chan *tried, len(chosen))
	for i, m := range chosen {
		src, err := os.ReadFile(m.file)
		if err != nil {
			return 0, err
		}
		t := &list[i]
		*t = tried{mutant: m, changed: slices.Concat(src[:m.from], []byte(m.text), src[m.to:])}
		if t.result, t.known = known.get(p.tests, m, t.changed); !t.known {
			anew <- t
		}
	}
	close(anew)
	survivors, count := 0, map[string]int{"anew": len(anew)}
	if len(anew) > 0 && time.Now().Before(until) {
		tries, err := p.ready(p, dir, places)
		if err != nil {
			return 0, err
		}
		same, err := os.ReadFile(chosen[0].file)
		if err != nil {
			return 0, err
		}
		if out, failed, err := tries[0](mutant{file: chosen[0].file}, same, 1); err != nil || failed {
			return 0, fmt.Errorf("the tests fail without a change: %w\n%s", err, out)
		}
		var group sync.WaitGroup
		var alone sync.RWMutex
		errs := make([]error, len(tries))
		for i, try := range tries {
			group.Go(func() {
				for t := range anew {
					if errs[i] == nil && time.Now().Before(until) {
						errs[i] = t.find(p, try, known, &alone)
					}
				}
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return 0, err
		}
	}
	for _, t := range list {
		if !t.known {
			count["not tried"]++
			continue
		}
		count[t.result.What]++
		at := slices.IndexFunc(accepted, func(a acceptance) bool { return a.holds(t.name) })
		if t.result.What == hangs {
			fmt.Printf("hangs %s\n", t.name)
		}
		switch {
		case at >= 0 && t.result.What != survived && accepted[at].name == t.name:
			fmt.Printf("accepted.txt: this change is noticed, by %s: %s\n", t.result.By, t.name)
			survivors++
		case t.result.What == survived && at >= 0:
			count["accepted"]++
		case t.result.What == survived:
			fmt.Printf("survived %s (line %d)\n", t.name, 1+bytes.Count(t.changed[:t.from], []byte("\n")))
			survivors++
		}
	}
	fmt.Printf("%s: %d of %d changes: %d left out, %d noticed by tests, %d hang, %d refused, %d do not compile, ",
		p.name, total, len(all), total-len(chosen), count[noticed], count[hangs], count[refused], count[invalid])
	fmt.Printf("%d survived (%d of them accepted), %d are not tried yet; tried %d in %s\n", count[survived],
		count["accepted"], count["not tried"], count["anew"]-count["not tried"], time.Since(start).Round(time.Second))
	return survivors, nil
}

var (
	failedTest = regexp.MustCompile(`(?m)^--- FAIL: (Test\w+)`)
	buildFails = regexp.MustCompile(`(?m)\[(build|setup) failed\]$`)
	noSpec     = regexp.MustCompile(`\bspec\.cue:\d+:\d+: |reference "[^"]+" not found`)
	noEnd      = regexp.MustCompile(`(?m)^panic: test timed|^SIGXCPU|out of memory|cannot allocate|nothing within`)
)

// find tries a change and keeps what became of it. One whose tests came to no end is tried again with nothing beside it
// and more patience, because only then that says something of the change.
func (t *tried) find(p *part, try trial, r *results, alone *sync.RWMutex) error {
	alone.RLock()
	out, failed, err := try(t.mutant, t.changed, 1)
	alone.RUnlock()
	if err == nil && noEnd.MatchString(out) {
		alone.Lock()
		out, failed, err = try(t.mutant, t.changed, 3)
		alone.Unlock()
	}
	if err != nil {
		return err
	}
	t.known, t.result = true, result{What: survived}
	if failed {
		t.result.What = noticed
		if test := failedTest.FindStringSubmatch(out); test != nil {
			t.result.By = test[1]
		}
		switch {
		case buildFails.MatchString(out):
			t.result.What = invalid
		case noSpec.MatchString(out):
			t.result.What = refused
		case noEnd.MatchString(out):
			t.result.What = hangs
		}
	}
	if p.quick && t.result.What == survived {
		fmt.Printf("survived the quick tests: %s\n", t.name)
		t.known = false
		return nil
	}
	t.result.Digest = digest(p.tests, t.changed, t.result.By)
	return r.put(t.name, t.result)
}
