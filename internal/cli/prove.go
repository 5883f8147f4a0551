package cli

import (
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
		list, err := run.Verify(o, head)
		if err != nil {
			return err
		}
		if list[0].Pass {
			list = append(list, runlog.Verify(o))
		}
		wrong := 0
		for _, k := range list {
			if !k.Pass {
				wrong++
			}
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
