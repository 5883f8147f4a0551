package gates

import (
	"context"

	"dagrun.dev/nodes"
)

// Run carries out one attempt.
func (Kind) Run(context.Context, *nodes.Task) (*nodes.Result, error) {
	return nil, nodes.Permanent(nodes.Fail("config", "this build has no browser"))
}
