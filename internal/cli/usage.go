package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"dagrun.dev/internal/rules"
)

// What is wrong with a command line is said in one line that ends with where to read more.

// words holds a command to a number of words beside its flags.
func words(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usageError(c, "missing argument; usage: %s", c.UseLine())
		case len(args) > most:
			return usageError(c, "unexpected argument %q", args[most])
		}
		return nil
	}
}

func usageError(c *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%s; see: %s --help", fmt.Sprintf(format, args...), c.CommandPath())
}

// goNoise is how the standard library says that a flag's value cannot be read.
var goNoise = regexp.MustCompile(`: (strconv\.\w+: parsing ".*": |time: )`)

// flagError says what is wrong with a flag.
func flagError(c *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	if errors.As(err, &missing) && missing.GetSpecifiedShortnames() == "" {
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if near := rules.Nearest(missing.GetSpecifiedName(), known); near != "" {
			return usageError(c, "unknown flag --%s; did you mean --%s?", missing.GetSpecifiedName(), near)
		}
	}
	return usageError(c, "%s", goNoise.ReplaceAllString(err.Error(), ": "))
}

// knownCommand refuses a command that there is not, whatever stands behind it.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "__") || // completion's own
		args[0] == "help" || args[0] == "completion" {
		return nil
	}
	known := []string{"help"}
	for _, c := range root.Commands() {
		if c.Name() == args[0] {
			return nil
		}
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	return unknownName("command", args[0], known)
}

// newHelp is cobra's help, but for that it refuses what it does not know.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		RunE: func(c *cobra.Command, args []string) error {
			if err := knownCommand(c.Root(), args); err != nil {
				return err
			}
			found, _, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			return found.Help()
		},
	}
}

// unknownName refuses a name and says which were possible.
func unknownName(what, name string, known []string) error {
	return fmt.Errorf("unknown %s %q%s", what, name, rules.OrKnown(name, known))
}
