package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
	"dagrun.dev/dag/run"
	"dagrun.dev/dag/runlog"
)

func makeVerify(c *cobra.Command) {
	var runs runFlags
	var head string
	c.RunE = func(c *cobra.Command, _ []string) error {
		dir, err := runs.existing()
		if err != nil {
			return err
		}
		o := runs.options(dir, c.Name())
		list, wrong, err := undisturbed(filepath.Join(dir, run.Dir, dag.OwnLog), func() ([]run.Check, error) {
			list, err := run.Verify(o, head)
			if err == nil && list[0].Pass {
				list = append(list, runlog.Verify(o))
			}
			return list, err
		})
		if err != nil {
			return err
		}
		err = show(c, checks{list, wrong})
		if err != nil || wrong == 0 {
			return err
		}
		return exitWith(exitDamaged)
	}
	runs.add(c)
	c.Flags().StringVar(&head, "head", "", "an event that must be in the log: its hash, or number:hash")
}

// undisturbed makes checks of a run, and says how many failed. Where another tick has taken the place of the one that
// was looked at, which its log tells, what failed may be the mixture of the two: they are made again, a few times.
func undisturbed(log string, checks func() ([]run.Check, error)) (list []run.Check, wrong int, err error) {
	for try := 1; ; try++ {
		before, _ := os.Stat(log)
		list, err = checks()
		wrong = 0
		for _, k := range list {
			if !k.Pass {
				wrong++
			}
		}
		after, _ := os.Stat(log)
		if err == nil && wrong == 0 || os.SameFile(before, after) || try == 5 {
			return list, wrong, err
		}
	}
}

func makeReplay(c *cobra.Command) {
	var runs runFlags
	var write, logs bool
	c.RunE = func(c *cobra.Command, _ []string) error {
		dir, err := runs.existing()
		if err != nil {
			return err
		}
		o := runs.options(dir, c.Name())
		st, same, err := run.Replay(o, write)
		if err == nil && logs {
			err = runlog.Rebuild(o)
		}
		if err != nil {
			return err
		}
		v := st.Run()
		err = show(c, replayed{v.ID, v.Seq, v.Status, same, write, logs})
		if err == nil && !same && !write {
			return exitWith(exitDamaged)
		}
		return err
	}
	runs.add(c)
	c.Flags().BoolVar(&write, "write", false, "rewrite the snapshot")
	c.Flags().BoolVar(&logs, "logs", false, "rewrite the six logs from the events")
}

// release is set by the linker in releases: -ldflags "-X dagrun.dev/internal/cli.release=v1.2.3".
var release string

func makeVersion(c *cobra.Command) {
	c.RunE = func(c *cobra.Command, _ []string) error { return showVersion(c) }
}

func showVersion(c *cobra.Command) error { return show(c, readVersion()) }

func readVersion() versionInfo {
	v := versionInfo{Version: "devel", Go: runtime.Version(), Plan: dag.Format, Events: eventlog.Version}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	if release != "" {
		v.Version = release
	}
	if ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v.Commit = s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return v
}
