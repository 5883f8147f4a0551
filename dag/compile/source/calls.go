package source

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/ast/astutil"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"

	"dagrun.dev/dag/compile/schema"
	"dagrun.dev/internal/rules"
	"dagrun.dev/internal/tree"
)

// made is the field of the file of calls that holds what they make, and parts are what that may be.
const made = "made"

var parts = []string{"accumulators", "breakers", "categories", "escalations", "foreach", "nodes", "phases", "pools"}

// templates are the names of the definitions of dagrun.dev/flow that make parts of a pipeline, without #, sorted.
func templates(library map[string][]byte) (names []string, err error) {
	for _, path := range slices.Sorted(maps.Keys(library)) {
		if !strings.HasPrefix(path, "flow/") {
			continue
		}
		f, err := parser.ParseFile(path, library[path])
		if err != nil {
			return nil, err
		}
		w := &written{}
		w.decls(f.Decls)
		for _, name := range w.names {
			makes := func(part string) bool { return slices.Contains(parts, part) }
			if strings.HasPrefix(name, "#") && slices.ContainsFunc(w.field(name).fields(), makes) {
				names = append(names, name[1:])
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// calls writes the calls as a file in CUE: the templates with their values as a list, and what they make of a pipeline.
func calls(f found, list *tree.Value, templates []string) (*ast.File, tree.Diagnostics) {
	var ds tree.Diagnostics
	bad := func(at tree.Pos, i int, text string) {
		ds = append(ds, tree.Diagnostic{Pos: at, Path: tree.At("use", i), Text: text})
	}
	places := newPlaces(f)
	out := &ast.ListLit{}
	if list.Kind != tree.List {
		bad(list.Pos, 0, "want a list of templates with their values, got "+rules.Show(list))
	}
	for i, v := range list.Items {
		if v.Kind != tree.Map || len(v.Fields) != 1 {
			const want = "want one template with its values, such as %s: {...}, got %s"
			bad(v.Pos, i, fmt.Sprintf(want, templates[0], rules.Show(v)))
			continue
		}
		call := v.Fields[0]
		if !slices.Contains(templates, call.Name) {
			bad(call.Pos, i, fmt.Sprintf("no template %q%s", call.Name, rules.OrKnown(call.Name, templates)))
			continue
		}
		template := &ast.SelectorExpr{X: ast.NewIdent("flow"), Sel: ast.NewIdent("#" + call.Name)}
		out.Elts = append(out.Elts, ast.NewStruct(places.label(call),
			&ast.BinaryExpr{Op: token.AND, X: template, Y: places.expr(call.Value)}))
	}
	text := fmt.Sprintf("import %q\nuse: []\n%s: {for u in use for t in u for k, v in t if #parts[k] != _|_ {(k): v}}\n"+
		"#parts: {%s: _}\n", schema.Module+"/flow", made, strings.Join(parts, ": _, "))
	file, err := parser.ParseFile(filepath.Join(schema.Vendored, "use.cue"), text) // no place of the user's
	if err != nil {
		panic(err) // it is the same whatever the document says
	}
	file.Decls[1].(*ast.Field).Value.(*ast.ListLit).Elts = out.Elts
	astutil.Resolve(file, func(token.Pos, string, ...any) {})
	return file, ds
}

// places are those of a document in CUE, which knows offsets: the file has lines of one length.
type places struct{ file *token.File }

const lineLength, mostLines = 1 << 12, 1 << 18

func newPlaces(f found) places {
	p := places{token.NewFile(f.abs, -1, lineLength*mostLines)}
	lines := make([]int, mostLines)
	for i := range lines {
		lines[i] = i * lineLength
	}
	p.file.SetLines(lines)
	return p
}

func (p places) at(pos tree.Pos) token.Pos {
	line, col := min(int(pos.Line), mostLines), min(int(pos.Col), lineLength)
	return p.file.Pos((line-1)*lineLength+col-1, token.Blank)
}

func (p places) label(f tree.Field) ast.Label {
	l := ast.NewString(f.Name)
	ast.SetPos(l, p.at(f.Pos))
	return l
}

// expr is a value as a constant of CUE.
func (p places) expr(v *tree.Value) (x ast.Expr) {
	at := p.at(v.Pos)
	switch v.Kind {
	case tree.List:
		list := &ast.ListLit{Lbrack: at}
		for _, item := range v.Items {
			list.Elts = append(list.Elts, p.expr(item))
		}
		x = list
	case tree.Map:
		m := &ast.StructLit{Lbrace: at}
		for _, f := range v.Fields {
			m.Elts = append(m.Elts, &ast.Field{Label: p.label(f), Value: p.expr(f.Value)})
		}
		x = m
	case tree.String:
		x = &ast.BasicLit{ValuePos: at, Kind: token.STRING, Value: literal.String.Quote(v.Str)}
	default: // JSON is CUE
		if x, err := parser.ParseExpr("", v.AppendJSON(nil)); err == nil {
			ast.SetPos(x, at)
			return x
		}
	}
	return x
}

// unite adds what templates make to what stands in the document. Where both say something of one thing it must be the
// same.
func unite(to, more *tree.Value, path string) (ds tree.Diagnostics) {
	switch {
	case to.Kind == tree.Map && more.Kind == tree.Map:
		for _, f := range more.Fields {
			if has := to.Get(f.Name); has != nil {
				ds = append(ds, unite(has, f.Value, tree.Join(path, f.Name))...)
			} else {
				to.Fields = append(to.Fields, f)
			}
		}
	case string(to.AppendJSON(nil)) != string(more.AppendJSON(nil)):
		ds = append(ds, tree.Diagnostic{Pos: to.Pos, Path: path,
			Text: fmt.Sprintf("a template makes it %s (%s), which is not the same", rules.Show(more), more.Pos)})
	}
	return ds
}
