// Package extract is the kind of node that takes documents, notes and sections out of an answer.
//
// It does not judge whether they are good: see nodes/validate. It is also a step of an agent's
// accept list.
package extract

import (
	_ "embed"
	"maps"
	"slices"

	"dagrun.dev/nodes/internal/accept"
)

//go:embed schema.cue
var schema string

// Kind is the kind "extract", alone and as a step.
var Kind = accept.NewKind("extract", schema, func() accept.Settings { return &settings{} })

// Apply cuts the answer once and takes everything the settings name. Notes and sections are taken
// first and kept though the document fails.
func (x *settings) Apply(s *accept.State) error {
	for _, name := range slices.Sorted(maps.Keys(x.Markers)) {
		s.Markers = append(s.Markers, accept.Marker{Name: name, Start: x.Markers[name].Start, End: x.Markers[name].End})
	}
	a := cutUp(s.Answer, s.Markers)

	var first error
	try := func(err error) {
		if first == nil {
			first = err
		}
	}
	notes := x.takeNotes(s, a)
	sections := x.takeSections(s, a)
	if x.HTML != nil {
		try(takeHTML(s, a, x.HTML))
	}
	if x.JSON != nil {
		try(takeJSON(s, a, x.JSON))
	}
	if x.Text != nil {
		try(takeText(s, a, x.Text))
	}
	try(notes)
	try(sections)
	return first
}
