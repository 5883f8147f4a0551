package compile

import (
	"fmt"

	"cuelang.org/go/cue"

	"dagrun.dev/internal/tree"
)

// A table is data that the schema brings along: what categories of failure mean, what models
// cost. A pipeline's own rows are laid over it.
type table struct {
	rows []tree.Field // in the schema's order
}

// tables reads the tables out of the built package.
func (s *Schema) tables(pkg cue.Value) error {
	for name, t := range map[string]*table{"categories": &s.categories, "prices": &s.prices} {
		b, err := pkg.LookupPath(cue.ParsePath(name)).MarshalJSON()
		if err != nil {
			return fmt.Errorf("%s: %s", name, firstLine(err))
		}
		v, err := tree.ParseJSON("dagrun.dev/spec", b, tree.Limits{})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		t.rows = v.Fields
	}
	return nil
}

// with returns the rows, by name, with those of a pipeline laid over them: a row of the same name is replaced as a whole.
func (t table) with(own *tree.Value) []tree.Field {
	m := &tree.Value{Kind: tree.Map}
	m.Fields = append(m.Fields, t.rows...)
	if own != nil {
		for _, f := range own.Fields {
			m.Set(f.Name, f.Pos, f.Value)
		}
	}
	return sortedMap(m)
}
