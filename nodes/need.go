package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Preflighter can tell what its nodes need of the machine they run on, so that a run in which
// something is missing is refused before it has cost anything.
type Preflighter interface {
	// Needs lists what an attempt needs. A ${...} whose value is not known yet stands in them as it
	// is; what depends on it is not listed. It looks at nothing.
	Needs() []Need
}

// A Need is something that an attempt needs of the machine it runs on. Needs of one name are one, looked for once.
type Need struct {
	Name string
	// Later says that an earlier node of the plan may make it: where there is one, that it is missing is a warning.
	Later bool
	// Find looks for it, has no lasting effect and asks no service. found is what to call it where it is there; an
	// error says in one line what is missing and what to do.
	Find func(ctx context.Context, m Machine) (found string, warnings []string, err error)
}

// A Machine is where a Need is looked for.
type Machine struct {
	SpecDir string // absolute folder of the spec
	Scratch string // absolute, existing folder that is removed afterwards
	// Secret is that of a Task.
	Secret func(name string) (string, error)
}

// A Readiness says what of that which nodes need is there.
type Readiness struct {
	Found    []string `json:"found,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
	Problems []string `json:"problems,omitempty"` // that keep a run from going on here
	Disk     error    `json:"-"`                  // the one of them that is about the disk, if there is one
}

// ProgramNeed is the need of a program, as argv names it: by a name that is looked up on path, or by a path from dir, a
// folder relative to that of the spec. path is that of the child's own environment; "" = the PATH of this process. What
// an earlier node can make is a program that is named by a path, or one on a PATH of its own. ok is false where what is
// needed depends on a ${...}.
func ProgramNeed(name, path, dir string) (n Need, ok bool) {
	if name == "" || strings.Contains(name+path+dir, "${") {
		return n, false
	}
	n = Need{Name: "program " + name + " " + path + " " + dir, Later: path != "" || strings.Contains(name, "/")}
	n.Find = func(_ context.Context, m Machine) (string, []string, error) {
		base := dir
		if !filepath.IsAbs(dir) {
			base = filepath.Join(m.SpecDir, dir)
		}
		if strings.Contains(name, "/") {
			file := name
			if !filepath.IsAbs(name) {
				file = filepath.Join(base, name)
			}
			if err := runnable(file); err != nil {
				return "", nil, fmt.Errorf("the program %s %w", name, err)
			}
			return name, nil, nil
		}
		on := path
		if on == "" {
			on = os.Getenv("PATH")
		}
		for _, d := range filepath.SplitList(on) {
			if !filepath.IsAbs(d) {
				d = filepath.Join(base, d)
			}
			if runnable(filepath.Join(d, name)) == nil {
				return name, nil, nil
			}
		}
		return "", nil, fmt.Errorf("the program %s is not on PATH: install it, or name it by a path", name)
	}
	return n, true
}

// runnable says what keeps a file from being started.
func runnable(file string) error {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("is not there (%s): make it, or correct the path", file)
	case err != nil:
		return fmt.Errorf("cannot be looked at: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("is not a file (%s)", file)
	}
	if _, err := exec.LookPath(file); err != nil {
		return fmt.Errorf("may not be started: chmod +x %s", file)
	}
	return nil
}

// SecretNeed is the need of a secret: one of names has to be set.
func SecretNeed(names ...string) Need {
	find := func(_ context.Context, m Machine) (string, []string, error) {
		var first error
		for _, name := range names {
			_, err := m.Secret(name)
			if err == nil {
				return "the secret " + name, nil, nil
			}
			if first == nil {
				first = err
			}
		}
		if len(names) > 1 {
			return "", nil, fmt.Errorf("%w (or one of %s)", first, strings.Join(names[1:], ", "))
		}
		return "", nil, first
	}
	return Need{Name: "secret " + strings.Join(names, " "), Find: find}
}
