package cli

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"dagrun.dev/nodes/agent"
	"dagrun.dev/nodes/agent/capability"
)

func makeProviders(c *cobra.Command) {
	c.ValidArgs = capability.Names()
	c.RunE = func(c *cobra.Command, names []string) error {
		for _, name := range names {
			if !slices.Contains(capability.Names(), name) {
				return unknownName("provider", name, capability.Names())
			}
		}
		scratch, err := os.MkdirTemp("", "dagrun-providers-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(scratch)
		v := providersInfo{Capabilities: capability.Rows(), Tools: map[string][]string{}}
		for _, in := range agent.Installed(c.Context(), scratch) {
			if len(names) == 0 || slices.Contains(names, in.Provider) {
				v.Installed = append(v.Installed, in)
				if list := capability.Of(in.Provider).ToolNames(); len(list) > 0 {
					v.Tools[in.Provider] = list
				}
			}
		}
		return show(c, v)
	}
}
