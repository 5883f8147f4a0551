package expr

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dagrun.dev/dag"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// A Lang is the language of one plan: the functions of baseEnv, the parameters, the facts of the
// run, and variables. It caches what it compiles; it may be used from any goroutine.
type Lang struct {
	env    *cel.Env
	vars   map[string]string // name -> type
	params map[string]*tree.Value
	names  map[string]string   // of parameters and their groups -> type
	listed map[string][]string // of parameters: all that they may be, where that is declared

	subject string            // what formulas are about, see Formulas; else empty
	fields  map[string]string // of it -> type

	adopted bool // of a plan that was taken already: statuses that do not exist are let be

	mu     sync.Mutex
	shapes map[string]*shaped
	items  map[string]*Items // by the name of their type
}

// NewLang returns the language of a plan with these parameters and further variables. The
// parameters' values are checked already; one that is not JSON is an error.
func NewLang(params []dag.Param, vars ...string) (*Lang, error) {
	env, err := baseEnv()
	if err != nil {
		return nil, err
	}
	l := &Lang{env: env, params: map[string]*tree.Value{}, names: map[string]string{}}
	for _, p := range params {
		v, err := tree.ParseJSON("", p.Value, tree.Limits{})
		if err != nil {
			return nil, fmt.Errorf("parameter %s: %w", p.Name, err)
		}
		l.params[p.Name], l.names[p.Name] = v, p.Type
		l.group(p.Name, v)
	}
	return l.With(vars...)
}

// Restrict says of parameters all that they may be, before anything is read in l or in a language made of it.
func (l *Lang) Restrict(words map[string][]string) { l.listed = words }

// groupType marks a parameter that is not declared itself: params.agent where params.agent.provider is.
const groupType = "group"

// group makes params.a readable as a map where a.b is a parameter.
func (l *Lang) group(name string, v *tree.Value) {
	for i := strings.LastIndexByte(name, '.'); i > 0; i = strings.LastIndexByte(name, '.') {
		outer, field := name[:i], name[i+1:]
		if l.params[outer] == nil {
			l.params[outer], l.names[outer] = &tree.Value{Kind: tree.Map}, groupType
		}
		l.params[outer].Set(field, tree.Pos{}, v)
		name, v = outer, l.params[outer]
	}
}

// WithItem returns the same language with the variable of a foreach, of which nothing can be read but what Item gives.
func (l *Lang) WithItem(name string) (*Lang, error) {
	out, err := l.With(name)
	if err == nil {
		out.vars[name] = itemType
	}
	return out, err
}

// With returns the same language with further variables, of any type.
func (l *Lang) With(vars ...string) (*Lang, error) {
	out := &Lang{env: l.env, params: l.params, names: l.names, listed: l.listed, adopted: l.adopted,
		shapes: map[string]*shaped{}, items: map[string]*Items{}}
	out.vars = map[string]string{}
	maps.Copy(out.vars, l.vars)
	var opts []cel.EnvOption
	for _, v := range vars {
		out.vars[v] = "any"
		opts = append(opts, cel.Variable(v, cel.DynType))
	}
	if len(opts) > 0 {
		env, err := l.env.Extend(opts...)
		if err != nil {
			return nil, err
		}
		out.env = env
	}
	return out, nil
}

// roots are the names that an expression may start with.
func (l *Lang) roots() map[string]string {
	out := maps.Clone(l.vars)
	out["nodes"], out["params"], out["run"] = "any", "any", "any"
	if l.subject != "" {
		delete(out, "nodes")
		delete(out, "run")
		out[l.subject] = "any"
	}
	return out
}

// known are the names below a root.
func (l *Lang) known(root string) map[string]string {
	if root == "run" {
		return runFacts
	}
	return l.names
}

// shaped is what all expressions of one shape share.
type shaped struct {
	src      string
	refs     []Ref
	loops    bool
	vars     bool       // it reads variables
	reads    []string   // fields of the subject, and variables
	against  [][]string // of each reference: the texts that it is compared with
	problems []string

	mu       sync.Mutex
	programs map[string]*compiled // by the functions that the references become
}

// An Expr is a parsed expression.
type Expr struct {
	lang   *Lang
	src    string
	shaped *shaped
	ids    []string
}

// Parse reads an expression without typing it. The problems, a line each, are those of syntax and of names.
func (l *Lang) Parse(src string) (*Expr, []string) {
	form, ids := shape(src)
	l.mu.Lock()
	s, ok := l.shapes[form]
	l.mu.Unlock()
	if !ok {
		s = l.find(form)
		l.mu.Lock()
		l.shapes[form] = s
		l.mu.Unlock()
	}
	if len(s.problems) > 0 {
		return nil, l.find(src).problems // with the ids as they are written
	}
	return &Expr{lang: l, src: src, shaped: s, ids: ids}, nil
}

// find parses a source and finds its references.
func (l *Lang) find(src string) *shaped {
	s := &shaped{src: src, programs: map[string]*compiled{}}
	_, f, problems := l.parse(src)
	if len(problems) > 0 {
		s.problems = problems
		return s
	}
	s.refs, s.loops, s.vars, s.problems = f.refs, f.loops, len(f.free)+len(f.reads) > 0, f.problems
	s.against = f.against
	said := map[string]bool{}
	for _, v := range f.free {
		if l.vars[v.text] == "" && !said[v.text] {
			said[v.text] = true
			s.problems = append(s.problems, fmt.Sprintf("unknown name %q; %s", v.text, suggest(v.text, l.roots())))
		}
		f.reading(v.text)
	}
	s.reads = f.reads
	return s
}

func (l *Lang) parse(src string) (*cel.Ast, *finder, []string) {
	if len(src) > maxSource {
		return nil, nil, []string{fmt.Sprintf("the expression is longer than %d bytes", maxSource)}
	}
	a, iss := l.env.Parse(src)
	if iss.Err() != nil {
		return nil, nil, problemsOf(iss)[:1] // the others mostly follow from it
	}
	f := &finder{lang: l, info: a.NativeRep().SourceInfo(), local: map[string]int{}}
	f.walk(a.NativeRep().Expr())
	return a, f, nil
}

// Refs returns what the expression reads, in the order of its source.
func (e *Expr) Refs() []Ref {
	out := slices.Clone(e.shaped.refs)
	for i := range out {
		out[i].Node = e.id(out[i].Node)
	}
	return out
}

// id turns #3 into the fourth id. Where a source could hold such a text itself, shape leaves the ids in it.
func (e *Expr) id(node string) string {
	if k, ok := strings.CutPrefix(node, "#"); ok && e.ids != nil {
		n, _ := strconv.Atoi(k)
		return e.ids[n]
	}
	return node
}

// Decls say what an expression may read beside parameters and variables.
type Decls struct {
	// Node returns the declaration of a node, or why it may not be read; nil: no nodes at all.
	Node func(id string) (NodeDecl, error)
	// Run: facts of the run may be read.
	Run bool
}

// A NodeDecl is what an expression needs to know of a node it reads.
type NodeDecl struct {
	Outputs map[string]string   // name -> type, see dag.OutputType
	Missing string              // why its values may be missing: "it has a `when`"; empty: they never are
	Pos     string              // where it is declared
	Kind    string              // of a node that stands in the specification
	Open    bool                // outputs that are not declared may be read too, as any
	Items   *Items              // of a run-time foreach; else nil
	Words   map[string][]string // all that an output may be, where that is known
}

// Check types the expression. want is the type its result must have; empty or any: no matter.
func (e *Expr) Check(d Decls, want string) (*Program, []string) {
	fns := make([]string, len(e.shaped.refs))
	var problems []string
	for i, r := range e.Refs() {
		typ, problem := d.typeOf(e, r, e.shaped.against[i])
		if problem != "" {
			problems = append(problems, problem)
		}
		fns[i] = refFunction(typ, r.Optional || r.Test)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	key, src := strings.Join(fns, ","), e.shaped.src
	if strings.Contains(key, itemsPrefix) { // what has been asked of an item depends on which node it is of
		key, src = key+","+e.src, e.src
	}
	e.shaped.mu.Lock()
	c, ok := e.shaped.programs[key]
	if !ok {
		c = e.lang.compile(src, e.shaped.loops, fns)
		e.shaped.programs[key] = c
	}
	e.shaped.mu.Unlock()
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	if want != "" && want != "any" && c.Type != want && c.Type != "any" && !(want == "number" && c.Type == "int") {
		text := fmt.Sprintf("want %s, got %s", want, c.Type)
		if c.Type == "optional" {
			text += "; write .orValue(...) to say what holds without a value"
		}
		return nil, []string{text}
	}
	return &Program{c, e, fns}, nil
}

// typeOf returns the declared type of what r reads, or what is wrong with reading it, or with comparing it with texts.
func (d Decls) typeOf(e *Expr, r Ref, against []string) (_, problem string) {
	switch r.Root {
	case "params":
		if typ := e.lang.names[r.Name]; typ != groupType {
			return typ, never(r, e.lang.listed[r.Name], against)
		}
		return "map", ""
	case "run":
		if !d.Run {
			return "", "run." + r.Name + " differs between a run and its repetition; only conditions and routes may read it"
		}
		return runFacts[r.Name], ""
	}
	if d.Node == nil {
		return "", "nothing is recorded yet: " + r.String() + " can be read while the run goes on, not while the plan is made"
	}
	n, err := d.Node(r.Node)
	if err != nil {
		return "", err.Error()
	}
	switch r.Field {
	case "status", "category":
		return "string", ""
	case "generation":
		return "int", ""
	case "items":
		return d.itemsOf(e, r, n)
	}
	typ, optional := dag.OutputType(n.Outputs[r.Name])
	switch {
	case r.Name == "":
		typ = "map"
	case typ == "" && n.Open:
		typ = "any"
	}
	node := n.named(r.Node)
	switch {
	case typ == "":
		text := fmt.Sprintf("%s declares no output %q; %s", node, r.Name, suggest(r.Name, n.Outputs))
		if n.Kind != "" && !strings.Contains(text, "did you mean") {
			text += fmt.Sprintf("; dagrun explain %s says what it can give", n.Kind)
		}
		return "", text
	case r.Optional || r.Test:
	case n.Missing != "":
		how := strings.TrimSuffix(fmt.Sprintf("nodes['%s'].?out.%s", r.Node, r.Name), ".")
		return "", fmt.Sprintf("%s may have no values: %s; write %s.orValue(%s)", node, n.Missing, how, valueTypes[typ].none)
	case optional:
		return "", fmt.Sprintf("%s may give no %q: it is optional; write nodes['%s'].out.?%s.orValue(%s)",
			node, r.Name, r.Node, r.Name, valueTypes[typ].none)
	}
	return typ, never(r, n.Words[r.Name], against)
}

// never says with which text what r reads is compared although it is none of words, which is all that it may be.
func never(r Ref, words, against []string) string {
	for _, text := range against {
		if len(words) > 0 && !slices.Contains(words, text) {
			return fmt.Sprintf("%s is never %q; known: %s%s", r, text, strings.Join(words, ", "),
				rules.DidYouMean(text, words))
		}
	}
	return ""
}

// Compared returns the texts that a reference of Refs is compared with.
func (e *Expr) Compared(ref int) []string { return e.shaped.against[ref] }

// itemsOf is typeOf for the items of a run-time foreach.
func (d Decls) itemsOf(e *Expr, r Ref, n NodeDecl) (_, problem string) {
	switch {
	case n.Items == nil && n.Open:
		return "list", ""
	case n.Items == nil:
		return "", n.named(r.Node) + " has no items: only the join of a run-time foreach has (a node with `foreach`)"
	case n.Missing != "" && !r.Optional && !r.Test:
		return "", fmt.Sprintf("%s may have no items: %s; write nodes['%s'].?items.orValue([])",
			n.named(r.Node), n.Missing, r.Node)
	}
	return e.lang.itemsType(n.Items), ""
}

// named is a node and where it is declared.
func (n NodeDecl) named(id string) string {
	if n.Pos == "" {
		return fmt.Sprintf("node %q", id)
	}
	return fmt.Sprintf("node %q (%s)", id, n.Pos)
}

// suggest lists what is known and the nearest name.
func suggest(name string, known map[string]string) string {
	if len(known) == 0 {
		return "none are declared"
	}
	names := slices.Sorted(maps.Keys(known))
	s := "known: " + strings.Join(names[:min(len(names), 12)], ", ")
	if len(names) > 12 {
		s += ", ..."
	}
	return s + rules.DidYouMean(name, names)
}

// problemsOf turns CEL's own messages into ours.
func problemsOf(iss *cel.Issues) []string {
	var out []string
	for _, e := range iss.Errors() {
		text := strings.ReplaceAll(e.Message, "\n", " ")
		if i := strings.Index(text, " (in container"); i > 0 {
			text = text[:i]
		}
		text, syntax := strings.CutPrefix(text, "Syntax error: ")
		if name, ok := strings.CutPrefix(text, "undeclared reference to '"); ok { // other names are found before
			name = strings.TrimSuffix(name, "'")
			near := rules.DidYouMean(name, callable())
			out = append(out, fmt.Sprintf("no function %q%s; dagrun explain expressions has all", name, near))
			continue
		}
		text = readable(text)
		if syntax {
			text += "; the language is CEL: ==, &&, ||, ! (dagrun explain expressions)"
		}
		out = append(out, text)
	}
	return out[:min(len(out), 3)]
}

// callable are the names of functions.
var callable = sync.OnceValue(func() (names []string) {
	if env, err := baseEnv(); err == nil {
		for name := range env.Functions() {
			if !strings.ContainsAny(name, "@_") && name != "in" { // operators and other machinery
				names = append(names, name)
			}
		}
	}
	return names
})

// readable rewords CEL's messages: operators and types as people write them, nothing of the
// machinery of references.
func readable(text string) string {
	text, _, _ = strings.Cut(text, " expecting ")
	text = strings.NewReplacer("mismatched input '<EOF>'", "the expression ends too early",
		"invalid matches argument", "no valid regular expression",
		"invalid timestamp argument", "no valid timestamp", "invalid duration argument", "no valid duration").Replace(text)
	if token, ok := strings.CutPrefix(text, "token recognition error at: "); ok {
		text = "cannot be read from " + token + " on"
	}
	if m := noOverload.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("%s does not go with %s", strings.Trim(m[1], "_"), m[2])
	}
	for t := range valueTypes {
		text = strings.ReplaceAll(text, refFunction(t, false), "the value")
		text = strings.ReplaceAll(text, refFunction(t, true), "the optional value")
	}
	text = outNames.ReplaceAllString(text, "the values of an item")
	return celNames.Replace(itemNames.ReplaceAllString(text, "an item"))
}

var (
	noOverload = regexp.MustCompile(`^found no matching overload for '(.*)' applied to '(.*)'$`)
	itemNames  = regexp.MustCompile(itemsPrefix + `[0-9a-f]{16}`)
	outNames   = regexp.MustCompile(itemNames.String() + `\.out`)
	celNames   = strings.NewReplacer("double", "number", "map(string, dyn)", "map", "list(dyn)", "list",
		"optional_type", "optional", "dyn", "any")
)

// rewrite puts calls of reference functions in the place of the references.
func rewrite(a *ast.AST, at []ast.Expr, refs []Ref, fns []string) {
	fac := ast.NewExprFactory()
	id := ast.MaxID(a)
	next := func() int64 { id++; return id }
	for i, e := range at {
		call := fac.NewCall(next(), fns[i], fac.NewIdent(next(), refsName), fac.NewLiteral(next(), types.Int(i)))
		if refs[i].Test {
			call = fac.NewMemberCall(e.ID(), "hasValue", call)
		}
		e.SetKindCase(call)
	}
}
