package compile

import (
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"dagrun.dev/nodes"
)

// A Schema is the format of specifications: the embedded CUE definitions, those of a
// registry's kinds, and the rules compiled from both. It is immutable and may be used from any
// goroutine.
type Schema struct {
	kinds *nodes.Registry
}

// NewSchema assembles the CUE package dagrun.dev/spec from schemas/spec and every kind's
// Schema, and compiles its definitions to rules. It fails for a schema that CUE refuses or that
// rules cannot express: a mistake in the program.
func NewSchema(kinds *nodes.Registry) (*Schema, error) { panic("contract") }

// Kinds returns the registry the schema was made for.
func (s *Schema) Kinds() *nodes.Registry { return s.kinds }

// KindNames returns the names of all kinds, control kinds included, sorted.
func (s *Schema) KindNames() []string { panic("contract") }

// Rule returns the rules of a definition of dagrun.dev/spec: "Pipeline", "Node", "Agent".
// It is nil for a name that is not defined.
func (s *Schema) Rule(definition string) *rules.Rule { panic("contract") }

// CheckNode checks a node that expansion made, as Load does for those written out: every
// mistake at once, defaults filled in.
func (s *Schema) CheckNode(node *tree.Value, path string) tree.Diagnostics { panic("contract") }

// CheckWith checks the settings of a kind (after ${...} were resolved) and fills defaults in.
func (s *Schema) CheckWith(kind string, with *tree.Value, path string) tree.Diagnostics {
	panic("contract")
}

// CompileRule compiles the CUE text of one definition (or, with definition empty, of the whole
// file) to a rule: output schemas written in CUE become data here. file is for messages.
func CompileRule(file, source, definition string) (*rules.Rule, error) { panic("contract") }
