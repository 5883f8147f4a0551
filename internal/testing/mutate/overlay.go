package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// overlaid tries changes of Go by -overlay: the tests of the package first, which notice most of them and take no time
// but that of the compiler, then those of what shows its state, then the simulations.
func overlaid(p *part, dir string, places int) (tries []trial, err error) {
	packages := []string{"./" + p.folder, "./dag/report", "./dag/runlog", "./internal/testing/dagtest"}
	if p.quick {
		packages = packages[:1]
	}
	for i := range places {
		place := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(place, 0o700); err != nil {
			return nil, err
		}
		tries = append(tries, func(m mutant, changed []byte, patience int) (string, bool, error) {
			overlay, err := overlayOf(place, m.file, changed)
			for _, folder := range packages {
				if err != nil {
					return "", false, err
				}
				if out, err := testBounded(place, overlay, folder, time.Duration(patience)*time.Minute); err != nil {
					return out, true, nil
				}
			}
			return "", false, nil
		})
	}
	return tries, nil
}

// overlayOf has the compiler take a text for a file of the project.
func overlayOf(place, file string, text []byte) (overlay string, err error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	instead, overlay := filepath.Join(place, "changed.go"), filepath.Join(place, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{abs: instead}})
	if err == nil {
		err = os.WriteFile(overlay, list, 0o600)
	}
	if err == nil {
		err = os.WriteFile(instead, text, 0o600)
	}
	return overlay, err
}

// testBounded runs the tests of a package, with bounds for what a change may do to them: go round for ever, wait for
// ever, fill the memory. The limit is one of processor time, because the machine may have other work, and five times as
// long by the clock.
func testBounded(place, overlay, folder string, limit time.Duration) (string, error) {
	program := filepath.Join(place, "test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, folder).CombinedOutput()
	if err != nil {
		return string(out) + "\n[build failed]\n", err
	}
	cmd := exec.Command("sh", "-c", `ulimit -v 4000000; ulimit -S -t $0; exec "$@"`, fmt.Sprint(int(limit.Seconds())),
		program, "-test.failfast", "-test.timeout="+(5*limit).String())
	cmd.Dir = folder
	out, err = cmd.CombinedOutput()
	return string(out), err
}
