package compile

import (
	"dagrun.dev/dag"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// notify reads who is told what happens.
func (b *builder) notify(v *tree.Value) {
	for i, item := range v.List() {
		path := tree.At("notify", i)
		var to dag.Notify
		b.into(item, path, &to, "on", "kind", "timeout", "most")
		k, _ := b.s.Registry.Kind(to.Kind)
		if _, ok := nodes.Able[nodes.Messenger](k, nil); !ok {
			b.fail(item.Get("kind").Pos, path+".kind", "a %s takes no message; want exec or http", to.Kind)
			continue
		}
		d := &draft{node: &dag.Node{}}
		how := &tree.Value{Kind: tree.Map, Pos: item.Pos} // an action, which has no on
		for _, f := range item.Fields {
			if f.Name == "kind" || f.Name == "with" {
				how.Fields = append(how.Fields, f)
			}
		}
		u := b.action(d, how, path)
		if u == nil {
			continue
		}
		if len(d.node.Files) > 0 {
			b.fail(item.Pos, path+".with", "it reads nothing but the message: want no file")
		}
		to.With, to.Secrets = u.With, d.node.Secrets
		b.plan.Notify = append(b.plan.Notify, to)
	}
}
