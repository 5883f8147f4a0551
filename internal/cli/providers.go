package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes/agent"
	"dagrun.dev/nodes/agent/capability"
)

func newProviders() *cobra.Command {
	c := &cobra.Command{
		Use:   "providers [PROVIDER...]",
		Short: "Show what each provider of agent nodes can do, and what of it is installed",
		Long: "Show what each provider of agent nodes can do, and what of it is installed on this machine.\n\n" +
			"Programs are asked for their version, in an empty home and without keys. Of keys only the names of the\n" +
			"variables that are set are shown.",
		ValidArgs: capability.Names(),
		RunE: func(c *cobra.Command, names []string) error {
			for _, name := range names {
				if !slices.Contains(capability.Names(), name) {
					return usageError(c, "unknown provider %q; choose one of %s", name, strings.Join(capability.Names(), ", "))
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
			return show(c, v, v.print)
		},
	}
	addJSON(c)
	return c
}

func (v *providersInfo) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PROVIDER\tPROGRAM\tVERSION\tKEYS SET")
	for _, in := range v.Installed {
		program := cmp.Or(in.Program, in.Missing)
		if in.Program != "" && in.Missing != "" {
			program += " (" + in.Missing + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n",
			in.Provider, cmp.Or(printable.Line(program), "-"), cmp.Or(in.Version, "-"), cmp.Or(strings.Join(in.Keys, ", "), "-"))
	}
	for _, c := range v.Capabilities {
		fmt.Fprintf(w, "\n%s", c.Name)
		if len(c.Settings) > 0 {
			fmt.Fprintf(w, " (%s)", strings.Join(c.Settings, ", "))
		}
		fmt.Fprintln(w)
		for _, in := range v.Installed {
			fmt.Fprintf(w, "  %s\t%s\n", in.Provider, cmp.Or(c.How[in.Provider], "cannot"))
		}
	}
	fmt.Fprintln(w, "\ntools by name")
	for _, in := range v.Installed {
		if list := v.Tools[in.Provider]; len(list) > 0 {
			fmt.Fprintf(w, "  %s\t%s\n", in.Provider, strings.Join(list, ", "))
		}
	}
	return w.Flush()
}
