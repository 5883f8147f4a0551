package markdown

import (
	"bytes"
	"cmp"
	"slices"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A tag is one of HTML, at an offset of the text.
type tag struct {
	at     int
	name   string
	closes bool
}

// An element is what stands between a start tag and its end tag.
type element struct {
	name     string
	from, to int
}

func (e element) holds(at int) bool { return e.from < at && at < e.to }

// own reports whether an element's name is none of HTML's, such as <answer>.
func (e element) own() bool { return atom.Lookup([]byte(e.name)) == 0 }

// dress are the elements that leave to the author what stands in them. What stands in another one is shown, quoted or
// struck out.
var dress = []string{
	"b", "strong", "em", "i", "u", "mark", "code", "span", "font", "br",
	"details", "summary", "div", "p", "center",
}

// tags returns the tags of a piece of HTML.
func tags(at int, source []byte) (out []tag) {
	z := html.NewTokenizer(bytes.NewReader(source))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return out
		}
		if kind == html.StartTagToken || kind == html.EndTagToken {
			name, _ := z.TagName()
			out = append(out, tag{at, string(name), kind == html.EndTagToken})
		}
	}
}

// elements pairs end tags with the start tags before them. A start tag without an end is none: answers write <name> and
// mean a word.
func elements(list []tag) (out []element) {
	var open []tag
	waiting := map[string]int{} // start tags of a name in open
	for _, t := range list {
		if !t.closes {
			open = append(open, t)
			waiting[t.name]++
			continue
		}
		for paired := waiting[t.name] == 0; !paired; {
			start := open[len(open)-1]
			open = open[:len(open)-1]
			waiting[start.name]--
			if paired = start.name == t.name; paired && !slices.Contains(dress, t.name) {
				out = append(out, element{t.name, start.at, t.at})
			}
		}
	}
	return out
}

// outermost returns the elements that stand in no other one, in order.
func outermost(list []element) (out []element) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b element) int { return cmp.Or(a.from-b.from, b.to-a.to) })
	for _, e := range list {
		if len(out) == 0 || e.from >= out[len(out)-1].to {
			out = append(out, e)
		}
	}
	return out
}
