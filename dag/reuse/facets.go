package reuse

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dagrun.dev/dag"
)

// A definition is a node in its plan and, of a node that failed, the categories of its failures.
type definition struct {
	plan   *dag.Plan
	node   *dag.Node
	failed []string
}

// A facet is one thing that a definition says: what a plan names when it differs, and what is compared.
type facet struct {
	name string
	does consequence
	// write appends what is said, so that equal bytes mean the same; nothing where nothing is said. The bytes of
	// those with consequence redo are in the fingerprints that logs hold and must never change.
	write func(b []byte, d *definition) []byte
	// show adds how two definitions differ, for people.
	show func(c *changes, name string, was, is *definition)
}

// A consequence is what a different facet does to a node that has ended.
type consequence uint8

const (
	redo   consequence = iota // it runs again: another result is possible. These make the fingerprint
	refail                    // what failed is decided again; a success is good whatever had been done about a failure
	recall                    // what it saw, or when it started, may have let it end otherwise: see starts
)

// facets are all that matters of a definition. Labels, titles, groups, folders, priorities and pools do not: no
// result depends on them. What follows from another field (dynamic, paid, account, call) is not here twice.
var facets = []facet{
	text("kind", redo, func(n *dag.Node) string { return n.Kind }),
	{"with", redo, func(b []byte, d *definition) []byte { return append(b, d.node.With...) }, // canonical
		func(c *changes, name string, was, is *definition) { c.json(name, was.node.With, is.node.With) }},
	{"files", redo, func(b []byte, d *definition) []byte { return listed(b, files(d)) }, showFiles},
	{"inputs", redo, func(b []byte, d *definition) []byte { return listed(b, inputs(d)) }, showInputs},
	{"reads", redo, func(b []byte, d *definition) []byte { return listed(b, caps(d)) }, showReads},
	names("writes", func(n *dag.Node) []string { return n.Writes }),
	value("publish", redo, func(d *definition) (any, bool) { return d.node.Publish, len(d.node.Publish) > 0 }),
	names("appends", func(n *dag.Node) []string { return n.Appends }),
	value("outputs", redo, func(d *definition) (any, bool) { return d.node.Outputs, len(d.node.Outputs) > 0 }),
	{"needs", redo, writeNeeds, showNeeds},
	text("when", redo, func(n *dag.Node) string { return n.When }),
	value("foreach", redo, func(d *definition) (any, bool) {
		if d.node.Foreach == nil {
			return nil, false
		}
		f := *d.node.Foreach
		f.Expect, f.Item = 0, nil // no item depends on them
		return &f, true
	}),
	{"params", redo, func(b []byte, d *definition) []byte { return listed(b, paramsRead(d)) },
		func(c *changes, name string, was, is *definition) { c.value(name, paramValues(was), paramValues(is)) }},
	names("secrets", func(n *dag.Node) []string { return n.Secrets }),
	value("seed", redo, func(d *definition) (any, bool) { return d.plan.Seed, d.plan.Seed != 0 }),

	{"onFail", refail, writeOnFail, func(c *changes, name string, was, is *definition) {
		c.text(name, string(was.node.OnFail), string(is.node.OnFail))
	}},
	value("retry", refail, func(d *definition) (any, bool) { return retryFor(d), true }),
	value("timeout", refail, func(d *definition) (any, bool) { return d.node.Timeout, d.node.Timeout != dag.Timeout{} }),
	{"breaker", refail, func(b []byte, d *definition) []byte {
		spec, ok := d.plan.BreakerByName(d.node.Breaker)
		if !ok {
			return b
		}
		return lines(b, spec)
	}, showBreaker},
	value("salvage", refail, func(d *definition) (any, bool) { return d.node.Salvage, d.node.Salvage != nil }),
	value("compensate", refail, func(d *definition) (any, bool) { return d.node.Undo, d.node.Undo != nil }),
	value("optional", refail, func(d *definition) (any, bool) { return d.node.Optional, len(d.node.Optional) > 0 }),
	value("back", refail, func(d *definition) (any, bool) { return d.node.Back, d.node.Back != nil }),
	value("again", refail, func(d *definition) (any, bool) { return d.node.Again, d.node.Again > 0 }),
	value("reserve", refail, func(d *definition) (any, bool) { return d.node.Reserve, d.node.Reserve != dag.Amount{} }),
	text("effect", refail, func(n *dag.Node) string { return string(n.Effect) }),
	value("categories", refail, func(d *definition) (any, bool) { return categories(d), len(d.failed) > 0 }),

	value("always", recall, func(d *definition) (any, bool) { return d.node.Always, true }),
	{"ambient", recall, func(b []byte, d *definition) []byte { return strconv.AppendBool(b, d.node.Ambient) },
		showAmbient},
	value("waitAll", recall, func(d *definition) (any, bool) { return d.node.WaitAll, true }),
}

// starts reports whether a facet of consequence recall, which differs, may have let a node end otherwise.
func starts(name string, was, is *dag.Node, r *Record) bool {
	switch {
	case !r.has():
		return false
	case name == "always": // a success without it was a success of all that it needs
		return was.Always || r.Stale || r.End != Completed
	case name == "ambient":
		return is.Ambient // what it saw was not recorded
	}
	return true
}

// differing names the facets of a consequence that two definitions differ in: those of the new one in their order,
// then those of which it says nothing any more.
func differing(does consequence, was, is *definition) (list []string) {
	var a, b []byte
	var gone []string
	for k := range facets {
		f := &facets[k]
		if f.does != does {
			continue
		}
		a, b = f.write(a[:0], was), f.write(b[:0], is)
		switch {
		case string(a) == string(b):
		case len(b) == 0:
			gone = append(gone, f.name)
		default:
			list = append(list, f.name)
		}
	}
	return append(list, gone...)
}

func text(name string, does consequence, get func(*dag.Node) string) facet {
	return facet{name, does, func(b []byte, d *definition) []byte { return append(b, get(d.node)...) },
		func(c *changes, name string, was, is *definition) { c.text(name, get(was.node), get(is.node)) }}
}

// names is a facet of names whose order means nothing.
func names(name string, get func(*dag.Node) []string) facet {
	return facet{name, redo, func(b []byte, d *definition) []byte { return quoted(b, get(d.node)) },
		func(c *changes, name string, was, is *definition) { c.set(name, get(was.node), get(is.node)) }}
}

// value is a facet that is compared by its JSON, where it is said.
func value(name string, does consequence, get func(*definition) (v any, said bool)) facet {
	write := func(b []byte, d *definition) []byte {
		if v, said := get(d); said {
			return lines(b, v)
		}
		return b
	}
	return facet{name, does, write, func(c *changes, name string, was, is *definition) {
		a, _ := get(was)
		b, _ := get(is)
		c.value(name, a, b)
	}}
}

// listed appends a list, unless it is empty.
func listed[T any](b []byte, list []T) []byte {
	if len(list) == 0 {
		return b
	}
	return lines(b, list)
}

// lines appends the canonical JSON of values, a line each.
func lines(b []byte, values ...any) []byte {
	for _, v := range values {
		next, err := dag.AppendJSON(b, v)
		if err != nil { // not in a compiled plan: told apart by why
			next = append(b, err.Error()...)
		}
		b = append(next, '\n')
	}
	return b
}

func quoted(b []byte, names []string) []byte {
	for _, s := range sorted(names) {
		b = append(strconv.AppendQuote(b, s), '\n')
	}
	return b
}

func sorted(s []string) []string {
	if slices.IsSorted(s) {
		return s
	}
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func writeOnFail(b []byte, d *definition) []byte {
	if d.node.OnFail == dag.FailRun { // what none means
		return b
	}
	return append(b, string(d.node.OnFail)...)
}

func writeNeeds(b []byte, d *definition) []byte {
	if n := d.node; n.AtLeast > 0 || len(n.History) > 0 {
		return lines(b, sorted(n.Needs), n.AtLeast, sorted(n.History))
	}
	return quoted(b, d.node.Needs)
}

// files pairs the paths of a node's input files with the digests of their contents.
func files(d *definition) []string {
	out := make([]string, 0, len(d.node.Files))
	for _, path := range sorted(d.node.Files) {
		digest := "?"
		if f, ok := d.plan.FileByPath(path); ok {
			digest = f.Digest
		}
		out = append(out, path+" "+digest)
	}
	return out
}

// inputs pairs the paths of the files beside the specification with the digests of their contents. Which files a node
// with a foreach names for its items says nothing about itself.
func inputs(d *definition) (out []string) {
	if d.node.Foreach != nil {
		return nil
	}
	for _, f := range d.plan.InputsOf(d.node) {
		out = append(out, f.Path+" "+f.Digest)
	}
	return out
}

// capped is an accumulator with its cap, which changes what a reader sees. An artifact has none.
type capped struct {
	Name string `json:"name"`
	Cap  int    `json:"cap"`
}

func caps(d *definition) []capped {
	out := make([]capped, 0, len(d.node.Reads))
	for _, name := range sorted(d.node.Reads) {
		out = append(out, capped{name, capOf(d.plan, name)})
	}
	return out
}

func capOf(p *dag.Plan, name string) int {
	if a, ok := p.AccumulatorByName(name); ok {
		return a.Cap
	}
	return 0
}

// paramRef finds what expressions read of the parameters: params.a.b.
var paramRef = regexp.MustCompile(`\bparams((?:\.[A-Za-z_][A-Za-z0-9_]*)*)`)

// paramsRead returns the parameters that expressions of n read when it runs. Those that were filled in when the plan
// was made are part of its settings already.
func paramsRead(d *definition) []dag.Param {
	n := d.node
	texts := []string{n.When, string(n.With)}
	if n.Foreach != nil {
		texts = append(texts, n.Foreach.In, n.Foreach.Key, string(n.Foreach.Template))
	}
	return ParamsIn(d.plan, texts...)
}

// ParamsIn returns the parameters of a plan that expressions in texts read.
func ParamsIn(p *dag.Plan, texts ...string) []dag.Param {
	if len(p.Params) == 0 {
		return nil
	}
	var read []string // dotted, each with a dot in front; "" is all of them
	for _, text := range texts {
		if !strings.Contains(text, "params") {
			continue
		}
		for _, m := range paramRef.FindAllStringSubmatch(text, -1) {
			read = append(read, m[1])
		}
	}
	var out []dag.Param
	for _, param := range p.Params {
		name := "." + param.Name + "."
		if slices.ContainsFunc(read, func(r string) bool {
			return strings.HasPrefix(name, r+".") || strings.HasPrefix(r+".", name)
		}) {
			out = append(out, param)
		}
	}
	return out
}

func paramValues(d *definition) map[string]json.RawMessage {
	values := map[string]json.RawMessage{}
	for _, p := range paramsRead(d) {
		values[p.Name] = p.Value
	}
	return values
}

// retryFor is a node's retry policy without what it says of categories in which it did not fail.
func retryFor(d *definition) dag.Retry {
	r := d.node.Retry
	r.On = slices.DeleteFunc(slices.Clone(r.On), func(c dag.CategoryPolicy) bool {
		return !slices.Contains(d.failed, c.Category)
	})
	return r
}

// categories are what the plan says of the categories in which a node failed.
func categories(d *definition) map[string]*dag.Category {
	table := map[string]*dag.Category{}
	for _, name := range d.failed {
		table[name], _ = d.plan.CategoryByName(name)
	}
	return table
}
