package http

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"dagrun.dev/internal/printable"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
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
	accept.From                 // a text, an artifact or a file
	JSON        json.RawMessage `json:"json"`
	Type        string          `json:"type"`
}

type value struct {
	At   string `json:"at"`
	Type string `json:"type"`
}

func (s *settings) safe() bool { return s.Method == http.MethodGet || s.Method == http.MethodHead }

func (s *settings) Traits() nodes.Traits {
	tr := nodes.Traits{
		Effect: "once", Ambient: true, Does: s.Method + " " + s.shown(),
		Outputs: map[string]string{"status": "int", "bytes": "int", "content_type": "string"},
	}
	if s.safe() {
		tr.Effect = "pure"
	}
	if !strings.Contains(s.URL, "${") {
		if err := httpc.CheckURL(s.URL); err != nil {
			tr.Problemf("url", "%v", err)
		}
	}
	tr.Write("to", s.To)
	if b := s.Body; b != nil {
		tr.OneOf("body", "json, text, artifact, file", b.JSON != nil, b.Text != nil, b.Artifact != "", b.File != "")
		tr.Read(b.Artifact)
		tr.File(b.File)
		if s.safe() {
			tr.Problemf("body", "a %s has none", s.Method)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Values)) {
		if _, taken := tr.Outputs[name]; taken {
			tr.Problemf("values."+name, "the node has a value of this name anyway")
		}
		tr.Outputs[name] = s.Values[name].kind()
	}
	s.secrets(&tr)
	return tr
}

func (v value) kind() string { return cmp.Or(v.Type, "string") }

func (s *settings) secrets(tr *nodes.Traits) {
	set := map[string]bool{}
	for name := range s.Headers {
		set[http.CanonicalHeaderKey(name)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		if header := http.CanonicalHeaderKey(name); set[header] {
			tr.Problemf("secrets."+name, "the header is set by headers too")
		} else {
			set[header] = true
		}
		tr.Secret(s.Secrets[name])
	}
	if s.Bearer != "" && set["Authorization"] {
		tr.Problemf("bearer", "the header Authorization is set already")
	}
	tr.Secret(s.Bearer)
	slices.Sort(tr.Secrets)
}

// shown is the address without what may be a credential: user, password and parameters.
func (s *settings) shown() string {
	address, query, asks := strings.Cut(s.URL, "?")
	if scheme, rest, ok := strings.Cut(address, "://"); ok {
		host, path, _ := strings.Cut(rest, "/")
		address = scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + path
	}
	if asks && query != "" {
		address += "?..."
	}
	return printable.Clip(printable.Line(address), 100)
}
