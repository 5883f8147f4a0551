package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/all"
)

const firstSpec = `# A first pipeline. Show what would run: dagrun plan    Run it: dagrun apply
# yaml-language-server: $schema=cue.mod/pkg/dagrun.dev/pipeline.schema.json
pipeline:
  name: hello
  nodes:
    greet:
      kind: exec
      with: {run: 'echo "hello, world" > "$DAGRUN_OUT/greeting.txt"'}
      writes: [greeting.txt]
    shout:
      kind: exec
      needs: [greet]
      with: {run: 'tr a-z A-Z < "$DAGRUN_IN/greeting.txt" > "$DAGRUN_OUT/shout.txt"'}
      reads: [greeting.txt]
      writes: [shout.txt]
`

func newInit() *cobra.Command {
	var update bool
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a directory ready for writing specifications",
		Long: `init writes a first specification, spec.yaml, where there is none, and the built-in CUE library and JSON
Schema under cue.mod/pkg, where editors, "cue vet" and the CUE language server find them. With --update it
only brings the library and the schema to those of this program.`,
		Args: atMostOne,
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			format, err := schema.For(nodes.NewRegistry(all.Kinds()...))
			if err != nil {
				return err
			}
			if fi, err := os.Stat(dir); err == nil && !fi.IsDir() {
				return fmt.Errorf("%s is a file: name a directory; it is created if it does not exist", dir)
			}
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			var names []string
			if !update {
				if names, err = writeFirst(dir); err != nil {
					return err
				}
			}
			vendored, err := format.Vendor(dir)
			if err != nil {
				return err
			}
			names = append(names, vendored...)
			text := "Nothing to do: everything is up to date.\n"
			if len(names) > 0 {
				text = "wrote " + strings.Join(names, "\nwrote ") + "\n"
			}
			return showText(c, written{append([]string{}, names...)}, "%s", text)
		},
	}
	addJSON(c)
	c.Flags().BoolVar(&update, "update", false, "update the library and the schema, write no first specification")
	return c
}

// writeFirst writes the first specification unless the folder has one.
func writeFirst(dir string) ([]string, error) {
	for _, pattern := range []string{"*.cue", "spec.yaml", "spec.yml", "spec.json"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) > 0 {
			return nil, err
		}
	}
	f, err := os.OpenFile(filepath.Join(dir, "spec.yaml"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := f.WriteString(firstSpec); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return []string{"spec.yaml"}, f.Close()
}
