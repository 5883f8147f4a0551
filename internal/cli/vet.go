package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/report"
)

func newVet() *cobra.Command {
	var specs specFlags
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
			found := map[string]any{"mistakes": []mistake{}, "warnings": mistakes(res.Warnings)}
			return show(c, found, func(w io.Writer) error {
				for _, text := range res.Warnings {
					warn(c, text.Error())
				}
				_, err := fmt.Fprintf(w, "%s: %s, no mistakes\n", res.Plan.Name, report.Count(len(res.Plan.Nodes), "node"))
				return err
			})
		},
	}
	specs.add(c)
	addJSON(c)
	return c
}
