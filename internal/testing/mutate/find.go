package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"
)

// opposite is what becomes of an operator: the nearest one that is wrong.
var opposite = map[string]string{
	"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "===": "!==", "!==": "===", "&&": "||", "||": "&&",
	"+": "-", "-": "+", "*": "/", "/": "*",
}

// around are the numbers next to one, as they are written.
func around(number string) []string {
	if n, err := strconv.Atoi(number); err == nil {
		if n == 0 {
			return []string{"1"}
		}
		return []string{strconv.Itoa(n - 1), strconv.Itoa(n + 1)}
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return nil
	}
	step := 0.1
	if _, digits, ok := strings.Cut(number, "."); ok && len(digits) > 1 {
		step = 0.01
	}
	write := func(x float64) string {
		s := strconv.FormatFloat(x, 'f', 3, 64)
		return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	pad := func(s string) string {
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	return []string{pad(write(x - step)), pad(write(x + step))}
}

// goMutants are those of a Go file: operators, conditions, numbers, truth, statements.
func goMutants(file string, src []byte) (found []mutant, err error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	where := ""
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	add := func(from, to token.Pos, text string) {
		at := offset(from)
		found = append(found, mutant{name: where + " " + lineAt(src, at), from: at, to: offset(to), text: text})
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		where = fn.Name.Name
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if to := opposite[n.Op.String()]; to != "" && n.Op != token.MUL && n.Op != token.QUO {
					add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to)
				}
			case *ast.IfStmt:
				add(n.Cond.Pos(), n.Cond.End(), "!("+string(src[offset(n.Cond.Pos()):offset(n.Cond.End())])+")")
			case *ast.BasicLit:
				if near := around(n.Value); n.Kind == token.INT && near != nil {
					add(n.Pos(), n.End(), near[len(near)-1])
				}
			case *ast.Ident:
				if to := map[string]string{"true": "false", "false": "true"}[n.Name]; to != "" {
					add(n.Pos(), n.End(), to)
				}
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					add(n.Pos(), n.End(), "")
				}
			case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt:
				add(n.Pos(), n.End(), "")
			}
			return true
		})
	}
	return found, nil
}

var textPlaces = regexp.MustCompile("\\{[A-Z_]+\\}\n?|(?m:^#+ .*\n)|<!-- ?[A-Z_]+|\\b\\d+\\b|\\[[A-Z]+\\]|`[^`\n]+`")

// counted are numbers that only count paragraphs, or belong to a name.
var counted = regexp.MustCompile(`(?m)^\d+\. |[A-Z]-\d+`)

// textMutants are those of a template: placeholders, headings, marks, numbers, names of files.
func textMutants(_ string, src []byte) (found []mutant, err error) {
	skip := counted.FindAllIndex(src, -1)
	for _, at := range textPlaces.FindAllIndex(src, -1) {
		if slices.ContainsFunc(skip, func(s []int) bool { return s[0] <= at[0] && at[1] <= s[1] }) {
			continue
		}
		texts := []string{""}
		if around := around(string(src[at[0]:at[1]])); around != nil {
			texts = around
		}
		for _, text := range texts {
			found = append(found, mutant{name: lineAt(src, at[0]), from: at[0], to: at[1], text: text})
		}
	}
	return found, nil
}

// scriptMutants are those of a check in JavaScript: operators and numbers.
func scriptMutants(_ string, src []byte) (found []mutant, err error) {
	lexer, at := js.NewLexer(parse.NewInputBytes(append([]byte(nil), src...))), 0
	last := js.ErrorToken
	for {
		kind, text := lexer.Next()
		if kind == js.DivToken && strings.Contains("( , = : ! && || => return", last.String()) {
			kind, text = lexer.RegExp()
		}
		if kind == js.ErrorToken {
			return found, nil
		}
		var texts []string
		switch to := opposite[string(text)]; {
		case js.IsNumeric(kind):
			texts = around(strings.TrimPrefix(string(text), "."))
			if strings.HasPrefix(string(text), ".") {
				texts = around("0" + string(text))
			}
		case to != "" && js.IsPunctuator(kind) || to != "" && js.IsOperator(kind):
			texts = []string{to}
		}
		for _, text2 := range texts {
			found = append(found, mutant{name: lineAt(src, at), from: at, to: at + len(text), text: text2})
		}
		at += len(text)
		if kind != js.WhitespaceToken && kind != js.LineTerminatorToken && kind != js.CommentToken {
			last = kind
		}
	}
}
