package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
	"dagrun.dev/internal/tree"
)

func newVet() *cobra.Command {
	var specs specFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "vet [SPEC]",
		Short: "Check a specification and print every mistake",
		Long: `vet checks a specification as plan does and prints one line for each mistake:
file:line:column: path: what is wrong. It runs and writes nothing.

` + specHelp,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			res, _, err := specs.compile(args)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), map[string]any{"mistakes": []mistake{}, "warnings": mistakes(res.Warnings)})
			}
			for _, w := range res.Warnings {
				fmt.Fprintln(c.ErrOrStderr(), "warning: "+w.Error())
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s, no mistakes\n", res.Plan.Name, report.Count(len(res.Plan.Nodes), "node"))
			return nil
		},
	}
	specs.add(c)
	addJSON(c, &asJSON)
	return c
}

// A mistake is a diagnostic as JSON has it.
type mistake struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Col  int    `json:"col,omitempty"`
	Path string `json:"path,omitempty"`
	Text string `json:"text"`
}

func mistakes(found tree.Diagnostics) []mistake {
	out := []mistake{}
	for _, d := range found {
		out = append(out, mistake{d.Pos.File.String(), int(d.Pos.Line), int(d.Pos.Col), d.Path, d.Text})
	}
	return out
}
