package prompt

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

// Settings are #Prompt, of a node or a prompt block of another kind.
type Settings struct {
	File  string              `json:"file"`
	Text  *accept.Text        `json:"text"`
	Vars  map[string]variable `json:"vars"`
	Limit int64               `json:"limit"`
	Trim  []trimStep          `json:"trim"`
	To    string              `json:"to"`
}

// variable is #PromptVar: a text alone is read as {text: ...}.
type variable struct {
	accept.From              // a text, a file or an artifact
	Files       *[]inputFile `json:"files"`
	Order       string       `json:"order"`
	Accumulator string       `json:"accumulator"`
	Record      string       `json:"record"`

	First     *int         `json:"first"`
	Last      *int         `json:"last"`
	Heading   *string      `json:"heading"`
	FirstMark string       `json:"firstMark"`
	LastMark  string       `json:"lastMark"`
	Join      *string      `json:"join"`
	Before    accept.Text  `json:"before"`
	After     accept.Text  `json:"after"`
	Else      *accept.Text `json:"else"`
}

// written is the artifact or accumulator that the variable shows; empty = it shows nothing that a run has written.
func (v variable) written() string { return v.Artifact + v.Accumulator }

// inputFile is #PromptFile.
type inputFile struct {
	Path  string `json:"path"`
	Label string `json:"label"`
}

type trimStep struct {
	Var       string  `json:"var"`
	By        string  `json:"by"`
	Keep      int     `json:"keep"`
	Positions []int   `json:"positions"`
	Cut       *string `json:"cut"`
}

func (v *variable) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] != '{' {
		v.Text = new(accept.Text)
		return v.Text.UnmarshalJSON(b)
	}
	type fields variable
	return accept.Decode(b, (*fields)(v))
}

func (f *inputFile) UnmarshalJSON(b []byte) error {
	var err error
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		err = json.Unmarshal(b, &f.Path)
	} else {
		type fields inputFile
		err = accept.Decode(b, (*fields)(f))
	}
	if f.Label == "" {
		f.Label = strings.TrimSuffix(path.Base(f.Path), path.Ext(f.Path))
	}
	return err
}

// names returns the variables' names in order.
func (s *Settings) names() []string { return slices.Sorted(maps.Keys(s.Vars)) }

// name is what messages call the template.
func (s *Settings) name() string {
	if s.File != "" {
		return s.File
	}
	return "prompt text"
}

// template returns the parsed template.
func (s *Settings) template(open func(string) (io.ReadCloser, error)) (*template, error) {
	if s.File == "" {
		if s.Text == nil {
			return nil, nodes.Fail("config", "prompt: want exactly one of file, text")
		}
		return parse(s.name(), string(*s.Text)), nil
	}
	src, err := accept.ReadText(open, "file", s.File)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(src) {
		return nil, nodes.Fail("config", "template "+s.File+" is not UTF-8 text")
	}
	return parse(s.name(), src), nil
}

// chosen returns which of n files or entries are shown.
func (v *variable) chosen(n int) []int {
	var out []int
	for i := range n {
		first := v.First != nil && i < *v.First
		last := v.Last != nil && i >= n-*v.Last
		if v.First == nil && v.Last == nil || first || last {
			out = append(out, i)
		}
	}
	return out
}

// labels returns the labels of the files shown, in order.
func (v *variable) labels() []string {
	var out []string
	if v.Files != nil {
		for _, i := range v.chosen(len(*v.Files)) {
			out = append(out, (*v.Files)[i].Label)
		}
	}
	return out
}
