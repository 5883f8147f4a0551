package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// copied tries changes of a specification in copies of its folder, with the tests of p.tests.
func copied(p *part, dir string, places int) (tries []trial, err error) {
	program := filepath.Join(dir, "specs.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-o", program, "./specs").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	tests, err := testNames(p)
	if err != nil {
		return nil, err
	}
	for i := range places {
		place := filepath.Join(dir, strconv.Itoa(i))
		if err := os.CopyFS(filepath.Join(place, "specs"), os.DirFS("specs")); err != nil {
			return nil, err
		}
		tries = append(tries, func(m mutant, changed []byte, patience int) (string, bool, error) {
			name := filepath.Join(place, m.file)
			before, err := os.ReadFile(name)
			if err != nil {
				return "", false, err
			}
			if err := os.WriteFile(name, changed, 0o600); err != nil {
				return "", false, err
			}
			defer os.WriteFile(name, before, 0o600) //nolint:errcheck // the next change would be refused
			limit := fmt.Sprintf("-test.timeout=%dm", 5*patience)
			cmd := exec.Command(program, "-test.failfast", limit, "-test.run=^Test("+strings.Join(tests, "|")+")$")
			cmd.Dir = filepath.Join(place, "specs")
			cmd.Env = append(os.Environ(), "GOGC=400")
			out, err := cmd.CombinedOutput()
			return string(out), err != nil, nil
		})
	}
	return tries, nil
}

var testFunc = regexp.MustCompile(`(?m)^func Test(\w+)\(t `)

// blessing are tests that compare with a text or a twin that was made from what is changed, or change it themselves:
// they notice everything, and say nothing of whether it is right.
var blessing = regexp.MustCompile(`^(YAMLTwin|Golden|Edits\w+)$`)

// testNames are the tests of a part, without the Test before them.
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
				if name := string(m[1]); !blessing.MatchString(name) {
					names = append(names, name)
				}
			}
		}
	}
	return names, nil
}
