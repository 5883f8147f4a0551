package expr

import (
	"fmt"
	"strings"
	"testing"
)

// doubled is an expression in which a value is doubled n times.
func doubled(n int, first, twice, body string) string {
	for i := n; i > 0; i-- {
		body = fmt.Sprintf("cel.bind(v%d, %s, %s)", i, strings.ReplaceAll(twice, "v", fmt.Sprintf("v%d", i-1)), body)
	}
	return fmt.Sprintf("cel.bind(v0, %s, %s)", first, body)
}

// TestCallsArePaidBeforeTheyAreMade holds single calls, and rows of few, that would take all memory or hours:
// no loop of theirs is counted.
func TestCallsArePaidBeforeTheyAreMade(t *testing.T) {
	l := lang(t, "text")
	vars := map[string]any{"text": strings.Repeat("x", 1<<20)}
	for src, want := range map[string]string{
		"text.replace('', text)":                                      "a text of more than",
		"text.replace('x', text)":                                     "a text of more than",
		"lists.range(1000).map(i, string(i)).join(text)":              "a text of more than",
		strings.Repeat("text + ", 90) + "text":                        "a text of more than",
		"lists.range(1000).map(i, text + text).size()":                "steps",
		"lists.range(100000).map(i, text.contains('y')).size()":       "steps",
		"lists.range(100000).map(i, text.indexOf('y')).size()":        "steps",
		"lists.range(100000).map(i, lists.range(100000)).size()":      "steps",
		"lists.range(100000).map(i, text.split('')).size()":           "steps",
		"text.split('').distinct().size() + lists.range(1000).size()": "steps",
		"lists.range(50000).distinct().size()":                        "steps",
		"sets.contains(lists.range(50000), lists.range(50000))":       "steps",
		"text.matches('" + strings.Repeat("(x+x+)+", 30) + "y')":      "steps",
		"lists.range(1000).map(i, text.matches('x' + string(i)))":     "steps",
		"text.matches('" + strings.Repeat("(x?){1000}", 100) + "y')":  "the pattern is too large",
		"text.matches('(x?){900}(x?){900}(x?){900}' + 'y')":           "the pattern is too large",
		"text.matches(['(x?){900}(x?){900}(x?){900}'].join())":        "the pattern is too large",
		doubled(40, "[1]", "v + v", "2 in v40"):                       "steps",
		doubled(40, "[1]", "v + v", "v40 == v40"):                     "steps",
		doubled(40, "[1]", "v + v", "size(v40.distinct())"):           "steps",
		doubled(40, "[1]", "v + v", "size(v40.sort())"):               "steps",
		doubled(40, "[1]", "v + v", "size(rotate(v40, 1))"):           "steps",
		doubled(40, "[1]", "v + v", "sets.intersects(v40, [2])"):      "steps",
		doubled(30, "['x']", "v + v", "size(v30.join())"):             "steps",
		doubled(30, "[1]", "[v, v]", "size(v30.flatten(31))"):         "steps",
		doubled(30, "[1]", "[v, v]", "json(v30) == ''"):               "steps",
		doubled(30, "'x'", "v + v", "size(v30)"):                      "a text of more than",
	} {
		got := "a value"
		if p, err := l.program(src, decls, ""); err != nil {
			got = err.Error()
		} else if _, err := p.Eval(vars, record); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%.80s\n got %.200s, want %q", src, got, want)
		}
	}
}

// TestHonestWorkIsNotCut: what a specification may well do with a text of a megabyte or ten thousand items.
func TestHonestWorkIsNotCut(t *testing.T) {
	l := lang(t, "text", "list")
	list := make([]any, 10_000)
	for i := range list {
		list[i] = map[string]any{"id": fmt.Sprintf("item-%d", i), "n": int64(i)}
	}
	vars := map[string]any{"text": strings.Repeat("some words\n", 90_000), "list": list}
	for src, want := range map[string]bool{
		"size(text.split('\\n')) > 1000":                                        true,
		"size(text.replace('words', 'letters')) > 10":                           true,
		"text.lowerAscii().contains('nowhere')":                                 false,
		"text.matches('(?i)no[a-z]+ at all')":                                   false,
		"size(list.map(x, x.id).join(', ')) > 10":                               true,
		"size(list.filter(x, x.n % 2 == 0 && x.id.startsWith('item'))) == 5000": true,
		"size(list.sortBy(x, -x.n)) == 10000":                                   true,
		"size(list.map(x, x.id).filter(i, i in ['item-1', 'item-2'])) == 2":     true,
		"list == list": true,
		"size(lists.range(2000).distinct()) == 2000": true,
		"size(json(list)) > 10":                      true,
	} {
		p, err := l.program(src, decls, "")
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if v, err := p.Eval(vars, record); err != nil || v.Bool != want {
			t.Errorf("%s: %v, %v", src, v, err)
		}
	}
}

// TestIdsThatLookLikeNumbers: the ids of an expression are cut out of it, so that many share a program; what
// an expression says itself is never taken for such a cut.
func TestIdsThatLookLikeNumbers(t *testing.T) {
	l := lang(t, "m")
	vars := map[string]any{"m": map[string]any{"nodes": map[string]any{"a": int64(1)}, "a": int64(2)}}
	for src, want := range map[string]string{
		"nodes['#5'].out.n > 1":                               `node "#5" is not before this node`,
		"nodes['#x'].out.n + nodes['a'].out.n > 1":            `node "#x" is not before this node`,
		"nodes['#' + '0'].out.n + nodes['a'].out.n > 1":       `node "#0" is not before this node`,
		"nodes['\\x230'].out.n + nodes['a'].out.n > 1":        `node "#0" is not before this node`,
		"nodes['\\0430'].out.n + nodes['a'].out.n > 1":        `node "#0" is not before this node`,
		"[m].map(nodes, nodes['a'])[0] == 2":                  "true",
		"[m].exists(nodes , nodes['a'] == 2)":                 "true",
		"m. nodes['a'] + m.\n nodes['a'] + m.nodes['a'] == 3": "true",
	} {
		got := ""
		if p, err := l.program(src, decls, ""); err != nil {
			got = err.Error()
		} else if v, err := p.Eval(vars, record); err != nil {
			got = err.Error()
		} else {
			got = string(v.AppendJSON(nil))
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s\n got %s, want %s", src, got, want)
		}
	}
}
