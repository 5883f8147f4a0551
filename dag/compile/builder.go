package compile

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"dagrun.dev/dag"
	"dagrun.dev/dag/expr"
	"dagrun.dev/internal/tree"
)

// A builder makes one plan. It belongs to one goroutine.
type builder struct {
	s    *Schema
	src  Source
	root *os.Root // folder of the spec
	plan *dag.Plan
	lang *expr.Lang // parameters, no variables

	drafts   []*draft
	byID     map[string]*draft // by id in lower case
	unsure   unsure            // what mistakes leave unknown
	defaults *tree.Value
	known    map[string][]string   // names of breakers, pools, accumulators, categories, sorted
	isAcc    map[string]bool       // accumulators
	dirs     map[string]*draft     // folders that nodes name
	files    map[string]*inputFile // input files by path as written
	whenOpen map[string]string     // by breaker
	lists    int                   // of ids, checked so far
	late     []string              // groups of the nodes that run-time foreach will make

	count    int // of mistakes, those that are not told too
	mistakes tree.Diagnostics
	warnings tree.Diagnostics
	perPlace map[tree.Pos]*told // what was told of a place
}

// told is what was told of a place.
type told struct {
	texts []string
	last  int // in builder.mistakes, of the last one told
	more  int // further ones, not told
}

// A draft is a node on its way into the plan.
type draft struct {
	id    string
	path  string      // of the node, for messages
	tree  *tree.Value // nil once the node is complete
	with  *tree.Value // checked settings; templates where the node is dynamic; nil once the node is complete
	node  *dag.Node
	refs  []string  // nodes that the settings name
	notes []string  // what its kind says is worth showing
	reads []reading // of other nodes
	index int32     // in the graph of written needs
	bad   bool      // something is wrong with it: what it declares is not known whole
	loose bool      // it names nodes that are not there: what it comes after is not known whole

	listed int // number of the last list of ids that names it

	// Places of the node and of the fields that the graph may find fault with.
	pos, needsPos, readsPos, writesPos tree.Pos
}

// place returns the place of a field, or that of the node.
func (d *draft) place(field string) tree.Pos {
	at := d.pos
	switch field {
	case "needs":
		at = d.needsPos
	case "reads":
		at = d.readsPos
	case "writes":
		at = d.writesPos
	}
	if at == (tree.Pos{}) {
		return d.pos
	}
	return at
}

func newBuilder(s *Schema, src Source, root *os.Root) *builder {
	return &builder{
		s: s, src: src, root: root, plan: &dag.Plan{Format: dag.Format},
		byID: map[string]*draft{}, known: map[string][]string{}, isAcc: map[string]bool{},
		dirs: map[string]*draft{}, files: map[string]*inputFile{}, whenOpen: map[string]string{},
		perPlace: map[tree.Pos]*told{},
	}
}

// samePlace is how many different mistakes are told of one place: a template that is wrong is wrong
// in every node made from it.
const samePlace = 3

// fail records a mistake.
func (b *builder) fail(pos tree.Pos, path, format string, args ...any) {
	b.report(tree.Diagnostic{Pos: pos, Path: path, Text: fmt.Sprintf(format, args...)})
}

func (b *builder) report(d tree.Diagnostic) {
	b.count++
	if d.Pos.Line > 0 {
		t := b.perPlace[d.Pos]
		if t == nil {
			t = &told{}
			b.perPlace[d.Pos] = t
		}
		if !contains(t.texts, d.Text) {
			if len(t.texts) == samePlace {
				t.more++
				return
			}
			t.texts, t.last = append(t.texts, d.Text), len(b.mistakes)
		}
	}
	b.mistakes = append(b.mistakes, d)
}

// all returns the mistakes. The last one told of a place says how many more there are.
func (b *builder) all() tree.Diagnostics {
	out := slices.Clone(b.mistakes)
	for _, t := range b.perPlace {
		if t.more > 0 {
			out[t.last].Text += fmt.Sprintf(" (and %d more here)", t.more)
		}
	}
	return out
}

func (b *builder) warn(pos tree.Pos, path, format string, args ...any) {
	b.warnings = append(b.warnings, tree.Diagnostic{Pos: pos, Path: path, Text: fmt.Sprintf(format, args...)})
}

// absorb records the mistakes of an error.
func (b *builder) absorb(err error) {
	var ds tree.Diagnostics
	var d tree.Diagnostic
	switch {
	case errors.As(err, &ds):
		for _, d := range ds {
			b.report(d)
		}
	case errors.As(err, &d):
		b.report(d)
	default:
		b.fail(tree.Pos{File: tree.FileOf(b.src.Path)}, "", "%v", err)
	}
}

// resolvePipeline fills parameters into everything but nodes and foreach blocks, and checks the
// result again where something changed.
func (b *builder) resolvePipeline(p *tree.Value) *tree.Value {
	out := &tree.Value{Kind: tree.Map, Pos: p.Pos}
	changed := false
	for _, f := range p.Fields {
		switch f.Name {
		case "params", "nodes", "foreach":
		default:
			if !expr.HasTemplate(f.Value) {
				break
			}
			before := b.count
			if !b.unsure.reads(f.Value) {
				f.Value = b.cast(f.Value, f.Name)
			}
			if b.count > before || b.unsure.reads(f.Value) {
				b.unsure.section(f.Name)
				continue
			}
			changed = true
		}
		out.Fields = append(out.Fields, f)
	}
	if changed {
		b.recheck(out)
	}
	return out
}

// recheck checks what parameters were filled into. A section with a mistake is left out of what follows.
func (b *builder) recheck(p *tree.Value) {
	kept := p.Fields[:0]
	for _, f := range p.Fields {
		if rule := b.s.Rule("Pipeline").Field(f.Name); f.Name != "nodes" && f.Name != "foreach" && rule != nil {
			ds, _ := rule.Rule.CheckTemplates(f.Value, f.Name)
			for _, d := range ds {
				b.report(d)
			}
			if len(ds) > 0 {
				b.unsure.section(f.Name)
				continue
			}
		}
		kept = append(kept, f)
	}
	p.Fields = kept
}

// cast fills parameters into a value. Where that fails it says so and returns v as it was.
func (b *builder) cast(v *tree.Value, path string) *tree.Value {
	m, mistakes := b.lang.NewMold(v, path, false, expr.Decls{})
	for _, d := range mistakes {
		b.report(d)
	}
	if len(mistakes) > 0 {
		return v
	}
	out, err := m.Cast(nil, nil, false)
	if err != nil {
		b.absorb(located(err, path))
		return v
	}
	return out
}

// located gives a mistake without a path one.
func located(err error, path string) error {
	var d tree.Diagnostic
	if errors.As(err, &d) && d.Path == "" {
		d.Path = path
		return d
	}
	return err
}

// pipeline reads everything of a pipeline that is not a node.
func (b *builder) pipeline(p *tree.Value) {
	b.plan.Name = str(p.Get("name"))
	if n := len(b.plan.Name); n > longestPart {
		b.fail(p.Get("name").Pos, "name", "the name has %d characters; want at most %d, because it names a folder", n, longestPart)
	}
	b.plan.Title = str(p.Get("title"))
	if v := p.Get("seed"); v != nil {
		b.plan.Seed = b.exactly(v, "seed")
	}
	b.defaults = p.Get("defaults")
	b.checkDefaults()
	b.categories(p.Get("categories"))
	b.prices(p.Get("prices"))
	b.budget(p.Get("budget"))
	for _, f := range sortedMap(p.Get("breakers")) {
		b.breaker(f)
	}
	for _, f := range sortedMap(p.Get("pools")) {
		b.plan.Pools = append(b.plan.Pools, dag.Pool{Name: f.Name, Size: int(f.Value.Int)})
		b.known["pool"] = append(b.known["pool"], f.Name)
	}
	b.accumulators(p.Get("accumulators"))
	if v := p.Get("phases"); v != nil {
		for _, x := range v.Items {
			b.plan.Phases = append(b.plan.Phases, dag.Phase{Name: str(x.Get("name")), Group: str(x.Get("group"))})
		}
	}
}

func (b *builder) checkDefaults() {
	if b.defaults == nil {
		return
	}
	for _, f := range b.defaults.Fields {
		if f.Name != "*" && !contains(b.s.names, f.Name) {
			b.fail(f.Pos, tree.Join("defaults", f.Name), "no kind %q; want \"*\" or a kind of node%s", f.Name, near(f.Name, b.s.names))
		}
	}
}

func (b *builder) categories(own *tree.Value) {
	for _, f := range sortedRows(b.s.categories.with(own)) {
		v := f.Value
		c := dag.Category{Name: f.Name, Class: str(v.Get("class")), Then: str(v.Get("then")),
			Attempts: num(v.Get("attempts")), Breaker: float(v.Get("breaker"))}
		if x := v.Get("feedback"); x != nil {
			c.Feedback = x.Bool
		}
		if r := v.Get("retry"); r != nil {
			change := b.retryChange(r, tree.Join(tree.Join("categories", f.Name), "retry"))
			c.Retry = &change
		}
		b.plan.Categories = append(b.plan.Categories, c)
		b.known["category"] = append(b.known["category"], f.Name)
	}
}

func sortedRows(rows []tree.Field) []tree.Field {
	sort.SliceStable(rows, func(i, j int) bool { return rows[i].Name < rows[j].Name })
	return rows
}

func (b *builder) prices(own *tree.Value) {
	for _, f := range sortedRows(b.s.prices.with(own)) {
		v := f.Value
		p := dag.Price{Model: f.Name, Input: float(v.Get("input")), Output: float(v.Get("output")),
			CacheRead: float(v.Get("cacheRead")), CacheWrite: float(v.Get("cacheWrite")), Date: str(v.Get("date"))}
		if s := v.Get("step"); s != nil {
			p.Step = &dag.Step{Above: s.Get("above").Int, Input: float(s.Get("input")), Output: float(s.Get("output")),
				CacheRead: float(s.Get("cacheRead")), CacheWrite: float(s.Get("cacheWrite"))}
		}
		b.plan.Prices = append(b.plan.Prices, p)
	}
}

// warnAt is the share of a cap at which a run warns when the spec does not say.
const warnAt = 0.8

func (b *builder) budget(v *tree.Value) {
	if v == nil {
		return
	}
	u := &b.plan.Budget
	u.WarnUSD, u.CapUSD = b.usd(v.Get("warnUSD"), "budget", "warnUSD"), b.usd(v.Get("capUSD"), "budget", "capUSD")
	u.WarnTok, u.CapTokens = b.exactly(v.Get("warnTokens"), "budget.warnTokens"), b.exactly(v.Get("capTokens"), "budget.capTokens")
	u.Wall = b.limit(v.Get("wall"), "budget", "wall")
	if c := v.Get("capUSD"); c != nil && u.CapUSD == 0 {
		b.fail(c.Pos, "budget.capUSD", "a cap of 0 allows nothing that costs; want more than 0, or no cap at all")
	}
	if w := v.Get("warnUSD"); w != nil && u.CapUSD > 0 && u.WarnUSD > u.CapUSD {
		b.fail(w.Pos, "budget.warnUSD", "the warning at $%s comes after the cap of $%s", u.WarnUSD, u.CapUSD)
	}
	if w := v.Get("warnTokens"); w != nil && u.CapTokens > 0 && u.WarnTok > u.CapTokens {
		b.fail(w.Pos, "budget.warnTokens", "the warning at %d tokens comes after the cap of %d", u.WarnTok, u.CapTokens)
	}
	if v.Get("warnUSD") == nil {
		u.WarnUSD, _ = dag.Dollars(u.CapUSD.Float() * warnAt)
	}
	if v.Get("warnTokens") == nil {
		u.WarnTok = int64(float64(u.CapTokens) * warnAt)
	}
}

func (b *builder) breaker(f tree.Field) {
	v, here := f.Value, tree.Join("breakers", f.Name)
	br := dag.Breaker{Name: f.Name, Failures: num(v.Get("failures")), Probes: num(v.Get("probes")),
		WhenOpen: str(v.Get("whenOpen")), Key: str(v.Get("key")),
		Window: b.duration(v.Get("window"), here, "window"), OpenFor: b.duration(v.Get("openFor"), here, "openFor")}
	if v.Get("openFor") != nil && br.OpenFor <= 0 {
		b.fail(v.Get("openFor").Pos, here+".openFor", "want more than 0")
	}
	br.Counts = strs(v.Get("counts"))
	b.checkNames("category", v.Get("counts"), here+".counts")
	b.plan.Breakers = append(b.plan.Breakers, br)
	b.known["breaker"] = append(b.known["breaker"], f.Name)
	b.whenOpen[f.Name] = br.WhenOpen
}

func (b *builder) accumulators(v *tree.Value) {
	byPath := map[string]string{}
	for _, f := range sortedMap(v) {
		here := tree.Join("accumulators", f.Name)
		a := dag.Accumulator{Name: f.Name, Path: f.Name + ".md", Title: str(f.Value.Get("title")), Cap: num(f.Value.Get("cap"))}
		pos := f.Pos
		if p := f.Value.Get("path"); p != nil {
			a.Path, pos = p.Str, p.Pos
			b.localPath(p, here+".path")
		}
		b.notOwn(a.Path, pos, here+".path")
		if other, dup := byPath[fold(a.Path)]; dup {
			b.fail(pos, here, "its live file %s is that of accumulator %q too", a.Path, other)
		}
		byPath[fold(a.Path)] = f.Name
		b.isAcc[f.Name] = true
		b.known["accumulator"] = append(b.known["accumulator"], f.Name)
		b.plan.Accumulators = append(b.plan.Accumulators, a)
	}
}

// checkNames refuses names that are not declared: breakers, pools, accumulators, categories.
// v is one text or a list of them.
func (b *builder) checkNames(what string, v *tree.Value, path string) {
	if v == nil {
		return
	}
	if v.Kind == tree.List {
		for i, x := range v.Items {
			b.checkNames(what, x, tree.At(path, i))
		}
		return
	}
	names := b.known[what]
	if i := sort.SearchStrings(names, v.Str); i < len(names) && names[i] == v.Str || b.unsure.names[what] {
		return
	}
	if len(names) == 0 {
		b.fail(v.Pos, path, "no %s %q; the pipeline declares none", what, v.Str)
		return
	}
	b.fail(v.Pos, path, "no %s %q%s", what, v.Str, nearOr(v.Str, names))
}

// nearOr names the nearest name, else lists what there is.
func nearOr(name string, names []string) string {
	if n := near(name, names); n != "" {
		return n
	}
	if len(names) > 12 {
		return fmt.Sprintf("; there are %d, such as %s", len(names), strings.Join(names[:6], ", "))
	}
	return "; known: " + strings.Join(names, ", ")
}
