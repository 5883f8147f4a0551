// Command dagrun plans and runs pipelines that are declared in CUE or YAML.
package main

import (
	"dagrun.dev/internal/cli"
	_ "dagrun.dev/internal/heap"
)

func main() { cli.Main() }
