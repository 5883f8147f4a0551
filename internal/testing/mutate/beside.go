package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	together   = 40 // so many changed checks stand beside the others in one run
	boundsTest = "TestGatesHoldTheirBounds"
)

var noticedGate = regexp.MustCompile(`(?m)noticed (\S+--\d+): (.*)$`)

// beside tries changes of checks, all of them on the same pages: each changed check stands beside the one that it was
// made of, and is noticed where it says something else. A run that fails is made again with half of them.
func beside(p *part, dir string, _ int, all []mutant) ([]trial, error) {
	program, err := specsProgram(dir)
	if err != nil {
		return nil, err
	}
	place, known := filepath.Join(dir, "beside"), map[string]string{}
	if err := os.CopyFS(filepath.Join(place, "specs"), os.DirFS("specs")); err != nil {
		return nil, err
	}
	var try func(some []mutant) error
	try = func(some []mutant) error {
		names, files := map[string]string{}, []string(nil)
		for i, m := range some {
			src, err := os.ReadFile(m.file)
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(filepath.Base(m.file), ".js") + "--" + strconv.Itoa(i)
			file := filepath.Join(place, filepath.Dir(m.file), name+".js")
			changed := slices.Concat(src[:m.from], []byte(m.text), src[m.to:])
			if err := os.WriteFile(file, changed, 0o600); err != nil {
				return err
			}
			names[name], files = m.name, append(files, file)
		}
		cmd := exec.Command(program, "-test.v", "-test.timeout=20m", "-test.run=^"+boundsTest+"$")
		cmd.Dir = filepath.Join(place, "specs")
		out, err := cmd.CombinedOutput()
		for _, file := range files {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
		switch {
		case err != nil && len(some) == 0:
			return fmt.Errorf("the tests fail without a change: %w\n%s", err, out)
		case err != nil && len(some) == 1:
			known[some[0].name] = "--- FAIL: " + boundsTest + "\n" + string(out)
			return nil
		case err != nil:
			fmt.Fprintf(os.Stderr, "%d changed checks cannot be told apart together:\n%s\n", len(some), out)
			for half := range slices.Chunk(some, (len(some)+1)/2) {
				if err := try(half); err != nil {
					return err
				}
			}
			return nil
		}
		for _, m := range noticedGate.FindAllStringSubmatch(string(out), -1) {
			known[names[m[1]]] = "--- FAIL: " + boundsTest + "\n" + m[2]
		}
		return nil
	}
	if err := try(nil); err != nil {
		return nil, err
	}
	for some := range slices.Chunk(all, together) {
		if err := try(some); err != nil {
			return nil, err
		}
	}
	return []trial{func(m mutant, _ []byte, _ int) (string, bool, error) {
		out, noticed := known[m.name]
		return out, noticed, nil
	}}, nil
}
