package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/token"
)

var (
	duration  = regexp.MustCompile(`^"(\d+)(ms|s|m|h)"$`)
	expressed = regexp.MustCompile(`nodes\[|orValue|params\.|size\(|hasValue|\$\{|\.filter\(`) // and no prose
	inside    = regexp.MustCompile(`[<>=!]=|&&|\|\||[<>]|\b\d+(?:\.\d+)?\b`)
	word      = regexp.MustCompile(`^"[\w-]+"$`) // and no prose
	place     = regexp.MustCompile(`^\d+$`)
)

// prose are fields for people, whose wording is nobody's business but theirs.
var prose = strings.Fields("title doc note focus message reason context before after system text else with #what")

// typed are fields of which every other value is refused.
var typed = strings.Fields("kind type artifact to of pool breaker accumulator into")

// cueMutants are those of a specification: numbers, durations, truth, names, comparisons, conditions, entries of lists,
// fields. Expressions within strings are taken apart as well.
func cueMutants(file string, src []byte) (found []mutant, err error) {
	f, err := parser.ParseFile(file, src)
	if err != nil {
		return nil, err
	}
	w := &cueWalk{src: src, index: map[ast.Node]string{}, done: map[ast.Node]bool{}}
	for _, d := range f.Decls {
		ast.Walk(d, w.enter, w.leave)
	}
	return w.found, nil
}

type cueWalk struct {
	src   []byte
	path  []string
	index map[ast.Node]string // of entries of lists
	done  map[ast.Node]bool   // pieces of strings with expressions in them
	found []mutant
}

func (w *cueWalk) add(from, to int, text string) {
	w.found = append(w.found, mutant{name: strings.Join(w.path, "."), from: from, to: to, text: text})
}

// without takes a field or an entry out, with the comma behind it.
func (w *cueWalk) without(n ast.Node) {
	to := n.End().Offset()
	rest := strings.TrimLeft(string(w.src[to:]), " ")
	if strings.HasPrefix(rest, ",") {
		to = len(w.src) - len(rest) + 1
	}
	w.add(n.Pos().Offset(), to, "")
}

func (w *cueWalk) text(n ast.Node) string { return string(w.src[n.Pos().Offset():n.End().Offset()]) }

func (w *cueWalk) enter(n ast.Node) bool {
	if name, ok := w.index[n]; ok {
		w.path = append(w.path, name)
	}
	switch n := n.(type) {
	case *ast.ImportDecl, *ast.Package, *ast.CommentGroup, *ast.Attribute:
		return false
	case *ast.Field:
		w.path = append(w.path, strings.Trim(w.text(n.Label), `"`))
		w.field(n)
	case *ast.ListLit:
		for i, e := range n.Elts {
			w.index[e] = fmt.Sprint(i)
			if m := regexp.MustCompile(`^\{+(?:name|role|artifact|var|of): +("[^"]+")`).FindStringSubmatch(w.text(e)); m != nil {
				w.index[e] = strings.Trim(m[1], `"`)
			}
			if _, ok := e.(*ast.Ellipsis); !ok {
				w.without(e)
			}
		}
	case *ast.IfClause:
		w.add(n.Condition.Pos().Offset(), n.Condition.End().Offset(), "!("+w.text(n.Condition)+")")
	case *ast.BinaryExpr:
		if to := opposite[n.Op.String()]; to != "" {
			w.add(n.OpPos.Offset(), n.OpPos.Offset()+len(n.Op.String()), to)
		}
	case *ast.UnaryExpr:
		if to := opposite[n.Op.String()]; to != "" && strings.ContainsAny(to, "<>=") {
			w.add(n.OpPos.Offset(), n.OpPos.Offset()+len(n.Op.String()), to)
		}
	case *ast.Interpolation:
		expression := expressed.MatchString(w.text(n))
		for _, e := range n.Elts {
			if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				w.done[lit] = true
				if expression {
					w.expression(lit)
				}
			}
		}
	case *ast.BasicLit:
		w.literal(n)
	}
	return true
}

func (w *cueWalk) leave(n ast.Node) {
	_, field := n.(*ast.Field)
	if _, entry := w.index[n]; entry || field {
		w.path = w.path[:len(w.path)-1]
	}
}

func (w *cueWalk) field(n *ast.Field) {
	name := w.path[len(w.path)-1]
	_, whole := n.Value.(*ast.StructLit)
	if lit, ok := n.Value.(*ast.BasicLit); ok {
		whole = lit.Kind != token.STRING || duration.MatchString(lit.Value) || word.MatchString(lit.Value)
	}
	if !whole && len(w.path) > 1 && !slices.Contains(prose, name) && !slices.Contains(typed, name) &&
		!strings.HasPrefix(name, "#") {
		w.without(n)
	}
	if name == "when" || name == "that" || name == "refineWhile" || name == "degraded" {
		if s := w.text(n.Value); strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) {
			w.add(n.Value.Pos().Offset(), n.Value.End().Offset(), `"!(`+s[1:len(s)-1]+`)"`)
		}
	}
}

func (w *cueWalk) literal(n *ast.BasicLit) {
	from, to := n.Pos().Offset(), n.End().Offset()
	name := ""
	if len(w.path) > 0 {
		name = w.path[len(w.path)-1]
	}
	switch {
	case w.done[n]:
	case n.Kind == token.INT || n.Kind == token.FLOAT:
		for _, text := range around(n.Value) {
			w.add(from, to, text)
		}
	case n.Kind == token.TRUE:
		w.add(from, to, "false")
	case n.Kind == token.FALSE:
		w.add(from, to, "true")
	case n.Kind != token.STRING || slices.Contains(prose, name) || slices.Contains(typed, name):
	case duration.MatchString(n.Value):
		m := duration.FindStringSubmatch(n.Value)
		for _, text := range around(m[1]) {
			w.add(from, to, `"`+text+m[2]+`"`)
		}
	case expressed.MatchString(n.Value):
		w.expression(n)
	case word.MatchString(n.Value) && !place.MatchString(name) && len(w.path) > 1: // entries of lists are taken out
		w.add(from, to, n.Value[:len(n.Value)-1]+`x"`)
	}
}

// expression changes what stands in a string as an expression.
func (w *cueWalk) expression(n *ast.BasicLit) {
	if slices.Contains(prose, w.path[len(w.path)-1]) {
		return
	}
	for _, at := range inside.FindAllStringIndex(n.Value, -1) {
		if at[0] > 0 && strings.Contains("-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", n.Value[at[0]-1:at[0]]) {
			continue // of a name
		}
		from, to, old := n.Pos().Offset()+at[0], n.Pos().Offset()+at[1], n.Value[at[0]:at[1]]
		if text := opposite[old]; text != "" {
			w.add(from, to, text)
			continue
		}
		for _, text := range around(old) {
			w.add(from, to, text)
		}
	}
}
