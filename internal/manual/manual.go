// Package manual says what the format of specifications means: one name at a time for `dagrun explain`, and as the
// pages of docs/reference. All of it is generated: from the comments, types and defaults of the schemas, the table of
// categories, and the reference of the language of expressions. It reads no specification and no run.
package manual

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// An Entry is what there is to say of one name.
type Entry struct {
	Name     string   `json:"name"` // as it is asked for: exec.exit
	Is       string   `json:"is"`   // what it is: a kind of node, a field, ...
	Type     string   `json:"type,omitempty"`
	Required bool     `json:"required,omitempty"`
	Default  string   `json:"default,omitempty"`
	Doc      string   `json:"doc,omitempty"`
	Example  string   `json:"example,omitempty"`
	Fields   []Entry  `json:"fields,omitempty"`
	See      []string `json:"see,omitempty"` // other names to ask for
}

// A Manual explains one schema.
type Manual struct{ s *schema.Schema }

// New returns the manual of a schema.
func New(s *schema.Schema) *Manual { return &Manual{s} }

// The definitions whose fields nobody has to say the owner of: reads is node.reads.
const (
	pipeline = "pipeline"
	node     = "node"
)

// Explain returns what there is to say of a name: a kind, a definition, a field by its path, "category NAME",
// "expressions". The words are parts of the path too. The error of an unknown name has the nearest one.
func (m *Manual) Explain(words []string) (Entry, error) {
	path := strings.FieldsFunc(strings.Join(words, "."), func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
	if len(path) == 0 {
		return m.overview(), nil
	}
	asked := path[0]
	path[0] = strings.ToLower(asked[:1]) + asked[1:] // ExecStdin, as types are named, is execStdin
	switch path[0] {
	case "category", "categories":
		return m.category(path[1:])
	case "expressions", "expression":
		return m.expressions(path[1:])
	}
	e, rule := m.root(path[0])
	if e.Name == "" {
		paths := m.called(asked)
		switch {
		case len(paths) == 1:
			return m.Explain(append(paths, path[1:]...))
		case len(paths) > 1:
			return Entry{}, fmt.Errorf("several fields are called %q: %s", asked, strings.Join(paths, ", "))
		}
		return Entry{}, fmt.Errorf("nothing is known of %q%s", asked,
			cmp.Or(rules.DidYouMean(asked, m.Names()), "; `dagrun explain` lists what there is"))
	}
	for i, name := range path[1:] {
		f, found := field(rule, name)
		if kind := slices.Contains(m.s.Kinds, path[0]); !found && i == 0 && kind && m.s.Rule("Node").Field(name) != nil {
			return m.Explain(append([]string{node}, path[1:]...)) // exec.reads stands beside the settings
		}
		if !found {
			return Entry{}, fmt.Errorf("%s has no field %q%s", e.Name, name, rules.OrKnown(name, fieldNames(rule)))
		}
		e = m.field(e.Name, f)
		rule = f.Rule
		if f.By != "" {
			rule = m.kinds()
		}
	}
	for _, f := range allFields(rule) {
		e.Fields = append(e.Fields, m.field(e.Name, f))
	}
	return e, nil
}

// called returns the paths of the fields that have a name, but for those of nodes and pipelines.
func (m *Manual) called(name string) (paths []string) {
	for _, kind := range m.s.Kinds {
		if m.s.Settings(kind).Field(name) != nil {
			paths = append(paths, kind+"."+name)
		}
	}
	for _, d := range m.s.Definitions() {
		if !isHelper(d, m.s.Kinds) && m.s.Rule(d).Field(name) != nil {
			paths = append(paths, strings.ToLower(d[:1])+d[1:]+"."+name)
		}
	}
	return paths
}

// root returns what stands at the beginning of a path, and its rule; nothing where there is no such name.
func (m *Manual) root(name string) (Entry, *rules.Rule) {
	if slices.Contains(m.s.Kinds, name) {
		r := m.s.Settings(name)
		doc, example := split(r.Doc)
		return Entry{Name: name, Is: "a kind of node; its settings stand under `with`", Doc: doc, Example: example,
			See: []string{node}}, r
	}
	is := map[string]string{pipeline: "a specification", node: "a node of a pipeline"}
	var see []string
	for _, owner := range []string{node, pipeline} {
		if f := m.s.Rule(title(owner)).Field(name); f != nil {
			see = append(see, owner+"."+name)
		}
	}
	if r := m.s.Rule(title(name)); r != nil {
		doc, example := split(r.Doc)
		e := Entry{Name: name, Is: is[name], Type: typeOf(r), Doc: doc, Example: example, See: see}
		if e.Is == "" {
			e.Is = "a definition of the format"
		}
		return e, r
	}
	if len(see) == 0 {
		return Entry{}, nil
	}
	owner, _, _ := strings.Cut(see[0], ".")
	f := m.s.Rule(title(owner)).Field(name)
	e := m.field(owner, member{f, title(owner)})
	e.See = see[1:]
	return e, f.Rule
}

// Names are the names that Explain knows and that stand alone.
func (m *Manual) Names() []string {
	names := append(slices.Clone(m.s.Kinds), pipeline, node, "category", "expressions")
	for _, owner := range []string{node, pipeline} {
		names = append(names, fieldNames(m.s.Rule(title(owner)))...)
	}
	for _, d := range m.s.Definitions() {
		if name := strings.ToLower(d[:1]) + d[1:]; !isHelper(d, m.s.Kinds) && title(name) == d {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Continue returns what may stand next on a command line behind these words.
func (m *Manual) Continue(words []string) []string {
	switch {
	case len(words) == 0:
		return m.Names()
	case len(words) == 1 && words[0] == "category":
		return m.categories()
	}
	return nil
}

func (m *Manual) categories() (names []string) {
	for _, row := range m.s.Categories.Fields {
		names = append(names, row.Name)
	}
	return names
}

// isHelper says whether a definition belongs to a kind, or makes the list of kinds.
func isHelper(definition string, kinds []string) bool {
	isOf := func(kind string) bool { return strings.HasPrefix(definition, title(kind)) }
	return strings.HasSuffix(definition, "Kinds") || definition == "Kind" || slices.ContainsFunc(kinds, isOf)
}

func (m *Manual) overview() Entry {
	e := Entry{Name: "dagrun explain", Is: "what can be explained", Doc: "A name, or the path of a field: " +
		"exec, exec.exit, node.retry, pipeline.budget, retry.on."}
	for _, k := range m.s.Kinds {
		e.Fields = append(e.Fields, Entry{Name: k, Is: "kind", Doc: sentence(m.s.Settings(k).Doc)})
	}
	for _, owner := range []string{pipeline, node} {
		e.Fields = append(e.Fields, Entry{Name: owner, Is: "fields", Doc: sentence(m.s.Rule(title(owner)).Doc)})
	}
	e.Fields = append(e.Fields,
		Entry{Name: "category", Is: "failures", Doc: "What each category of failure means, and what to do about it."},
		Entry{Name: "expressions", Is: "language", Doc: "Conditions, ${...}, functions, and what stands where."})
	return e
}

// kinds is the rule of `with`: a field for each kind.
func (m *Manual) kinds() *rules.Rule {
	r := &rules.Rule{}
	for _, k := range m.s.Kinds {
		rule := m.s.Settings(k)
		r.Fields = append(r.Fields, rules.Field{Name: k, Rule: rule, Doc: sentence(rule.Doc)})
	}
	return r
}

func (m *Manual) field(owner string, f member) Entry {
	doc, example := split(f.Doc)
	if doc == "" {
		doc, _ = split(m.inherited(f))
	}
	more, other := split(named(f.Rule).Doc)
	if doc == "" {
		doc = more
	} else if more != "" {
		doc += "\n\n" + more
	}
	if example == "" && !slices.Contains(m.s.Kinds, strings.ToLower(named(f.Rule).Name)) { // a kind's is a whole node
		example = other
	}
	e := Entry{Name: owner + "." + f.Name, Is: "a field of " + owner, Type: typeOf(f.Rule), Required: f.Required,
		Doc: doc, Example: example}
	if f.By != "" {
		e.Type = "the settings of the kind"
	}
	if f.Default != nil && (f.Default.Kind != tree.Map && f.Default.Kind != tree.List || len(f.Default.Items) > 0) {
		e.Default = string(f.Default.AppendJSON(nil))
	}
	return e
}

// A member is a field and the definition in which it stands.
type member struct {
	*rules.Field
	in string
}

// inherited is the comment of the field of that name in the definition whose name the own one's begins with: what one
// provider alone is given (AgentOwn) means what it means for all (Agent).
func (m *Manual) inherited(f member) string {
	for _, d := range m.s.Definitions() {
		if other := m.s.Rule(d).Field(f.Name); other != nil && d != f.in && strings.HasPrefix(f.in, d) {
			return other.Doc
		}
	}
	return ""
}

// named is the definition that a field refers to, or that its items do.
func named(r *rules.Rule) *rules.Rule {
	for r.Name == "" && r.Items != nil && len(r.Prefix) == 0 {
		r = r.Items
	}
	for r.Name == "" && len(r.Fields) == 0 && len(r.Patterns) == 1 {
		r = r.Patterns[0].Rule
	}
	if r.Name == "Name" || r.Name == "ID" { // said by the type
		return &rules.Rule{}
	}
	return r
}

// allFields are the fields of a value, of its items, or of any form that it may have.
func allFields(r *rules.Rule) []member { return fieldsIn(r, "") }

func fieldsIn(r *rules.Rule, in string) (out []member) {
	if r == nil {
		return nil
	}
	in = cmp.Or(r.Name, in)
	for i := range r.Fields {
		out = append(out, member{&r.Fields[i], in})
	}
	for _, a := range r.AnyOf {
		out = append(out, fieldsIn(a, in)...)
	}
	for _, p := range r.Patterns {
		out = append(out, fieldsIn(p.Rule, in)...)
	}
	return append(out, fieldsIn(r.Items, in)...)
}

func field(r *rules.Rule, name string) (member, bool) {
	all := allFields(r)
	if i := slices.IndexFunc(all, func(f member) bool { return f.Name == name }); i >= 0 {
		return all[i], true
	}
	return member{}, false
}

func fieldNames(r *rules.Rule) (names []string) {
	for _, f := range allFields(r) {
		names = append(names, f.Name)
	}
	return names
}

// split takes the example off a comment: what stands behind "Example:" at the beginning of a line.
func split(doc string) (text, example string) {
	text, example, found := strings.Cut("\n"+doc, "\nExample:")
	if !found {
		return doc, ""
	}
	example = strings.ReplaceAll(strings.TrimPrefix(example, " "), "\n\t", "\n")
	return strings.TrimSpace(text), strings.Trim(strings.ReplaceAll(example, "\t", "  "), "\n")
}

// sentence is the first sentence of a comment.
func sentence(doc string) string {
	doc, _ = split(doc)
	doc, _, _ = strings.Cut(doc, "\n\n")
	doc = strings.Join(strings.Fields(doc), " ")
	for at := 0; ; {
		i := strings.Index(doc[at:], ". ")
		if i < 0 {
			return doc
		}
		if at += i + 2; at < len(doc) && !unicode.IsLower(rune(doc[at])) && !strings.HasSuffix(doc[:at], "e.g. ") {
			return doc[:at-1]
		}
	}
}

func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }
