package compile

import (
	"slices"

	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// neverIdle refuses ticks that could never say that there was nothing to do: one would follow the other for ever.
func (b *builder) neverIdle(v *tree.Value) {
	t := b.plan.Ticks
	if t == nil {
		return
	}
	var states []string
	for _, d := range b.drafts {
		if d.node.Foreach != nil && (d.items.node.Declares() || d.tree.Get("foreach").Get("node").Get("milestone") != nil) {
			return // what its items declare is known when they are made
		}
		if !d.node.Declares() {
			continue
		}
		declared, known := d.node.Declaration()
		if !known {
			return
		}
		if declared.Section == "" && declared.State != "" {
			states = append(states, declared.State)
		}
	}
	if slices.Contains(states, t.Idle) {
		return
	}
	at, near := v, ""
	if x := v.Get("idle"); x != nil {
		at = x
	}
	if len(states) > 0 {
		near = rules.OrKnown(t.Idle, states)
	}
	b.fail(at.Pos, "ticks.idle", "no milestone declares the state %q, which says that there was nothing to do%s",
		t.Idle, near)
}
