package scan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/internal/glob"
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
)

// settings are #Scan in Go.
type settings struct {
	Items   string            `json:"items"`
	Root    string            `json:"root"`
	Meta    string            `json:"metadata"`
	Parse   string            `json:"parse"`
	MaxKB   int64             `json:"maxKB"`
	Content []string          `json:"content"`
	Nested  bool              `json:"nested"`
	Skip    []string          `json:"skip"`
	As      string            `json:"as"`
	Vars    map[string]string `json:"vars"`
	If      string            `json:"if"`
	Order   []string          `json:"order"`
	Take    int               `json:"take"`
	Count   string            `json:"count"`
}

func read(with json.RawMessage) (nodes.Settings, error) {
	s := &settings{Parse: "none", MaxKB: 256, As: "e", Take: 1}
	err := accept.Decode(with, s)
	if s.Skip == nil {
		s.Skip = []string{".git", "node_modules"}
	}
	return s, err
}

// fields are what is known of every item.
var fields = map[string]string{
	"path": "string", "dir": "string", "key": "string", "own": "string", "meta": "any", "problem": "string",
	"files": "int", "paths": "list", "digest": "string", "modified": "timestamp", "metadata": "string",
}

func (s *settings) Traits() nodes.Traits {
	tr := nodes.Traits{
		Effect: "pure", Ambient: true, Does: "looks for " + s.Items, Formulas: s.formulas(),
		Watch: []string{cmp.Or(s.Root, ".")},
		Outputs: map[string]string{
			"items": "list", "total": "int", "owed": "int", "problems": "int", "counts": "map", "now": "string",
		},
	}
	s.pattern(&tr, "items", s.Items)
	if _, m := up(s.Meta); !strings.Contains(m, "${") && m != "" && (path.Clean(m) != m || m == ".") {
		tr.Problemf("metadata", "want a file in its plain form, such as .meta/*.json, * being the item's name, got %q",
			s.Meta)
	}
	for i, p := range s.Content {
		s.pattern(&tr, fmt.Sprintf("content[%d]", i), p)
	}
	if r := s.Root; !strings.Contains(r, "${") && r != "" && !filepath.IsAbs(r) && !filepath.IsLocal(r) {
		tr.Problemf("root", "want a folder beside the specification, or an absolute path, got %q", r)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Vars)) {
		if _, taken := fields[name]; taken {
			tr.Problemf("vars."+name, "every item has %s.%s: take another name", s.As, name)
		}
	}
	return tr
}

// pattern checks one; leading ../ may stand in those of content.
func (s *settings) pattern(tr *nodes.Traits, at, p string) {
	if strings.Contains(p, "${") {
		return
	}
	_, rest := up(p)
	switch err := glob.Check(p); {
	case err != nil:
		tr.Problemf(at, "%v", err)
	case at == "items" && rest != p, path.Clean(rest) != rest, !filepath.IsLocal(rest), rest == ".":
		tr.Problemf(at, "want a pattern of files in its plain form, such as **/*.md, got %q", p)
	}
}

// up takes the leading ../ off a pattern and counts them.
func up(p string) (n int, rest string) {
	for strings.HasPrefix(p, "../") {
		n, p = n+1, p[3:]
	}
	return n, p
}

// formulas are the expressions of the settings: those of vars by name, then if, order and count.
func (s *settings) formulas() *nodes.Formulas {
	x := &nodes.Formulas{Var: s.As, Fields: fields, Also: map[string]string{"now": "timestamp"}}
	add := func(path, text, field string, want ...string) {
		x.List = append(x.List, nodes.FormulaText{Path: path, Text: text, Want: want, Field: field})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Vars)) {
		add("vars."+name, s.Vars[name], name)
	}
	add("if", cmp.Or(s.If, "true"), "", "bool")
	for i, text := range s.Order {
		add(fmt.Sprintf("order[%d]", i), text, "", "int", "number", "string", "bool")
	}
	add("count", cmp.Or(s.Count, "''"), "", "string", "int", "bool")
	return x
}
