// Package tree holds a specification as data with positions: what the CUE, YAML and JSON front
// ends produce and what rules, expansion and graph checks read. It knows no language.
package tree

import "fmt"

// Pos is a place in a file. Line and Col count from 1; 0 is unknown.
type Pos struct {
	File      string
	Line, Col int32
}

// String prints file:line:col, leaving out what is unknown.
func (p Pos) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Kind is the type of a value.
type Kind uint8

// The kinds of values. Int is a whole number that fits 64 bits.
const (
	Null Kind = iota
	Bool
	Int
	Float
	String
	List
	Map
)

// A Value is one value with its place. A large specification has many: the small fields stand
// together.
type Value struct {
	Kind   Kind
	Bool   bool
	Pos    Pos
	Int    int64
	Float  float64
	Str    string
	Items  []*Value
	Fields []Field // in source order
}

// A Field is one entry of a map.
type Field struct {
	Name  string
	Pos   Pos // of the key
	Value *Value
}

// Get returns the value of a field, or nil.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for i := range v.Fields {
		if v.Fields[i].Name == name {
			return v.Fields[i].Value
		}
	}
	return nil
}

// A Diagnostic is one mistake at one place: file:line:col: path: what is wrong.
type Diagnostic struct {
	Pos  Pos
	Path string // dotted, e.g. nodes.a.needs[0]; may be empty
	Text string // what is wrong, what was expected, the nearest valid name
}

// Error prints the diagnostic on one line.
func (d Diagnostic) Error() string {
	s := d.Text
	if d.Path != "" {
		s = d.Path + ": " + s
	}
	if p := d.Pos.String(); p != "" {
		s = p + ": " + s
	}
	return s
}

// Diagnostics are all mistakes of a specification, sorted by place.
type Diagnostics []Diagnostic

// Error prints one line for each.
func (ds Diagnostics) Error() string {
	s := ""
	for i, d := range ds {
		if i > 0 {
			s += "\n"
		}
		s += d.Error()
	}
	return s
}
