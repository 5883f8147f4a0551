package run

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dagrun.dev/dag"
)

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

// changes says what the named parts of two nodes' fingerprints differ in.
func (c *comparison) changes(o, n int32, parts []string) []Change {
	x := changeList{}
	a, b := c.old.Node(o), c.new.Node(n)
	for _, part := range parts {
		switch part {
		case "kind":
			x.text(part, a.Kind, b.Kind)
		case "with":
			x.json(part, a.With, b.With)
		case "files":
			x.files(c.old.Plan, c.new.Plan, a.Files, b.Files)
		case "reads":
			x.set(part, a.Reads, b.Reads)
			x.caps(c.old.Plan, c.new.Plan, b.Reads)
		case "writes":
			x.set(part, a.Writes, b.Writes)
		case "appends":
			x.set(part, a.Appends, b.Appends)
		case "outputs":
			x.value(part, a.Outputs, b.Outputs)
		case "needs":
			x.set(part, a.Needs, b.Needs)
			x.value("atLeast", a.AtLeast, b.AtLeast)
			x.set("history", a.History, b.History)
		case "when":
			x.text(part, a.When, b.When)
		case "foreach":
			x.value(part, a.Foreach, b.Foreach)
		case "params":
			x.params(dag.ParamsRead(c.old.Plan, a), dag.ParamsRead(c.new.Plan, b))
		case "secrets":
			x.set(part, a.Secrets, b.Secrets)
		case "seed":
			x.value(part, c.old.Plan.Seed, c.new.Plan.Seed)
		default:
			c.policyChanges(&x, o, n, part)
		}
	}
	if len(x) > changesMost {
		more := len(x) - changesMost + 1
		x = append(x[:changesMost-1], Change{Path: fmt.Sprintf("and %d more", more)})
	}
	return x
}

// policyChanges says what a part differs in that decides how failures end, or when a node starts.
func (c *comparison) policyChanges(x *changeList, o, n int32, part string) {
	a, b := c.old.Node(o), c.new.Node(n)
	categories, _ := c.st.FailureAt(o)
	switch part {
	case "onFail":
		x.text(part, string(a.OnFail), string(b.OnFail))
	case "retry":
		x.value(part, dag.RetryFor(a, categories), dag.RetryFor(b, categories))
	case "timeout":
		x.value(part, a.Timeout, b.Timeout)
	case "breaker":
		x.text(part, a.Breaker, b.Breaker)
		f, _ := c.old.Plan.BreakerByName(a.Breaker)
		g, _ := c.new.Plan.BreakerByName(b.Breaker)
		if a.Breaker == b.Breaker {
			x.value("breakers."+a.Breaker, f, g)
		}
	case "compensate":
		x.value(part, a.Undo, b.Undo)
	case "again":
		x.value(part, a.Again, b.Again)
	case "reserve":
		x.value(part, a.Reserve, b.Reserve)
	case "effect":
		x.text(part, string(a.Effect), string(b.Effect))
	case "ambient":
		x.text("effect", string(a.Effect), string(b.Effect))
		if a.Effect == b.Effect {
			x.value(part, a.Ambient, b.Ambient)
		}
	case "always":
		x.value(part, a.Always, b.Always)
	case "waitAll":
		x.value(part, a.WaitAll, b.WaitAll)
	case "categories":
		for _, name := range categories {
			f, _ := c.old.Plan.CategoryByName(name)
			g, _ := c.new.Plan.CategoryByName(name)
			x.value(part+"."+name, f, g)
		}
	}
}

type changeList []Change

// text compares two texts.
func (x *changeList) text(path, a, b string) {
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
	*x = append(*x, Change{path, shown(path, a, from), shown(path, b, from)})
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
func (x *changeList) value(path string, a, b any) {
	old, _ := dag.AppendJSON(nil, a)
	now, _ := dag.AppendJSON(nil, b)
	x.json(path, old, now)
}

// json compares two JSON values down to where they differ.
func (x *changeList) json(path string, a, b json.RawMessage) {
	x.tree(path, decoded(a), decoded(b))
}

func decoded(raw json.RawMessage) (v any) {
	if len(raw) > 0 {
		_ = json.Unmarshal(raw, &v) // a plan holds no other
	}
	return v
}

func (x *changeList) tree(path string, a, b any) {
	m, old := a.(map[string]any)
	n, now := b.(map[string]any)
	if old && (now || b == nil) || now && a == nil {
		keys := maps.Clone(m)
		if keys == nil {
			keys = map[string]any{}
		}
		maps.Copy(keys, n)
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			x.tree(path+"."+k, m[k], n[k])
		}
		return
	}
	if list, ok := a.([]any); ok {
		if other, ok := b.([]any); ok {
			for k := range max(len(list), len(other)) {
				x.tree(fmt.Sprintf("%s[%d]", path, k), at(list, k), at(other, k))
			}
			return
		}
	}
	x.leaf(path, a, b)
}

func at(list []any, k int) any {
	if k < len(list) {
		return list[k]
	}
	return nil
}

func (x *changeList) leaf(path string, a, b any) {
	s, isText := a.(string)
	t, both := b.(string)
	if isText && both && s != "" && t != "" {
		x.text(path, s, t)
		return
	}
	if s, t = displayed(path, a), displayed(path, b); s != t {
		*x = append(*x, Change{path, s, t})
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
func (x *changeList) set(path string, a, b []string) {
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
		*x = append(*x, Change{path, clipped(gone), clipped(more)})
	}
}

func clipped(names []string) string {
	s := strings.Join(names, ", ")
	if r := []rune(s); len(r) > valueMost {
		return string(r[:valueMost]) + "..."
	}
	return s
}

func (x *changeList) files(p, q *dag.Plan, a, b []string) {
	x.set("files", a, b)
	for _, name := range b {
		f, was := p.FileByPath(name)
		g, is := q.FileByPath(name)
		if was && is && f.Digest != g.Digest && slices.Contains(a, name) {
			*x = append(*x, Change{"files." + name, "sha256 " + short(f.Digest), short(g.Digest)})
		}
	}
}

func short(digest string) string { return digest[:min(len(digest), 8)] }

func (x *changeList) caps(p, q *dag.Plan, names []string) {
	for _, name := range names {
		f, _ := accumulator(p, name)
		g, _ := accumulator(q, name)
		if f.Cap != g.Cap {
			x.value("accumulators."+name+".cap", f.Cap, g.Cap)
		}
	}
}

func (x *changeList) params(a, b []dag.Param) {
	values := map[string][2]json.RawMessage{}
	for _, p := range a {
		values[p.Name] = [2]json.RawMessage{p.Value, nil}
	}
	for _, p := range b {
		values[p.Name] = [2]json.RawMessage{values[p.Name][0], p.Value}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		x.json("params."+name, values[name][0], values[name][1])
	}
}
