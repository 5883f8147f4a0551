package cli

import "github.com/spf13/cobra"

// exampleLines are what the help of a command ends with where its function gives none: lines that can be typed,
// with what each is for.
var exampleLines = map[string]string{
	"vet": `  dagrun vet                          the specification of the current folder
  dagrun vet pipelines/site.yaml      another one
  dagrun vet --json site.yaml         for an editor or a check in CI`,
	"plan": `  dagrun plan                         what fits a screen
  dagrun plan --long site.yaml        every node
  dagrun plan -o monday.plan          keep it, for: dagrun apply monday.plan`,
	"graph": `  dagrun graph site.yaml              in DOT: | dot -Tsvg > graph.svg
  dagrun graph --run                  the run, in colours`,
	"providers": `  dagrun providers                    all, and what of them is installed
  dagrun providers claude codex       these two`,
	"apply": `  dagrun apply                        run it, or go on with it
  dagrun apply -j 4 --set agent.provider=sim site.yaml
  dagrun apply --fresh                put the run away and start over`,
	"watch": `  dagrun watch                        apply, and again whenever files change
  dagrun watch --set agent.provider=sim docs.yaml`,
	"resume": `  dagrun resume                       go on under the plan as it was
  dagrun resume --cap-usd 20          with another limit
  dagrun resume --without upload      leave a node out`,
	"escalations": `  dagrun escalations                  what is asked
  dagrun escalations --output-dir build/site`,
	"respond": `  dagrun respond approve              the one question that is open
  dagrun respond approval/ship/1 reject`,
	"status": `  dagrun status                       how the run stands
  dagrun status --watch               again whenever it changes
  dagrun status --output-dir build/site --json`,
	"show": `  dagrun show build                   all that is known of a node
  dagrun show build --attempt 1       of its first attempt`,
	"logs": `  dagrun logs                         what all nodes printed
  dagrun logs -f build                what one prints, as it prints it
  dagrun logs --tail 20 build         the end of it`,
	"runs": `  dagrun runs                         the runs that this machine knows of
  dagrun runs prune --dry-run         what of runs that ended 30 days ago would go`,
	"report": `  dagrun report                       cost by kind of node
  dagrun report cost --by group       by group
  dagrun report errors                every failed attempt`,
	"log": `  dagrun log                          every event
  dagrun log --node build             of one node
  dagrun log --type work_item_finished --json`,
	"checkpoints": `  dagrun checkpoints                  states to go back to
  dagrun checkpoints --output-dir build/site`,
	"revert": `  dagrun revert cp-draft --preview    what going back would do
  dagrun revert cp-draft              go back`,
	"verify": `  dagrun verify                       check everything on disk
  dagrun verify --output-dir build/site`,
	"replay": `  dagrun replay                       fold the events and compare
  dagrun replay --logs                make the logs anew`,
	"selftest": `  dagrun selftest --faults            kill the pipeline after every event
  dagrun selftest --faults --most 20  after twenty of them`,
}

// giveExamples sets the examples of a command that has none of its own.
func giveExamples(c *cobra.Command) {
	if c.Example == "" {
		c.Example = exampleLines[c.Name()]
	}
}
