package expr

import (
	"slices"
	"strings"

	"dagrun.dev/internal/tree"
)

// holes is an expression that reads recorded values and therefore stays in the plan, with the
// variables of the expansion cut out of it:
//
//	nodes['fit/' + s.key].out.n > p.n    becomes    nodes['fit/' + «s.key»].out.n > «p.n»
//
// Filling a hole writes the variable's value as a literal.
type holes struct {
	text  []string   // one more than progs
	progs []*Program // s.key, p.n
}

// lateHoles returns nil when src reads neither nodes nor run.
func (l *Lang) lateHoles(src string) (*holes, []string) {
	if !strings.Contains(src, "nodes") && !strings.Contains(src, "run") {
		return nil, nil
	}
	a, f, problems := l.parse(src)
	if a == nil {
		return nil, problems
	}
	if !f.recorded {
		return nil, nil
	}
	if len(f.free) == 0 {
		_, problems := l.Parse(src)
		return &holes{text: []string{src}}, problems
	}
	slices.SortFunc(f.free, func(a, b name) int { return a.offset - b.offset })
	runes := []rune(src)
	h := &holes{}
	done := 0
	for _, v := range f.free {
		start := v.offset
		end := chainEnd(runes, start)
		e, problems := l.Parse(string(runes[start:end]))
		if len(problems) > 0 {
			return nil, problems
		}
		p, problems := e.Check(Decls{}, "")
		if len(problems) > 0 {
			return nil, problems
		}
		h.text = append(h.text, string(runes[done:start]))
		h.progs = append(h.progs, p)
		done = end
	}
	h.text = append(h.text, string(runes[done:]))
	return h, nil
}

// chainEnd returns the end of name.field.field at src[i:]; a method is no field.
func chainEnd(src []rune, i int) int {
	word := func(i int) int {
		for i < len(src) && src[i] < 128 && isWord(byte(src[i])) {
			i++
		}
		return i
	}
	end := word(i)
	for end < len(src) && src[end] == '.' {
		next := word(end + 1)
		if next == end+1 || next < len(src) && src[next] == '(' {
			break
		}
		end = next
	}
	return end
}

func (h *holes) fill(vars map[string]any) (string, error) {
	var b strings.Builder
	for i, p := range h.progs {
		v, err := p.Eval(vars, nil)
		if err != nil {
			return "", err
		}
		b.WriteString(h.text[i])
		b.WriteString(literal(v))
	}
	b.WriteString(h.text[len(h.progs)])
	return b.String(), nil
}

// literal writes a value as CEL: JSON, with negative numbers in parentheses.
func literal(v *tree.Value) string {
	s := string(v.AppendJSON(nil))
	if strings.HasPrefix(s, "-") {
		return "(" + s + ")"
	}
	return s
}
