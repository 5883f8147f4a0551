package compile

import (
	"errors"
	"os"

	"dagrun.dev/internal/tree"
)

// further adds to the mistakes that loading found those that do not depend on them. Where all are
// about single nodes, the rest of the pipeline and the other nodes are looked at too, but not what nodes read of
// each other. p is nil where there is no tree.
func (s *Schema) further(p *tree.Value, src Source, err error, o Options) error {
	var ds tree.Diagnostics
	if !errors.As(err, &ds) {
		return err
	}
	if p != nil {
		if ids := refusedNodes(p, ds); ids != nil {
			ds = append(ds, s.others(p, src, o, ids)...)
		}
	}
	return told(ds, "mistakes")
}

// others returns the mistakes outside the nodes of ids.
func (s *Schema) others(p *tree.Value, src Source, o Options, ids map[string]bool) tree.Diagnostics {
	root, err := os.OpenRoot(src.Dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	b := newBuilder(s, src, root)
	b.refused = ids
	if p = b.parameters(p, o); p == nil {
		return b.mistakes
	}
	b.pipeline(p)
	b.nodes(p)
	if b.expand(p) {
		b.completeAll()
	}
	return b.mistakes
}

// refusedNodes returns the ids of the nodes that ds are about; nil where one is about anything else.
func refusedNodes(p *tree.Value, ds tree.Diagnostics) map[string]bool {
	if len(ds) > mostTold {
		return nil
	}
	ids := map[string]bool{}
	left := len(ds)
	for _, f := range sortedMap(p.Get("nodes")) {
		for _, d := range ds {
			if below(d.Path, tree.Join("nodes", f.Name)) {
				ids[f.Name] = true
				left--
			}
		}
	}
	if left > 0 {
		return nil
	}
	return ids
}
