// Package tree holds a specification as data with positions: what the CUE, YAML and JSON front
// ends produce and what rules, expansion and graph checks read. It knows no language.
package tree

import (
	"strconv"
	"strings"
	"sync"
)

// Pos is a place in a file. Line and Col count from 1; 0 is unknown.
type Pos struct {
	File      File
	Line, Col int32
}

// String prints file:line:col, leaving out what is unknown.
func (p Pos) String() string {
	b := append(make([]byte, 0, 64), p.File.String()...)
	if p.Line > 0 {
		b = strconv.AppendInt(append(b, ':'), int64(p.Line), 10)
		if p.Col > 0 {
			b = strconv.AppendInt(append(b, ':'), int64(p.Col), 10)
		}
	}
	return string(b)
}

// A File is the name of a file, by its number among all that this process has seen: a
// specification has a place for every value. The zero File has no name; equal names make equal Files.
type File struct{ number uint32 }

// files are the names by number and the other way round. They are few, and never forgotten.
var files = struct {
	sync.RWMutex
	names   []string
	numbers map[string]uint32
}{names: []string{""}, numbers: map[string]uint32{"": 0}}

// FileOf returns the File of a name.
func FileOf(name string) File {
	files.RLock()
	n, ok := files.numbers[name]
	files.RUnlock()
	if ok {
		return File{n}
	}
	files.Lock()
	defer files.Unlock()
	if n, ok = files.numbers[name]; !ok {
		n = uint32(len(files.names))
		files.names = append(files.names, name)
		files.numbers[name] = n
	}
	return File{n}
}

// String returns the name.
func (f File) String() string {
	files.RLock()
	defer files.RUnlock()
	return files.names[f.number]
}

// MarshalBinary and UnmarshalBinary let places travel between processes.
func (f File) MarshalBinary() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalBinary reads what MarshalBinary makes.
func (f *File) UnmarshalBinary(b []byte) error {
	*f = FileOf(string(b))
	return nil
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
	Str    string // of a number: how it is written, where it would be printed otherwise
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

// List returns the items of a list. Of nil, as of what is no list, there are none.
func (v *Value) List() []*Value {
	if v == nil {
		return nil
	}
	return v.Items
}

// Map returns the fields of a map. Of nil, as of what is no map, there are none.
func (v *Value) Map() []Field {
	if v == nil {
		return nil
	}
	return v.Fields
}

// Text returns a string; that of nil, as of what is no string, is empty.
func (v *Value) Text() string {
	if v == nil || v.Kind != String {
		return ""
	}
	return v.Str
}

// Number returns an Int or Float as the latter.
func (v *Value) Number() float64 {
	if v.Kind == Int {
		return float64(v.Int)
	}
	return v.Float
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
	lines := make([]string, len(ds))
	for i, d := range ds {
		lines[i] = d.Error()
	}
	return strings.Join(lines, "\n")
}
