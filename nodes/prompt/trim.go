package prompt

import (
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
)

const defaultCut = "[cut to its first half]"

// fit measures the prompt and takes the declared steps until it is within the limit.
func (a *assembly) fit() error {
	limit := a.settings.Limit
	a.measure()
	if limit == 0 {
		return nil
	}
	for _, step := range a.settings.Trim {
		if a.out.Tokens <= limit {
			return nil
		}
		if s := a.slots[step.Var]; s != nil {
			a.trim(s, step)
		}
	}
	if a.out.Tokens > limit {
		return nodes.Permanent(nodes.Fail("input_too_big", english.Sprintf(
			"prompt is about %d tokens, above the limit of %d, after all trimming", a.out.Tokens, limit)))
	}
	return nil
}

// trim takes one step of the ladder, piece by piece, until the prompt fits.
func (a *assembly) trim(s *slot, step trimStep) {
	switch step.By {
	case "oldest":
		for len(s.parts) > step.Keep && a.out.Tokens > a.settings.Limit {
			before, oldest := a.out.Tokens, s.parts[0]
			s.parts = s.parts[1:]
			a.trimmed(step, before, "entry", oldest.label)
		}
	case "valley":
		for _, i := range valley(len(s.parts), step.Positions) {
			if a.out.Tokens <= a.settings.Limit {
				return
			}
			p := &s.parts[i]
			if half, ok := firstHalf(p.text, step.Cut); ok {
				before := a.out.Tokens
				*p = newPart(p.label, p.head, half)
				a.trimmed(step, before, "file", p.label)
			}
		}
	case "drop":
		if s.chars() > 0 {
			before := a.out.Tokens
			*s = slot{} // its surroundings too
			a.trimmed(step, before, "variable", step.Var)
		}
	}
}

// trimmed measures again and records the step.
func (a *assembly) trimmed(step trimStep, before int64, what, which string) {
	a.measure()
	a.warn("prompt: trimmed %s (%s) %s %q: about %d tokens, limit %d",
		step.Var, step.By, what, which, a.out.Tokens, a.settings.Limit)
	a.out.Notes = append(a.out.Notes, nodes.LogLine{Log: "decision", Type: "trim-prompt", Fields: map[string]any{
		"variable": step.Var, "by": step.By, what: which,
		"tokensBefore": before, "tokensAfter": a.out.Tokens, "limit": a.settings.Limit,
	}})
}

// valley returns the indexes to cut: those declared (positions from 1), else those behind the
// middle without the last, where readers attend least: 3 and 4 of 5.
func valley(n int, positions []int) []int {
	var out []int
	for _, p := range positions {
		if p <= n {
			out = append(out, p-1)
		}
	}
	if positions != nil {
		return out
	}
	for i := n / 2; i < n-1; i++ {
		out = append(out, i)
	}
	return out
}

// firstHalf returns at most the first half of a text, up to a line's end where there is one,
// and the line that says so; false when that would not make it shorter.
func firstHalf(text string, cut *string) (string, bool) {
	runes := []rune(text)
	kept := string(runes[:len(runes)/2])
	end := len(kept)
	inLine := end < len(text) && text[end] != '\n'
	if i := strings.LastIndexByte(kept, '\n'); i > 0 && inLine {
		kept = kept[:i]
	}
	note := defaultCut
	if cut != nil {
		note = *cut
	}
	if note != "" {
		note = "\n\n" + note
	}
	kept = strings.TrimRight(kept, "\n") + note
	return kept, utf8.RuneCountInString(kept) < len(runes)
}
