package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/compile"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/run/statedir"
	"dagrun.dev/internal/regular"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/all"
)

// runFlags name a run directory.
type runFlags struct {
	dir   string
	state string
}

func (f *runFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.dir, "output-dir", "",
		"directory of the run (default $DAGRUN_OUTPUT_DIR, else build/<pipeline>)")
	c.Flags().StringVar(&f.state, "state-dir", "",
		"directory of what outlives a run: history, breakers (default $XDG_STATE_HOME/dagrun)")
	c.Flags().Lookup("state-dir").Hidden = true // accepted everywhere, shown where it matters
}

// addState is add for commands that read or keep what outlives a run.
func (f *runFlags) addState(c *cobra.Command) {
	f.add(c)
	c.Flags().Lookup("state-dir").Hidden = false
}

// forPipeline returns the run directory of a pipeline.
func (f *runFlags) forPipeline(name string) string {
	if dir := f.given(); dir != "" {
		return dir
	}
	return filepath.Join("build", name)
}

func (f *runFlags) given() string {
	if f.dir != "" {
		return f.dir
	}
	return os.Getenv("DAGRUN_OUTPUT_DIR")
}

// existing returns the run directory of a command that needs no specification: the given one,
// else the current folder if it is one, else the only run under build.
func (f *runFlags) existing() (string, error) {
	if dir := f.given(); dir != "" {
		if !run.Exists(dir) {
			return "", cmp.Or(f.betweenTicks(dir), fmt.Errorf("there is no run in %s", dir))
		}
		return dir, nil
	}
	if run.Exists(".") {
		return ".", nil
	}
	entries, err := os.ReadDir("build")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	var found []string
	var none error
	for _, e := range entries {
		if dir := filepath.Join("build", e.Name()); run.Exists(dir) {
			found = append(found, dir)
		} else {
			none = cmp.Or(none, f.betweenTicks(dir))
		}
	}
	switch len(found) {
	case 0:
		if of := f.ofSpec("."); len(of) > 0 {
			none = cmp.Or(none, fmt.Errorf("there is no run under build; what is specified here runs in %s: --output-dir %s",
				strings.Join(of, ", "), of[0]))
		}
		return "", cmp.Or(none, errors.New("there is no run under build; name its directory with --output-dir"))
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("there are several runs (%s); choose one with --output-dir", strings.Join(found, ", "))
}

// betweenTicks says why there is no run in a directory where work never ends: the next tick could not begin.
func (f *runFlags) betweenTicks(dir string) error {
	if last, err := run.LastTickOf(f.options(dir, "")); err != nil || last == nil {
		return err
	}
	return fmt.Errorf("the last tick in %[1]s is in its archives, and no other has begun since: dagrun apply "+
		"--output-dir %[1]s begins one, or says why it cannot", dir)
}

// places are the directories where runs may be, or with present those where one is, each once: that of the flag, those
// under build, and those remembered.
func (f *runFlags) places(present bool) (dirs []string) {
	candidates := []string{f.given(), "."}
	if entries, err := os.ReadDir("build"); err == nil {
		for _, e := range entries {
			candidates = append(candidates, filepath.Join("build", e.Name()))
		}
	}
	if state, err := f.stateDir(); err == nil {
		if list, err := state.Places(); err == nil {
			candidates = append(candidates, list...)
		}
	}
	var seen []string
	for _, dir := range candidates {
		info, err := os.Stat(dir)
		if dir == "" || err != nil || !info.IsDir() || slices.Contains(seen, realPath(dir)) || present && !run.Exists(dir) {
			continue
		}
		seen = append(seen, realPath(dir))
		dirs = append(dirs, dir)
	}
	return dirs
}

// ofSpec returns the directories of the runs whose specification lies in a folder, or is a file.
func (f *runFlags) ofSpec(path string) (dirs []string) {
	path = realPath(path)
	for _, dir := range f.places(true) {
		o, err := readOrigin(dir)
		if err == nil && (realPath(o.Dir) == path || realPath(filepath.Join(o.Dir, o.File)) == path) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// orItsRun adds to the refusal of an argument that is a specification how its run is named.
func orItsRun(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		err := check(c, args)
		state := c.Flag("state-dir")
		if err == nil || len(args) == 0 || state == nil {
			return err
		}
		spec := args[len(args)-1]
		if of := (&runFlags{state: state.Value.String()}).ofSpec(spec); len(of) > 0 {
			return fmt.Errorf("%w; the run of %s: --output-dir %s", err, spec, of[0])
		}
		return err
	}
}

// isCurrent reports whether a directory is that of the run that commands without --output-dir mean here.
func (f *runFlags) isCurrent(dir string) bool {
	if given := os.Getenv("DAGRUN_OUTPUT_DIR"); given != "" && realPath(given) == realPath(dir) {
		return true
	}
	rel, err := filepath.Rel(realPath(dir), realPath("."))
	return err == nil && filepath.IsLocal(rel)
}

// realPath is the one absolute path of a directory, whatever links lead to it.
func realPath(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real
	}
	return abs
}

// options returns how a command opens the run in a directory.
func (f *runFlags) options(dir, command string) run.Options {
	return run.Options{Dir: dir, Command: "dagrun " + command, Now: time.Now()}
}

// stateDir opens the directory of what outlives a run.
func (f *runFlags) stateDir() (*statedir.Dir, error) { return statedir.Open(f.state) }

// specFlags name a specification and its parameters.
type specFlags struct {
	pipeline  string
	set       []string
	values    []string
	untrusted bool
}

func (f *specFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.pipeline, "pipeline", "", "name of the pipeline, when the specification holds several")
	c.Flags().StringArrayVar(&f.set, "set", nil, "set a declared parameter: path=value (may be repeated)")
	c.Flags().StringArrayVar(&f.values, "values", nil, "YAML or JSON file of parameters (may be repeated)")
	c.Flags().BoolVar(&f.untrusted, "untrusted", false, "evaluate the specification in a child process with limits")
}

// compile compiles the specification that a command line names.
func (f *specFlags) compile(args []string) (*compile.Result, *nodes.Registry, error) {
	kinds := all.Registry()
	o := compile.Options{Pipeline: f.pipeline, Set: f.set, Values: f.values, Untrusted: f.untrusted, Kinds: kinds}
	if len(args) > 0 {
		o.Path = args[0]
	}
	res, err := compile.Compile(o)
	return res, kinds, err
}

// anew returns what compiles the specification as it is then, for each tick.
func (f *specFlags) anew(args []string) func() (*compile.Result, error) {
	return func() (*compile.Result, error) {
		res, _, err := f.compile(args)
		return res, err
	}
}

// inputFile returns what opens the input files of a compiled specification as they are now.
func inputFile(res *compile.Result) func(path string) (io.ReadCloser, error) {
	return func(path string) (io.ReadCloser, error) {
		root, err := os.OpenRoot(res.Dir)
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return regular.OpenIn(root, path)
	}
}
