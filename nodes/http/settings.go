package http

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/httpc"
)

// settings are #Http in Go.
type settings struct {
	URL     string                     `json:"url"`
	Method  string                     `json:"method"`
	Query   map[string]json.RawMessage `json:"query"`
	Headers map[string]json.RawMessage `json:"headers"`
	Secrets map[string]string          `json:"secrets"`
	Bearer  string                     `json:"bearer"`
	Body    *body                      `json:"body"`
	Expect  []int                      `json:"expect"`
	To      string                     `json:"to"`
	Values  map[string]value           `json:"values"`
	MaxMB   int64                      `json:"maxMB"`
}

type body struct {
	JSON     json.RawMessage `json:"json"`
	Text     *string         `json:"text"`
	Artifact string          `json:"artifact"`
	File     string          `json:"file"`
	Type     string          `json:"type"`
}

type value struct {
	At   string `json:"at"`
	Type string `json:"type"`
}

func (s *settings) safe() bool { return s.Method == http.MethodGet || s.Method == http.MethodHead }

func (s *settings) traits() nodes.Traits {
	tr := nodes.Traits{Effect: "once", Ambient: true, Outputs: map[string]string{"status": "int", "bytes": "int", "content_type": "string"}}
	problem := func(path, format string, args ...any) {
		tr.Problems = append(tr.Problems, nodes.Problem{Path: path, Text: fmt.Sprintf(format, args...)})
	}
	if s.safe() {
		tr.Effect = "pure"
	}
	if !strings.Contains(s.URL, "${") {
		if err := httpc.CheckURL(s.URL); err != nil {
			problem("url", "%v", err)
		}
	}
	if s.To != "" {
		tr.Writes = append(tr.Writes, s.To)
	}
	s.Body.traits(&tr, problem)
	if s.Body != nil && s.safe() {
		problem("body", "a %s has none", s.Method)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Values)) {
		if _, taken := tr.Outputs[name]; taken {
			problem("values."+name, "the node has a value of this name anyway")
		}
		tr.Outputs[name] = s.Values[name].kind()
	}
	s.secrets(&tr, problem)
	return tr
}

func (v value) kind() string {
	if v.Type == "" {
		return "string"
	}
	return v.Type
}

func (b *body) traits(tr *nodes.Traits, problem func(path, format string, args ...any)) {
	if b == nil {
		return
	}
	given := 0
	for _, is := range []bool{b.JSON != nil, b.Text != nil, b.Artifact != "", b.File != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		problem("body", "want exactly one of json, text, artifact, file")
	}
	if b.Artifact != "" {
		tr.Reads = append(tr.Reads, b.Artifact)
	}
	if b.File != "" {
		tr.Files = append(tr.Files, b.File)
	}
}

func (s *settings) secrets(tr *nodes.Traits, problem func(path, format string, args ...any)) {
	names := map[string]bool{}
	for name := range s.Headers {
		names[http.CanonicalHeaderKey(name)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		if names[http.CanonicalHeaderKey(name)] {
			problem("secrets."+name, "the header is set by headers too")
		}
		names[http.CanonicalHeaderKey(name)] = true
		tr.Secrets = append(tr.Secrets, s.Secrets[name])
	}
	if s.Bearer != "" {
		if names["Authorization"] {
			problem("bearer", "the header Authorization is set already")
		}
		tr.Secrets = append(tr.Secrets, s.Bearer)
	}
	slices.Sort(tr.Secrets)
	tr.Secrets = slices.Compact(tr.Secrets)
}
