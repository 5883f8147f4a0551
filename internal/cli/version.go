package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"dagrun.dev/dag"
	"dagrun.dev/dag/eventlog"
)

// release is set by the linker in releases: -ldflags "-X main.release=v1.2.3".
var release string

// A versionInfo is what version prints.
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	Plan    int    `json:"plan_format"`
	Events  int    `json:"event_format"`
}

func newVersion() *cobra.Command {
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := readVersion()
			commit := ""
			if v.Commit != "" {
				commit = " (" + v.Commit + ")"
			}
			return showText(c, v, "dagrun %s%s %s, plan format %d, event format %d\n", v.Version, commit, v.Go, v.Plan, v.Events)
		},
	}
	addJSON(c)
	return c
}

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
