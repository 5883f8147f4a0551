package compile

import (
	"fmt"
	"os"
	"path/filepath"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/parser"
	"cuelang.org/go/cue/scanner"
	"cuelang.org/go/cue/token"

	"dagrun.dev/internal/tree"
)

// Bounds of CUE source. The evaluator is slow on wide structs and recursive on deep ones:
// large generated graphs belong into foreach, JSON or YAML.
const (
	cueBytes = 4 << 20 // of all files of a specification
	cueDepth = 1000    // of brackets, and of a: b: c: chains
)

// bounded refuses CUE files that are too large or too deep, before they are parsed.
func bounded(f found) error {
	files := []string{f.abs}
	if f.abs == f.dir {
		files, _ = filepath.Glob(filepath.Join(f.dir, "*.cue")) // the pattern is well formed
	}
	total := int64(0)
	var parsed []*ast.File
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil {
			return notFound(path, err)
		}
		if total += info.Size(); total > cueBytes {
			return diagnose(f.name, fmt.Sprintf("the CUE source has more than %d bytes; write many nodes as foreach, or as JSON or YAML", cueBytes))
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return notFound(path, err)
		}
		if line := tooDeep(src); line > 0 {
			return tree.Diagnostics{{Pos: tree.Pos{File: tree.FileOf(shortName(f)(path)), Line: int32(line)}, Text: fmt.Sprintf("nested deeper than %d levels", cueDepth)}}
		}
		if file, err := parser.ParseFile(path, src); err == nil { // else evaluating it says what is wrong
			parsed = append(parsed, file)
		}
	}
	if d := tooMany(parsed, newSyntaxIndex(f, nil).pos); d.Text != "" {
		return tree.Diagnostics{d}
	}
	return nil
}

// tooDeep returns the line at which source gets deeper than cueDepth, or 0.
func tooDeep(src []byte) int {
	var s scanner.Scanner
	file := token.NewFile("", -1, len(src))
	s.Init(file, src, func(token.Pos, string, []any) {}, 0)
	brackets, chain := 0, 0
	for {
		pos, tok, _ := s.Scan()
		switch tok {
		case token.EOF:
			return 0
		case token.LBRACE, token.LBRACK, token.LPAREN:
			brackets++
			chain = 0
		case token.RBRACE, token.RBRACK, token.RPAREN:
			brackets--
		case token.COMMA:
			chain = 0
		case token.COLON:
			chain++
		}
		if brackets > cueDepth || chain > cueDepth {
			return pos.Line()
		}
	}
}
