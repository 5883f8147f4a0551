package tree

// Limits bound what a document may hold. A zero field means no limit of that kind.
type Limits struct {
	Bytes   int64 // size of a document
	Depth   int   // nesting of maps and lists
	Values  int   // values in all
	Aliases int   // values reached through aliases and merges (YAML)
}

// Defaults are the limits for specifications.
var Defaults = Limits{Bytes: 64 << 20, Depth: 64, Values: 5_000_000, Aliases: 10_000}

// ParseJSON reads one JSON document: exact names, no duplicate names, nothing after it, whole
// numbers exact. A mistake is a Diagnostic with the place in file.
func ParseJSON(file string, data []byte, lim Limits) (*Value, error) { panic("contract") }

// ParseText reads the value of an option such as --set a.b=TEXT: JSON where TEXT is JSON (3,
// true, "x", [1,2], {...}), else the text itself as a string. All places are pos.
func ParseText(text string, pos Pos) *Value { panic("contract") }

// AppendJSON appends v as compact JSON in source order. Not canonical: see RFC 8785 for that.
func (v *Value) AppendJSON(b []byte) []byte { panic("contract") }

// MarshalJSON and UnmarshalJSON make a Value without places usable as JSON.
func (v *Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }

func (v *Value) UnmarshalJSON(b []byte) error { panic("contract") }

// Clone returns a deep copy.
func (v *Value) Clone() *Value { panic("contract") }

// Set replaces or adds a field of a map.
func (v *Value) Set(name string, pos Pos, val *Value) { panic("contract") }
