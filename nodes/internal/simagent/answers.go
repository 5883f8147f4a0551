package simagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dagrun.dev/internal/tree"
	"dagrun.dev/internal/yamltree"
	"dagrun.dev/nodes"
)

// An entry is one element of an answers file.
type entry struct {
	Match   map[string]values `json:"match"`
	Answer  string            `json:"answer"`
	File    string            `json:"file"`
	Usage   *nodes.Usage      `json:"usage"`
	CostUSD *float64          `json:"costUSD"`
	Delay   *nodes.Duration   `json:"delay"`
	Write   map[string]string `json:"write"`
}

// values are one text or a list of texts; numbers and truth values are taken as written.
type values []string

// UnmarshalJSON reads either.
func (v *values) UnmarshalJSON(b []byte) error {
	list := []json.RawMessage{b}
	if b[0] == '[' {
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
	}
	for _, item := range list {
		switch {
		case item[0] == '"':
			var s string
			if err := json.Unmarshal(item, &s); err != nil {
				return err
			}
			*v = append(*v, s)
		case item[0] == '{' || item[0] == '[' || bytes.Equal(item, []byte("null")):
			return fmt.Errorf("want a text or a list of texts, not %s", item)
		default:
			*v = append(*v, string(item))
		}
	}
	return nil
}

// find returns the first entry that fits, and the folder of the answers.
func (a *agent) find() (*entry, string, error) {
	file := beside(a.Dir, a.Answers)
	list, err := readYAML[entry](file)
	if err != nil {
		return nil, "", err
	}
	for i := range list {
		if a.fits(list[i].Match) {
			return &list[i], filepath.Dir(file), nil
		}
	}
	var who []string
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		who = append(who, name+"="+a.Labels[name])
	}
	return nil, "", fmt.Errorf("%s: no answer fits node=%s generation=%d %s",
		a.Answers, a.Node, a.Generation, strings.Join(who, " "))
}

func (a *agent) fits(match map[string]values) bool {
	for name, patterns := range match {
		if !anyMatch(patterns, a.label(name)) {
			return false
		}
	}
	return true
}

func anyMatch(patterns []string, value string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, value)
		return p == value || p == "**" || err == nil && ok
	})
}

// beside is a file named relative to a folder.
func beside(dir, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(dir, file)
}

// readYAML reads a list; unknown fields are mistakes.
func readYAML[T any](file string) ([]T, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	v, _, err := yamltree.Parse(filepath.Base(file), b, tree.Defaults)
	if err != nil {
		return nil, err
	}
	var list []T
	d := json.NewDecoder(bytes.NewReader(v.AppendJSON(nil)))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return list, nil
}
