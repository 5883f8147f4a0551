package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A part is what is changed, and the tests that should notice.
type part struct {
	name   string
	folder string
	files  []string // patterns within the folder
	find   func(file string, src []byte) ([]mutant, error)
	tests  []string // patterns of the files that hold the tests
	late   string   // tests that compile the specification anew: tried with what no other has noticed
	// ready prepares a place for trying, returns what tries a change there, and what clears the place.
	ready func(p *part) (try trial, done func(), err error)
}

// A trial makes a change and says what the tests print, and whether they failed.
type trial func(m mutant, changed []byte) (out string, failed bool, err error)

func parts() []*part {
	const spec = "specs/corpus-integration"
	plan := []string{"specs/helpers_test.go"}
	for _, name := range []string{"layout", "shipped", "hardening", "decisions", "prompts", "answers"} {
		plan = append(plan, "specs/"+name+"_test.go")
	}
	return []*part{
		{name: "spec", folder: spec, files: []string{"spec.cue"}, find: cueMutants, ready: copied,
			tests: append(plan, "specs/edits_test.go"), late: "Parameters"},
		{name: "templates", folder: spec, files: []string{"templates/*.md"}, find: textMutants, ready: copied, tests: plan},
		{name: "gates", folder: spec, files: []string{"gates/*.js"}, find: scriptMutants, ready: copied,
			tests: []string{"specs/helpers_test.go", "specs/gates_test.go"}},
		{name: "machine", folder: "dag/machine", files: []string{"*.go"}, find: goMutants, ready: overlaid,
			tests: []string{"dag/machine/*_test.go", "internal/testing/dagtest/*.go"}},
	}
}

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

func (p *part) tryAll(chosen []mutant, total int, until time.Time, accepted []acceptance, results *results) (survivors int, err error) {
	var try trial
	done := func() {}
	defer func() { done() }()
	count, tried, start := map[string]int{}, 0, time.Now()
	for _, m := range chosen {
		src, err := os.ReadFile(m.file)
		if err != nil {
			return 0, err
		}
		changed := slices.Concat(src[:m.from], []byte(m.text), src[m.to:])
		r, known := results.get(p.tests, m, changed)
		if !known && time.Now().After(until) {
			count["not tried"]++
			continue
		}
		if !known {
			if try == nil {
				if try, done, err = p.ready(p); err != nil {
					return 0, err
				}
			}
			out, failed, err := try(m, changed)
			if err != nil {
				return 0, err
			}
			tried++
			if r, err = results.put(p.tests, m, changed, out, failed); err != nil {
				return 0, err
			}
		}
		count[r.What]++
		at := slices.IndexFunc(accepted, func(a acceptance) bool { return a.holds(m.name) })
		switch {
		case at >= 0 && r.What != survived && accepted[at].name == m.name:
			fmt.Printf("accepted.txt: this change is noticed, by %s: %s\n", r.By, m.name)
			survivors++
		case r.What == survived && at >= 0:
			count["accepted"]++
		case r.What == survived:
			fmt.Printf("survived %s (line %d)\n", m.name, 1+strings.Count(string(src[:m.from]), "\n"))
			survivors++
		}
	}
	fmt.Printf("%s: %d of %d changes: %d noticed by tests, %d refused, %d do not compile, %d survived (%d of them accepted), ",
		p.name, len(chosen), total, count[noticed], count[refused], count[invalid], count[survived], count["accepted"])
	fmt.Printf("%d are not tried yet; tried %d in %s\n", count["not tried"], tried, time.Since(start).Round(time.Second))
	return survivors, nil
}

// copied tries changes of a specification in a copy of its folder, with the tests of p.tests.
func copied(p *part) (trial, func(), error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, nil, err
	}
	done := func() { os.RemoveAll(dir) }
	if err := os.CopyFS(filepath.Join(dir, "specs"), os.DirFS("specs")); err != nil {
		return nil, done, err
	}
	program := filepath.Join(dir, "specs.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-o", program, "./specs").CombinedOutput()
	if err != nil {
		return nil, done, fmt.Errorf("%w\n%s", err, out)
	}
	tests, err := testNames(p)
	if err != nil {
		return nil, done, err
	}
	try := func(m mutant, changed []byte) (string, bool, error) {
		name := filepath.Join(dir, m.file)
		before, err := os.ReadFile(name)
		if err != nil {
			return "", false, err
		}
		if err := os.WriteFile(name, changed, 0o600); err != nil {
			return "", false, err
		}
		defer os.WriteFile(name, before, 0o600) //nolint:errcheck // the next change would be refused
		for _, run := range []string{strings.Join(tests, "|"), p.late} {
			if run == "" {
				continue
			}
			cmd := exec.Command(program, "-test.failfast", "-test.timeout=5m", "-test.run=^Test("+run+")$")
			cmd.Dir = filepath.Join(dir, "specs")
			cmd.Env = append(os.Environ(), "GOGC=400")
			if out, err := cmd.CombinedOutput(); err != nil {
				return string(out), true, nil
			}
		}
		return "", false, nil
	}
	if out, failed, err := try(mutant{file: filepath.Join(p.folder, "README.md")}, nil); err != nil || failed {
		return nil, done, fmt.Errorf("the tests fail without a change: %w\n%s", err, out)
	}
	return try, done, nil
}

// overlaid tries changes of Go, first with the tests of the package, then with the simulations.
func overlaid(p *part) (trial, func(), error) {
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, nil, err
	}
	return func(m mutant, changed []byte) (string, bool, error) {
		file, err := filepath.Abs(m.file)
		if err != nil {
			return "", false, err
		}
		instead := map[string]string{file: filepath.Join(dir, "changed.go")}
		overlay, err := json.Marshal(map[string]any{"Replace": instead})
		if err != nil {
			return "", false, err
		}
		if err := os.WriteFile(filepath.Join(dir, "changed.go"), changed, 0o600); err != nil {
			return "", false, err
		}
		if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
			return "", false, err
		}
		for _, pkg := range []string{"./" + p.folder, "./internal/testing/dagtest"} {
			cmd := exec.Command("go", "test", "-overlay", filepath.Join(dir, "overlay.json"), "-vet=off", "-failfast", "-timeout=3m", pkg)
			out, err := cmd.CombinedOutput()
			if err != nil {
				return string(out), true, nil
			}
		}
		return "", false, nil
	}, func() { os.RemoveAll(dir) }, nil
}

var testFunc = regexp.MustCompile(`(?m)^func Test(\w+)\(t `)

// blessing are tests that compare with a text or a twin that was made from what is changed, or change it themselves: they
// notice everything, and say nothing of whether it is right.
var blessing = regexp.MustCompile(`^(YAMLTwin|Golden|Edits\w+)$`)

// testNames are the tests of a part that are tried first, without the Test before them.
func testNames(p *part) (names []string, err error) {
	for _, pattern := range p.tests {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			for _, m := range testFunc.FindAllSubmatch(src, -1) {
				if name := string(m[1]); name != p.late && !blessing.MatchString(name) {
					names = append(names, name)
				}
			}
		}
	}
	return names, nil
}
