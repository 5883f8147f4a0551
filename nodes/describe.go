package nodes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The methods of Traits collect what the settings of a node name, with the mistakes that all kinds have in common.

// Problemf adds a mistake at a path of the settings ("checks.0.name").
func (tr *Traits) Problemf(path, format string, args ...any) {
	tr.Problems = append(tr.Problems, Problem{Path: path, Text: fmt.Sprintf(format, args...)})
}

// OneOf reports whether exactly one of some settings is given, and adds a mistake when not; names lists them for the
// reader.
func (tr *Traits) OneOf(path, names string, given ...bool) bool {
	n := 0
	for _, g := range given {
		if g {
			n++
		}
	}
	if n != 1 {
		tr.Problemf(path, "want exactly one of %s", names)
	}
	return n == 1
}

// Read adds an artifact or accumulator that is read, once; "" is none.
func (tr *Traits) Read(name string) { addOnce(&tr.Reads, name) }

// File adds an input file, once; "" is none.
func (tr *Traits) File(name string) { addOnce(&tr.Files, name) }

func addOnce(list *[]string, name string) {
	if name != "" && !slices.Contains(*list, name) {
		*list = append(*list, name)
	}
}

// Write adds an artifact that the setting at path has written; "" is none.
func (tr *Traits) Write(path, artifact string) {
	if artifact == "" {
		return
	}
	if slices.Contains(tr.Writes, artifact) {
		tr.Problemf(path, "%s is written twice by this step", artifact)
	}
	tr.Writes = append(tr.Writes, artifact)
}

// Output adds a value that the setting at path has recorded, of a type as in Traits.Outputs; "" is none.
func (tr *Traits) Output(path, value, typ string) {
	if value == "" {
		return
	}
	if _, twice := tr.Outputs[value]; twice {
		tr.Problemf(path, "value %s is recorded twice by this step", value)
	}
	if tr.Outputs == nil {
		tr.Outputs = map[string]string{}
	}
	tr.Outputs[value] = typ
}

// Merge adds the traits of a part of the settings, which stands at path; what a part says of effect and prompt counts
// for nothing.
func (tr *Traits) Merge(path string, part Traits) {
	for _, list := range []struct {
		to   *[]string
		from []string
	}{
		{&tr.Files, part.Files}, {&tr.Reads, part.Reads}, {&tr.Writes, part.Writes},
		{&tr.Appends, part.Appends}, {&tr.Secrets, part.Secrets},
	} {
		for _, name := range list.from {
			addOnce(list.to, name)
		}
	}
	tr.Notes = append(tr.Notes, part.Notes...)
	maps.Copy(tr.Outputs, part.Outputs)
	for _, x := range part.Categories {
		tr.Categories = append(tr.Categories, Named{Path: path + "." + x.Path, Name: x.Name})
	}
	for _, x := range part.Problems {
		tr.Problemf(strings.TrimSuffix(path+"."+x.Path, "."), "%s", x.Text)
	}
}

// Secret adds the name of a secret that is used, once.
func (tr *Traits) Secret(name string) { addOnce(&tr.Secrets, name) }
