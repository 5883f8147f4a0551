package compile

import "dagrun.dev/internal/tree"

func (s *Schema) loadInChild(f found, src *Source, o LoadOptions) (*tree.Value, error) {
	return s.loadCUESpec(f, src, o)
}
