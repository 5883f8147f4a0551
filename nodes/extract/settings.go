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
	AtLeast      float64  `json:"atLeast"`
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

// Every rule is read over what the schema says of fields that are left out: settings need not have come through it.

func (h *htmlRule) UnmarshalJSON(b []byte) error {
	type fields htmlRule
	*h = htmlRule{
		Strategies: []string{"fence", "doctype", "html"},
		Policy:     "fail", Doctype: "warn", Placeholders: "fail", Controls: "fail",
		Marks: slices.Clone(defaultMarks), AtLeast: 0.5, // decoding a list writes into the one that is there
	}
	err := accept.Decode(b, (*fields)(h))
	h.Previous = cmp.Or(h.Previous, h.To)
	return err
}

func (j *jsonRule) UnmarshalJSON(b []byte) error {
	type fields jsonRule
	*j = jsonRule{Policy: "fail"}
	return accept.Decode(b, (*fields)(j))
}

func (t *textRule) UnmarshalJSON(b []byte) error {
	type fields textRule
	*t = textRule{MaxChars: mostValue, CutEnds: slices.Clone(defaultCutEnds)}
	return accept.Decode(b, (*fields)(t))
}

func (m *markers) UnmarshalJSON(b []byte) error {
	type fields markers
	*m = markers{Missing: "warn", Broken: "warn", Blocks: "join"}
	return accept.Decode(b, (*fields)(m))
}

func (x *section) UnmarshalJSON(b []byte) error {
	type fields section
	*x = section{Missing: "warn", MaxChars: mostValue}
	return accept.Decode(b, (*fields)(x))
}

const mostValue = 2000 // characters of a text that becomes a value

var (
	defaultMarks   = []string{"rest of the page unchanged", "rest unchanged", "omitted for brevity", "your content here"}
	defaultCutEnds = []string{"...", "…", "<!-- rest"}
)

// Describe reads what the compiler must know.
func (x *settings) Describe(tr *nodes.Traits) {
	if x.HTML == nil && x.JSON == nil && x.Text == nil && len(x.Markers) == 0 && len(x.Sections) == 0 {
		tr.Problemf("", "want at least one of html, json, text, markers, sections")
	}
	if h := x.HTML; h != nil {
		tr.Write("html.to", h.To)
		tr.Read(h.Previous)
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
