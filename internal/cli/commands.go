package cli

import (
	_ "embed"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"dagrun.dev/dag/run"
	"dagrun.dev/nodes/agent"
)

// commandsText holds what help says. A line that begins with # begins a command, with how it is typed; below stand what
// it does, its help, and examples. Lines that end with a colon begin groups of commands, and {NAME} begins a text that
// stands in the help of several.
//
//go:embed commands.txt
var commandsText string

// commands give each command of commandsText its flags, and what it does.
var commands = map[string]func(c *cobra.Command){
	"init": makeInit, "explain": makeExplain, "vet": makeVet, "plan": makePlan, "graph": makeGraph,
	"providers": makeProviders, "apply": makeApply, "watch": makeWatch, "resume": makeResume, "cancel": makeCancel,
	"escalations": makeEscalations, "respond": makeRespond, "status": makeStatus, "show": makeShow, "logs": makeLogs,
	"runs": makeRuns, "prune": makePrune, "report": makeReport, "log": makeLog, "checkpoints": makeCheckpoints,
	"revert": makeRevert, "verify": makeVerify, "replay": makeReplay, "selftest": makeSelftest, "version": makeVersion,
}

func newRoot() *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{SilenceErrors: true, SilenceUsage: true, RunE: func(c *cobra.Command, _ []string) error {
		if asked, err := c.Flags().GetBool("version"); err == nil && asked {
			return showVersion(c)
		}
		return c.Help()
	}}
	root.Flags().Bool("version", false, "print the version")
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(newHelp())
	sections := strings.Split(strings.TrimPrefix(commandsText, "# "), "\n# ")
	shared := []string{"{exit}", exitHelp, "{json}", jsonHelp, "{own}", run.Dir}
	for _, s := range sections {
		if heading, text, _ := strings.Cut(s, "\n"); strings.HasPrefix(heading, "{") {
			shared = append(shared, heading, strings.TrimSpace(text))
		}
	}
	fill, group := strings.NewReplacer(shared...), ""
	for i, s := range sections {
		heading, text, _ := strings.Cut(s, "\n")
		switch text = fill.Replace(strings.TrimSpace(text)); {
		case i == 0:
			explained(root, heading, text)
		case strings.HasPrefix(heading, "{"):
			group = ""
		case strings.HasSuffix(heading, ":"):
			group = heading
			root.AddGroup(&cobra.Group{ID: group, Title: group})
		default:
			c := &cobra.Command{GroupID: group}
			above, own, _ := root.Find(strings.Fields(heading)) // prune stands below runs
			if above != root {
				c.GroupID = ""
			}
			explained(c, strings.Join(own, " "), text)
			above.AddCommand(c)
			commands[c.Name()](c)
		}
	}
	root.AddCommand(newSimAgent())
	addCompletions(root)
	return root
}

// explained gives a command its texts. It takes as many words as its usage names.
func explained(c *cobra.Command, usage, text string) {
	c.Use = usage
	c.Short, c.Long, _ = strings.Cut(text, "\n\n")
	c.Long, c.Example, _ = strings.Cut(c.Long, "\n\nExamples:\n")
	c.Flags().Bool("json", false, "print JSON")
	least, most := 0, 0
	for _, word := range argument.FindAllString(usage, -1) {
		if most++; word[0] != '[' {
			least++
		}
	}
	if c.Args = orItsRun(words(least, most)); strings.Contains(usage, "...") {
		c.Args = cobra.ArbitraryArgs
	}
}

// argument is a word of a usage that is neither command nor flag. What stands in brackets may be left out.
var argument = regexp.MustCompile(`\[[^-\]][^\]]*\]|\b[A-Z]+\b`)

// newSimAgent is the simulated agent, which provider sim starts as its child process.
func newSimAgent() *cobra.Command {
	return &cobra.Command{
		Use:                "sim-agent",
		Short:              "Answer as an agent would, from files",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			return exitWith(agent.SimMain(args, c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()))
		},
	}
}
