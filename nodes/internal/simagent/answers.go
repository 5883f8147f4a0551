package simagent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// An entry is one element of an answers file.
type entry struct {
	Match   map[string]values `yaml:"match"`
	Answer  string            `yaml:"answer"`
	File    string            `yaml:"file"`
	Usage   *Usage            `yaml:"usage"`
	CostUSD *float64          `yaml:"costUSD"`
	Delay   *duration         `yaml:"delay"`
	Write   map[string]string `yaml:"write"`
}

// values are one text or a list of texts; numbers and truth values are taken as written.
type values []string

// UnmarshalYAML reads either.
func (v *values) UnmarshalYAML(n *yaml.Node) error {
	switch n.Kind {
	case yaml.ScalarNode:
		*v = values{n.Value}
		return nil
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return fmt.Errorf("line %d: want a text", item.Line)
			}
			*v = append(*v, item.Value)
		}
		return nil
	}
	return fmt.Errorf("line %d: want a text or a list of texts", n.Line)
}

type duration time.Duration

// UnmarshalYAML reads text such as 20ms.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	*d = duration(v)
	return err
}

// find returns the first entry that fits, and the folder of the answers.
func (a *agent) find() (*entry, string, error) {
	file := a.Answers
	if !filepath.IsAbs(file) {
		file = filepath.Join(a.Dir, file)
	}
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
	for _, name := range sorted(a.Labels) {
		who = append(who, name+"="+a.Labels[name])
	}
	return nil, "", fmt.Errorf("%s: no answer fits node=%s generation=%d %s", a.Answers, a.Node, a.Generation, strings.Join(who, " "))
}

func (a *agent) fits(match map[string]values) bool {
	for _, name := range sorted(match) {
		if !anyMatch(match[name], a.label(name)) {
			return false
		}
	}
	return true
}

func anyMatch(patterns []string, value string) bool {
	for _, p := range patterns {
		if p == value || p == "**" {
			return true
		}
		if ok, err := path.Match(p, value); err == nil && ok {
			return true
		}
	}
	return false
}

// readYAML reads a list; unknown fields are mistakes.
func readYAML[T any](file string) ([]T, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []T
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return list, nil
}
