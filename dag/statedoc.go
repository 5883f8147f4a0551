package dag

import "encoding/json"

// A StateDoc is what state.json says of a run in the words of its pipeline, beside what it says of every run.
type StateDoc struct {
	Artifact string            `json:"artifact,omitempty"` // that the run is about
	Labels   map[string]string `json:"labels,omitempty"`   // label -> field of declared records
	Facts    []StateFact       `json:"facts,omitempty"`    // fields of the document, in their order
	Records  []StateRecords    `json:"records,omitempty"`
	Costs    []StateRecords    `json:"costs,omitempty"` // without fields: sums of cost
}

// StateRecords are records by the values of a label: one for all nodes of a value together.
type StateRecords struct {
	Name   string      `json:"name"`
	By     string      `json:"by"` // label
	Fields []StateFact `json:"fields,omitempty"`
}

// A StateFact is a declared field. Name and one of Value to All are set.
type StateFact struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value,omitempty"`   // as it is
	Last    string          `json:"last,omitempty"`    // label: its last value up to which all nodes have ended
	Current string          `json:"current,omitempty"` // label: its first value whose nodes have begun and not ended
	Output  string          `json:"output,omitempty"`  // recorded value of the last node that has it
	Entries string          `json:"entries,omitempty"` // accumulator: how many of its entries count
	Has     string          `json:"has,omitempty"`     // accumulator: whether one of its entries is of these nodes
	Path    string          `json:"path,omitempty"`    // accumulator: its live file
	Files   string          `json:"files,omitempty"`   // pattern: declared input files, in the order of the node
	Field   string          `json:"field,omitempty"`   // of the record itself, or of that of the last node
	One     bool            `json:"one,omitempty"`     // record of the last node
	All     bool            `json:"all,omitempty"`     // records of the nodes, in plan order
	Of      Labelled        `json:"of,omitzero"`       // of which nodes; zero = all, in a record all of its own
}

// Labelled are the nodes whose label has one of some values.
type Labelled struct {
	Label string   `json:"label"`
	In    []string `json:"in"`
}
