package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A goTest is one test of a program of tests, with the changes that it comes by.
type goTest struct {
	program, folder, name string
	takes                 time.Duration   // of processor time
	comesBy               map[string]bool // numbers of changes
}

// quick are tests that are run together.
const quick = 400 * time.Millisecond

// switching tries changes of Go in one program that holds them all, each with those tests only that come by it, quick
// ones first: those of the package, then of what shows its state, then the simulations. A change
// that cannot be switched is compiled by itself.
func switching(p *part, dir string, places int, all []mutant) (tries []trial, err error) {
	w, err := weave(p.folder, dir, all)
	if err != nil {
		return nil, err
	}
	var tests []goTest
	packages := []string{p.folder, "dag/report", "dag/runlog", "internal/testing/dagtest"}
	for _, folder := range packages {
		program := filepath.Join(dir, filepath.Base(folder)+".test")
		if out, err := testProgram(program, folder, dir); err != nil {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		out, err := bounded(folder, time.Minute, nil, program, "-test.list=.").CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
		for name := range strings.Lines(string(out)) {
			if !strings.HasPrefix(name, "Test") {
				continue
			}
			t := goTest{program: program, folder: folder, name: strings.TrimSpace(name), comesBy: map[string]bool{}}
			seen := filepath.Join(dir, "seen")
			limit := time.Minute
			if p.quick {
				limit = time.Second
			}
			cmd := t.run(limit, []string{"MUTANTS_SEEN=" + seen}, t.name)
			out, err := cmd.CombinedOutput()
			t.takes = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			if p.quick && (t.takes > quick || noEnd.Match(out)) {
				os.Truncate(seen, 0) //nolint:errcheck // one more change that a test is run for
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s fails without a change: %w\n%s", t.name, err, out)
			}
			numbers, err := os.ReadFile(seen)
			if err != nil {
				return nil, err
			}
			if err := os.Truncate(seen, 0); err != nil {
				return nil, err
			}
			for number := range strings.Lines(string(numbers)) {
				t.comesBy[strings.TrimSpace(number)] = true
			}
			tests = append(tests, t)
		}
	}
	slices.SortStableFunc(tests, func(a, b goTest) int {
		return cmp.Or(slices.Index(packages, a.folder)-slices.Index(packages, b.folder), cmp.Compare(a.takes, b.takes))
	})
	separate := []string{p.folder, packages[len(packages)-1]}
	fmt.Printf("%s: %d of %d changes can be switched\n", p.name, len(w.number), len(all))
	for i := range places {
		tries = append(tries, func(m mutant, changed []byte, patience int) (string, bool, error) {
			if n := w.number[m.name]; n > 0 {
				return switchedTo(fmt.Sprint(n), tests, patience)
			}
			if p.quick {
				return "", false, errLater // it takes a minute
			}
			place := filepath.Join(dir, fmt.Sprint(i))
			return alone(m, changed, place, separate, patience)
		})
	}
	return tries, nil
}

// switchedTo runs the tests that come by a change with that change made.
func switchedTo(number string, tests []goTest, patience int) (string, bool, error) {
	for i := 0; i < len(tests); i++ {
		if !tests[i].comesBy[number] {
			continue
		}
		names, takes := []string{tests[i].name}, tests[i].takes
		for ; takes < quick && i+1 < len(tests) && tests[i+1].folder == tests[i].folder && tests[i+1].takes < quick; i++ {
			if next := tests[i+1]; next.comesBy[number] {
				names, takes = append(names, next.name), takes+next.takes
			}
		}
		cmd := tests[i].run(time.Duration(patience)*(4*time.Second+10*takes), []string{"MUTANT=" + number}, names...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return string(out), true, nil
		}
	}
	return "", false, nil
}

func (t goTest) run(limit time.Duration, env []string, names ...string) *exec.Cmd {
	return bounded(t.folder, limit, env, t.program, "-test.failfast", "-test.run=^("+strings.Join(names, "|")+")$")
}

// bounded runs tests with bounds for what a change may do to them: go round for ever, wait for ever, fill the memory.
// The limit is one of processor time, because the machine may have other work, and five times as long by the clock.
func bounded(folder string, limit time.Duration, env []string, program string, args ...string) *exec.Cmd {
	args = append([]string{"-c",
		`ulimit -v 4000000; ulimit -S -t $0; exec "$@"`, fmt.Sprint(max(1, int(limit.Seconds()))), program,
		"-test.timeout=" + (5 * limit).String()}, args...)
	cmd := exec.Command("sh", args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	return cmd
}

// testProgram compiles the tests of a package, with the files that a folder lays over its own.
func testProgram(program, folder, over string) ([]byte, error) {
	overlay := filepath.Join(over, "overlay.json")
	return exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./"+folder).CombinedOutput()
}

// alone tries a change in programs of its own.
func alone(m mutant, changed []byte, place string, packages []string, patience int) (string, bool, error) {
	w := woven{overlay: map[string]string{}}
	if err := os.MkdirAll(place, 0o700); err != nil {
		return "", false, err
	}
	if err := w.write(place, m.file, string(changed)); err != nil {
		return "", false, err
	}
	for _, folder := range packages {
		program := filepath.Join(place, "test")
		if out, err := testProgram(program, folder, place); err != nil {
			return string(out) + "\n[build failed]\n", true, nil
		}
		cmd := bounded(folder, time.Duration(patience)*time.Minute, nil, program, "-test.failfast")
		if out, err := cmd.CombinedOutput(); err != nil {
			return string(out), true, nil
		}
	}
	return "", false, nil
}
