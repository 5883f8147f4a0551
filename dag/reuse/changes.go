package reuse

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dagrun.dev/dag"
)

// This file says in words what differs between two definitions, or two plans. Nothing is decided by it.

// A Change is one thing that differs between two definitions of a node.
type Change struct {
	Path string `json:"path"`          // with.argv[1], files.design.md, params.threshold, needs, ...
	Old  string `json:"old,omitempty"` // clipped; empty = was not there
	New  string `json:"new,omitempty"` // clipped; empty = is not there
}

func (c Change) String() string {
	switch {
	case c.Old == "" && c.New == "":
		return c.Path
	case c.Old == "":
		return c.Path + ": + " + c.New
	case c.New == "":
		return c.Path + ": - " + c.Old
	}
	return c.Path + ": " + c.Old + " -> " + c.New
}

// Bounds of what is said of a change: how many changes of a node, and how many characters of a value.
const (
	changesMost = 8
	valueMost   = 60
)

// changes are the differences of two definitions, for people.
type changes []Change

// differences says what the named facets of two definitions differ in.
func differences(was, is *definition, named []string) []Change {
	var c changes
	for _, name := range named {
		k := slices.IndexFunc(facets, func(f facet) bool { return f.name == name })
		facets[k].show(&c, name, was, is)
	}
	if len(c) > changesMost {
		more := len(c) - changesMost + 1
		c = append(c[:changesMost-1], Change{Path: fmt.Sprintf("and %d more", more)})
	}
	return c
}

func showFiles(c *changes, name string, was, is *definition) {
	c.set(name, was.node.Files, is.node.Files)
	for _, path := range is.node.Files {
		f, had := was.plan.FileByPath(path)
		g, has := is.plan.FileByPath(path)
		if had && has && f.Digest != g.Digest && slices.Contains(was.node.Files, path) {
			*c = append(*c, Change{name + "." + path, "sha256 " + short(f.Digest), short(g.Digest)})
		}
	}
}

func showInputs(c *changes, _ string, was, is *definition) {
	before := map[string]string{}
	for _, f := range was.plan.InputsOf(was.node) {
		before[f.Path] = f.Digest
	}
	for _, f := range is.plan.InputsOf(is.node) {
		switch digest, had := before[f.Path]; {
		case !had:
			*c = append(*c, Change{Path: f.Path + " is new"})
		case digest != f.Digest:
			*c = append(*c, Change{Path: f.Path + " changed"})
		}
		delete(before, f.Path)
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		*c = append(*c, Change{Path: path + " is gone"})
	}
}

func short(digest string) string { return digest[:min(len(digest), 8)] }

func showReads(c *changes, name string, was, is *definition) {
	c.set(name, was.node.Reads, is.node.Reads)
	for _, read := range is.node.Reads {
		if a, b := capOf(was.plan, read), capOf(is.plan, read); a != b {
			c.value("accumulators."+read+".cap", a, b)
		}
	}
}

func showNeeds(c *changes, name string, was, is *definition) {
	c.set(name, was.node.Needs, is.node.Needs)
	c.value("atLeast", was.node.AtLeast, is.node.AtLeast)
	c.set("history", was.node.History, is.node.History)
}

func showBreaker(c *changes, name string, was, is *definition) {
	a, b := was.node.Breaker, is.node.Breaker
	c.text(name, a, b)
	if a == b {
		f, _ := was.plan.BreakerByName(a)
		g, _ := is.plan.BreakerByName(b)
		c.value("breakers."+a, f, g)
	}
}

func showAmbient(c *changes, name string, was, is *definition) {
	a, b := was.node, is.node
	c.text("effect", string(a.Effect), string(b.Effect))
	if a.Effect == b.Effect {
		c.value(name, a.Ambient, b.Ambient)
	}
}

// text compares two texts.
func (c *changes) text(path, a, b string) {
	if a == b {
		return
	}
	from := 0 // both are shown from a little before they differ
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	if from = max(0, from-20); len(a) <= valueMost && len(b) <= valueMost {
		from = 0
	}
	*c = append(*c, Change{path, shown(path, a, from), shown(path, b, from)})
}

// secretName are names of settings and parameters whose values are nobody's business.
var secretName = regexp.MustCompile(`(?i)(secret|token|passw|api_?-?key|authorization|credential|cookie|private)`)

// shown is a value as people see it: quoted, from a byte on, clipped; a secret is not.
func shown(path, s string, from int) string {
	if s == "" {
		return ""
	}
	if at := strings.LastIndexByte(path, '.'); secretName.MatchString(path[at+1:]) {
		return "***"
	}
	for from > 0 && from < len(s) && !utf8.RuneStart(s[from]) {
		from--
	}
	from = min(from, len(s))
	before, after := "", ""
	if from > 0 {
		before = "..."
	}
	s = s[from:]
	if r := []rune(s); len(r) > valueMost {
		s, after = string(r[:valueMost]), "..."
	}
	return before + strconv.Quote(s) + after
}

// value compares anything by its JSON.
func (c *changes) value(path string, a, b any) {
	old, _ := dag.AppendJSON(nil, a)
	now, _ := dag.AppendJSON(nil, b)
	c.json(path, old, now)
}

// json compares two JSON values down to where they differ.
func (c *changes) json(path string, a, b json.RawMessage) {
	c.tree(path, decoded(a), decoded(b))
}

func decoded(raw json.RawMessage) (v any) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &v) // a plan holds no other
	}
	return v
}

func (c *changes) tree(path string, a, b any) {
	m, old := a.(map[string]any)
	n, now := b.(map[string]any)
	if old && (now || b == nil) || now && a == nil {
		keys := maps.Clone(m)
		if keys == nil {
			keys = map[string]any{}
		}
		maps.Copy(keys, n)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			c.tree(path+"."+k, m[k], n[k])
		}
		return
	}
	if list, ok := a.([]any); ok {
		if other, ok := b.([]any); ok {
			for k := range max(len(list), len(other)) {
				c.tree(fmt.Sprintf("%s[%d]", path, k), at(list, k), at(other, k))
			}
			return
		}
	}
	c.leaf(path, a, b)
}

func at(list []any, k int) any {
	if k < len(list) {
		return list[k]
	}
	return nil
}

func (c *changes) leaf(path string, a, b any) {
	s, isText := a.(string)
	t, both := b.(string)
	if isText && both && s != "" && t != "" {
		c.text(path, s, t)
		return
	}
	if s, t = displayed(path, a), displayed(path, b); s != t {
		*c = append(*c, Change{path, s, t})
	}
}

// displayed shows a JSON value; nothing for none.
func displayed(path string, v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		if v == "" {
			return `""`
		}
		return shown(path, v, 0)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "?" // nothing that was decoded
	}
	if s := string(b); len(s) > valueMost || secretName.MatchString(path) {
		return clipped([]string{strings.Trim(shown(path, s, 0), `"`)})
	}
	return string(b)
}

// set compares names whose order means nothing.
func (c *changes) set(path string, a, b []string) {
	var gone, more []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			gone = append(gone, s)
		}
	}
	for _, s := range b {
		if !slices.Contains(a, s) {
			more = append(more, s)
		}
	}
	if len(gone)+len(more) > 0 {
		*c = append(*c, Change{path, clipped(gone), clipped(more)})
	}
}

func clipped(names []string) string {
	s := strings.Join(names, ", ")
	if r := []rune(s); len(r) > valueMost {
		return string(r[:valueMost]) + "..."
	}
	return s
}

// limits names what differs between two plans outside of their nodes' fingerprints.
func limits(a, b *dag.Plan) []string {
	var list []string
	add := func(name string, x, y any) {
		if x != y { // amounts that look alike may differ
			list = append(list, fmt.Sprintf("%s %v -> %v", name, x, y))
		}
	}
	add("budget.warnUSD", a.Budget.WarnUSD, b.Budget.WarnUSD)
	add("budget.capUSD", a.Budget.CapUSD, b.Budget.CapUSD)
	add("budget.warnTokens", a.Budget.WarnTok, b.Budget.WarnTok)
	add("budget.capTokens", a.Budget.CapTokens, b.Budget.CapTokens)
	add("budget.failures", a.Budget.Failures, b.Budget.Failures)
	add("budget.wall", a.Budget.Wall.D(), b.Budget.Wall.D())
	for _, t := range []struct {
		name string
		x, y any
	}{
		{"params", a.Params, b.Params}, {"breakers", a.Breakers, b.Breakers}, {"pools", a.Pools, b.Pools},
		{"categories", a.Categories, b.Categories}, {"prices", a.Prices, b.Prices},
		{"accumulators", a.Accumulators, b.Accumulators}, {"phases", a.Phases, b.Phases},
	} {
		for _, name := range changedNames(entries(t.x), entries(t.y)) {
			list = append(list, t.name+": "+name)
		}
	}
	if !reflect.DeepEqual(a.State, b.State) {
		list = append(list, "state")
	}
	return list
}

// An entry is one of a list that a plan holds, with the field that names it.
type entry struct{ name, text string }

func entries(list any) (out []entry) {
	raw, _ := dag.AppendJSON(nil, list)
	var all []json.RawMessage
	_ = json.Unmarshal(raw, &all) // null is an empty list
	for _, e := range all {
		var key struct{ Name, Model, Group string }
		_ = json.Unmarshal(e, &key)
		out = append(out, entry{cmp.Or(key.Name, key.Model, key.Group), string(e)})
	}
	return out
}

// changedNames says which entries of two lists are not the same, those of the new one first.
func changedNames(was, is []entry) (list []string) {
	named := func(in []entry, name string) bool {
		return slices.ContainsFunc(in, func(e entry) bool { return e.name == name })
	}
	for _, e := range is {
		switch {
		case slices.Contains(was, e):
		case named(was, e.name):
			list = append(list, e.name+" changed")
		default:
			list = append(list, e.name+" added")
		}
	}
	for _, e := range was {
		if !named(is, e.name) {
			list = append(list, e.name+" removed")
		}
	}
	if len(list) == 0 && !slices.Equal(was, is) {
		list = append(list, "another order")
	}
	return list
}
