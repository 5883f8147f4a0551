package verdict

import (
	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// planted warns when the reviewed artifact itself holds a line that reads like a verdict, by chance or by design: a
// reviewer may have quoted or obeyed it.
func (x step) planted(s *accept.State) error {
	if x.About == "" {
		return nil
	}
	content, ok, err := s.Previous(x.About)
	if err != nil {
		return &nodes.Error{Category: "config", Message: "artifact " + x.About, Err: err}
	}
	if !ok {
		return nil
	}
	text, labels := string(content), x.labels()
	for i, l := range markdown.Lines(text) {
		line := normal(l.Of(text))
		if line == "" || !x.decides(line) && !x.scored(line, labels) {
			continue
		}
		what := accept.Quote(line)
		s.Warn("%s, line %d, reads like a verdict: %s", x.About, i+1, what)
		s.Note("quality", "verdict-in-artifact", map[string]any{"artifact": x.About, "line": i + 1, "text": what})
		return nil
	}
	return nil
}

// decides reports whether a line holds the decision's label, and values behind it.
func (x step) decides(line string) bool {
	d := x.Decision
	if d == nil {
		return false
	}
	rest, ok := d.label.cut(bare(line))
	if !ok {
		_, rest, ok = d.label.find(line)
	}
	text, _, delimited := d.behind(rest)
	return ok && delimited && len(named(text, d.Values)) > 0
}

// scored reports whether a line holds a score.
func (x step) scored(line string, labels []label) bool {
	for _, g := range x.groups() {
		for _, rule := range g.rules {
			if readScore(line, rule.label, labels, rule).status >= warned {
				return true
			}
		}
	}
	return false
}
