package extract

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

// settings is #Extract.
type settings struct {
	accept.Alone
	HTML     *htmlRule          `json:"html"`
	JSON     *jsonRule          `json:"json"`
	Text     *textRule          `json:"text"`
	Markers  map[string]markers `json:"markers"`
	Sections map[string]section `json:"sections"`
}

// Of a field that is left out the zero value means what the schema says: settings need not have come through it.
type htmlRule struct {
	To           string   `json:"to"`
	Strategies   []string `json:"strategies"`
	Policy       string   `json:"policy"`
	Fragments    bool     `json:"fragments"`
	Doctype      string   `json:"doctype"`
	Placeholders string   `json:"placeholders"`
	Controls     string   `json:"controls"`
	Marks        []string `json:"marks"`
	Previous     string   `json:"previous"`
	AtLeast      *float64 `json:"atLeast"`
}

type jsonRule struct {
	To     string               `json:"to"`
	Values map[string]jsonValue `json:"values"`
	Policy string               `json:"policy"`
}

type jsonValue struct {
	Path string           `json:"path"`
	Type string           `json:"type"`
	Else *json.RawMessage `json:"else"`
}

type textRule struct {
	To       string   `json:"to"`
	Value    string   `json:"value"`
	MaxChars int      `json:"maxChars"`
	CutEnds  []string `json:"cutEnds"`
}

type markers struct {
	Start   string `json:"start"`
	End     string `json:"end"`
	To      string `json:"to"`
	Missing string `json:"missing"`
	Broken  string `json:"broken"`
	Blocks  string `json:"blocks"`
}

type section struct {
	Heading  string `json:"heading"`
	To       string `json:"to"`
	Value    string `json:"value"`
	MaxChars int    `json:"maxChars"`
	Missing  string `json:"missing"`
}

const mostValue = 2000 // characters of a text that becomes a value

var (
	defaultMarks   = []string{"rest of the page unchanged", "rest unchanged", "omitted for brevity", "your content here"}
	defaultCutEnds = []string{"...", "…", "<!-- rest"}
	strategies     = []string{"fence", "doctype", "html"}
)

// given is a list of the settings, or what stands for one that is left out.
func given(list, byDefault []string) []string {
	if list == nil {
		return byDefault
	}
	return list
}

// previous is the artifact whose version before is compared with.
func (h *htmlRule) previous() string { return cmp.Or(h.Previous, h.To) }

// Describe reads what the compiler must know.
func (x *settings) Describe(tr *nodes.Traits) {
	if x.HTML == nil && x.JSON == nil && x.Text == nil && len(x.Markers) == 0 && len(x.Sections) == 0 {
		tr.Problemf("", "want at least one of html, json, text, markers, sections")
	}
	if h := x.HTML; h != nil {
		tr.Write("html.to", h.To)
		tr.Read(h.previous())
		tr.Output("html", "changed", "bool")
		tr.Output("html", "chars", "int")
	}
	if j := x.JSON; j != nil {
		tr.Write("json.to", j.To)
		for _, name := range slices.Sorted(maps.Keys(j.Values)) {
			tr.Output("json.values."+name, name, j.Values[name].Type)
		}
	}
	if t := x.Text; t != nil {
		tr.Write("text.to", t.To)
		tr.Output("text.value", t.Value, "string")
		if t.To == "" && t.Value == "" {
			tr.Problemf("text", "want at least one of to and value")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.Markers)) {
		m := x.Markers[name]
		tr.Write("markers."+name+".to", m.To)
		if m.Start == m.End || m.Start == "" || m.End == "" {
			tr.Problemf("markers."+name, "start and end must be two different texts")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.Sections)) {
		sec := x.Sections[name]
		tr.Write("sections."+name+".to", sec.To)
		tr.Output("sections."+name+".value", sec.Value, "string?")
		if _, both := x.Markers[name]; both {
			tr.Problemf("sections."+name, "markers have this name too")
		}
	}
}
