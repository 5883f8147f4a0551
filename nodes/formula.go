package nodes

// Formulas are expressions in CEL that a kind evaluates itself, while it works, over something that it finds. They are
// checked when the plan is made, and may read parameters, but nothing that a run records.
type Formulas struct {
	Var    string            // name of what they are about; its fields are written VAR.field
	Fields map[string]string // field -> type as of an output, timestamp or any
	Also   map[string]string // further variables -> type
	List   []FormulaText
}

// A FormulaText is a formula as settings have it.
type FormulaText struct {
	Path string   // within With
	Text string   // in CEL
	Want []string // types that the result may have; none = any that JSON has
	// Field is the name of a field that the result is, for the other formulas; empty = none.
	Field string
}

// A Formula is a compiled expression, ready to evaluate from any goroutine.
type Formula struct {
	Type  string   // of the result: string, int, number, bool, list, map, null or any
	Reads []string // fields and further variables that it reads, each once
	// Digest says what it is: those of one digest give the same for the same values that they read.
	Digest string
	// Eval evaluates it. value gives what is read by a name of Reads, as JSON is decoded, with int64 for whole numbers,
	// and time.Time for a timestamp; the result is of the same types. An error of value is one of the evaluation.
	Eval func(value func(name string) (any, error)) (any, error)
}
