package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// switches is added to the package: the environment names the change that is made, and a file to which those go that
// were come by.
const switches = `
import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

var mutantMade, _ = strconv.Atoi(os.Getenv("MUTANT"))
var mutantSeen, _ = os.OpenFile(os.Getenv("MUTANTS_SEEN"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
var mutantsSeen [20000]atomic.Bool

func mutantOn(n int) bool {
	if mutantSeen != nil && !mutantsSeen[n].Load() && mutantsSeen[n].CompareAndSwap(false, true) {
		fmt.Fprintln(mutantSeen, n)
	}
	return n == mutantMade
}

func mutantOr[T any](n int, changed, is func() T) T {
	if mutantOn(n) {
		return changed()
	}
	return is()
}
`

// A woven package holds all changes that can be switched, by their number from 1.
type woven struct {
	folder  string
	number  map[string]int // of a change, by its name
	overlay map[string]string
}

// weave makes one package of all changes of one. What the compiler refuses is taken out, line by line.
func weave(folder, dir string, all []mutant) (*woven, error) {
	typed, err := typesOf(folder)
	if err != nil {
		return nil, err
	}
	byFile := map[string][]int{}
	for i, m := range all {
		if t, ok := typed(m); ok {
			all[i].switched.typ = t
			byFile[m.file] = append(byFile[m.file], i)
		}
	}
	for {
		w := &woven{folder: folder, number: map[string]int{}, overlay: map[string]string{}}
		for file, numbers := range byFile {
			src, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			slices.SortStableFunc(numbers, func(a, b int) int {
				return cmp.Or(all[a].switched.from-all[b].switched.from, all[b].switched.to-all[a].switched.to)
			})
			text, left := switchable(src, all, numbers, 0, len(src))
			if len(left) > 0 {
				return nil, fmt.Errorf("%s: %d changes lie across each other", file, len(left))
			}
			if err := w.write(dir, file, text); err != nil {
				return nil, err
			}
			for _, n := range numbers {
				w.number[all[n].name] = n + 1
			}
		}
		if err := w.write(dir, filepath.Join(folder, "mutants.go"), "package "+filepath.Base(folder)+switches); err != nil {
			return nil, err
		}
		overlay := filepath.Join(dir, "overlay.json")
		out, err := exec.Command("go", "build", "-gcflags=-e", "-overlay", overlay, "./"+folder).CombinedOutput()
		if err == nil {
			return w, nil
		}
		if !w.without(byFile, string(out)) {
			return nil, fmt.Errorf("%w\n%s", err, out)
		}
	}
}

// write lays a text over a file.
func (w *woven) write(dir, file, text string) error {
	abs, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	w.overlay[abs] = filepath.Join(dir, filepath.Base(file))
	overlay, err := json.Marshal(map[string]any{"Replace": w.overlay})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		return err
	}
	return os.WriteFile(w.overlay[abs], []byte(text), 0o600)
}

// switchable is the text from lo to hi with its changes, which stand in order, and those that stand behind it.
func switchable(src []byte, all []mutant, numbers []int, lo, hi int) (string, []int) {
	var out strings.Builder
	for len(numbers) > 0 {
		at := all[numbers[0]].switched
		if at.from < lo || at.to > hi {
			break
		}
		same := 1
		for same < len(numbers) && all[numbers[same]].switched.from == at.from && all[numbers[same]].switched.to == at.to {
			same++
		}
		here := numbers[:same]
		out.Write(src[lo:at.from])
		var text string
		text, numbers = switchable(src, all, numbers[same:], at.from, at.to)
		for _, n := range here {
			m := all[n]
			changed := string(src[at.from:m.from]) + m.text + string(src[m.to:at.to])
			switch m.switched.typ {
			case "":
				text = fmt.Sprintf("if !mutantOn(%d) { %s }", n+1, text)
			case "bool":
				text = fmt.Sprintf("(mutantOn(%d) && (%s) || !mutantOn(%[1]d) && (%[3]s))", n+1, changed, text)
			default:
				text = fmt.Sprintf("mutantOr(%d, func() %s { return %s }, func() %[2]s { return %[4]s })",
					n+1, m.switched.typ, changed, text)
			}
		}
		out.WriteString(text)
		lo = at.to
	}
	out.Write(src[lo:hi])
	return out.String(), numbers
}

var refusedAt = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):`)

// without takes the changes out of byFile that stand in lines that the compiler refuses.
func (w *woven) without(byFile map[string][]int, out string) (some bool) {
	for _, m := range refusedAt.FindAllStringSubmatch(out, -1) {
		line, _ := strconv.Atoi(m[2])
		for file, numbers := range byFile {
			abs, _ := filepath.Abs(file)
			if filepath.Base(m[1]) != filepath.Base(file) {
				continue
			}
			text, err := os.ReadFile(w.overlay[abs])
			if err != nil {
				return false
			}
			lines := strings.SplitAfter(string(text), "\n")
			bad := map[int]bool{}
			for _, n := range regexp.MustCompile(`mutantO[nr]\((\d+)`).FindAllStringSubmatch(lines[line-1], -1) {
				k, _ := strconv.Atoi(n[1])
				bad[k-1] = true
			}
			byFile[file] = slices.DeleteFunc(numbers, func(n int) bool { return bad[n] })
			some = some || len(bad) > 0
		}
	}
	return some
}

// typesOf returns what says of which type the expression around a change is, and whether the change can be switched at
// all.
func typesOf(folder string) (func(m mutant) (string, bool), error) {
	const parts = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
		packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile
	fset := token.NewFileSet()
	loaded, err := packages.Load(&packages.Config{Mode: parts, Fset: fset}, "./"+folder)
	if err != nil {
		return nil, err
	}
	pkg := loaded[0]
	if len(pkg.Errors) > 0 {
		return nil, pkg.Errors[0]
	}
	byName := map[string]*ast.File{}
	for _, f := range pkg.Syntax {
		byName[fset.Position(f.Pos()).Filename] = f
	}
	typed := map[string]string{}
	for e, t := range pkg.TypesInfo.Types {
		from, to := fset.Position(e.Pos()), fset.Position(e.End())
		imported := true
		text := types.TypeString(types.Default(t.Type), func(p *types.Package) string {
			if p == pkg.Types {
				return ""
			}
			imported = imported && slices.ContainsFunc(byName[from.Filename].Imports, func(i *ast.ImportSpec) bool {
				return i.Name == nil && i.Path.Value == strconv.Quote(p.Path())
			})
			return p.Name()
		})
		if imported {
			typed[fmt.Sprint(filepath.Base(from.Filename), from.Offset, " ", to.Offset)] = text
		}
	}
	return func(m mutant) (string, bool) {
		if m.switched.to == 0 || m.switched.typ == "" {
			return "", m.switched.to > 0
		}
		t, ok := typed[fmt.Sprint(filepath.Base(m.file), m.switched.from, " ", m.switched.to)]
		return t, ok && !(t == "string" && m.text == "-")
	}, nil
}
