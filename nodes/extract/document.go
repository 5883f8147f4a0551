package extract

import (
	"slices"
	"sort"
	"strings"

	"golang.org/x/net/html"

	"dagrun.dev/nodes/internal/markdown"
)

// A document is an HTML document, whole or not, as a walk from its start finds it. Offsets are into the answer.
type document struct {
	start, end int             // end: behind </html> when whole, else where it breaks off
	fence      *markdown.Fence // the block it stands in, or nil
	whole      bool            // it has an end and something inside
	doctype    bool
	root       bool // <html>
	page       bool // <head> or <body>
	head       int  // where its own doctype and <html> end
	content    bool // an element inside
	seam       int  // its block ends here, in the middle of it; -1: nowhere
}

// strategy names how the document stands in the answer.
func (d *document) strategy() string {
	switch {
	case d.fence != nil:
		return "fence"
	case d.doctype:
		return "doctype"
	}
	return "html"
}

// walks bounds how often an answer may be read in all, so that hostile ones (thousands of documents that never end)
// stay linear. An honest one is read about twice.
const walks = 8

// exhausted reports whether nothing more is read: what was not looked at is no document.
func (a *answer) exhausted() bool { return a.read > walks*len(a.src)+1<<16 }

// walk reads a document from its start to its real end. Where that is also the end of a later start, the earlier
// document was cut inside a script, a comment or a tag that swallowed the later one's beginning.
func (a *answer) walk(start int, f *markdown.Fence) document {
	d := a.tokens(start, f, true)
	if !d.whole && d.end == len(a.src) {
		// A <pre> or <code> that is never closed hides the end.
		if again := a.tokens(start, f, false); again.whole {
			d = again
		}
	}
	k := sort.SearchInts(a.starts, d.end)
	if d.whole && k > 0 && a.starts[k-1] > d.head {
		if later := a.tokens(a.starts[k-1], f, true); later.whole && later.end == d.end {
			d.whole, d.end = false, later.start
		}
	}
	return d
}

var (
	// isInert holds the elements in which the tags of a page are none: in <template> by the standard, in <pre> and
	// <code> as a sample that was not escaped.
	isInert = map[string]bool{"template": true, "pre": true, "code": true}
	// isRaw holds the elements whose text is none of the page's.
	isRaw = map[string]bool{
		"script": true, "style": true, "textarea": true, "title": true, "xmp": true, "iframe": true, "noembed": true,
		"noframes": true,
	}
)

// tokens reads from start until the first </html> that is an end tag, or the start of another document. In inert
// elements such tags do not count, if samples says so.
func (a *answer) tokens(start int, f *markdown.Fence, samples bool) document {
	d := document{start: start, end: len(a.src), fence: f, seam: -1}
	if a.exhausted() {
		return d
	}
	z := html.NewTokenizer(strings.NewReader(a.src[start:]))
	inert, last := 0, "" // last: the start tag right before
	for at := start; ; {
		tt := z.Next()
		from, name := at, ""
		at += len(z.Raw())
		a.read += at - from
		if tt == html.ErrorToken {
			a.read += len(a.src) - at
			return d
		}
		if tt == html.StartTagToken || tt == html.SelfClosingTagToken || tt == html.EndTagToken {
			b, _ := z.TagName()
			name = string(b)
		}
		raw := a.src[from:at]
		if f != nil && inert == 0 && d.seam < 0 && !isRaw[last] && !strings.HasPrefix(raw, "<!--") {
			d.seam = closedWithin(f, raw, from)
		}
		switch {
		case tt == html.EndTagToken && isInert[name]:
			inert = max(0, inert-1)
		case inert > 0 && name != "" && !isInert[name], tt == html.DoctypeToken && inert > 0:
		case (tt == html.DoctypeToken || name == "html" && tt == html.StartTagToken) &&
			(d.root || d.content || d.doctype && name == ""):
			if _, second := slices.BinarySearch(a.starts, from); second {
				d.end = from
				return d
			}
		case tt == html.DoctypeToken:
			d.doctype, d.head = true, at
		case name == "html" && tt != html.EndTagToken:
			d.root, d.head = true, at
		case name == "html":
			d.end, d.whole = at, (d.root || d.doctype) && d.content
			return d
		case name != "" && tt != html.EndTagToken:
			d.content = true
			d.page = d.page || name == "head" || name == "body" || name == "frameset"
			if isInert[name] && samples && tt == html.StartTagToken {
				inert++
			}
		}
		if last = ""; tt == html.StartTagToken {
			last = name
		}
	}
}

// closedWithin returns where a line of a text closes a block, by its offset in the answer; -1 when none does.
func closedWithin(f *markdown.Fence, text string, from int) int {
	if !strings.Contains(text, strings.Repeat(string(f.Char), f.Len)) {
		return -1
	}
	for i, l := range markdown.Lines(text) {
		if i > 0 && f.Closes(l.Of(text)) {
			return from + l.Start
		}
	}
	return -1
}

// bytesOf returns a document's bytes: without the indent of its block and without notes that stand in it.
func (a *answer) bytesOf(d *document) string {
	var b strings.Builder
	at := d.start
	first := sort.Search(len(a.inDocs), func(k int) bool { return a.inDocs[k].start >= d.start })
	for _, notes := range a.inDocs[first:] {
		if notes.end > d.end {
			break
		}
		b.WriteString(a.src[at:max(at, notes.start)]) // blocks of two names may overlap, and two steps may take one name
		at = max(at, notes.end)
	}
	b.WriteString(a.src[at:d.end])
	text := b.String()
	if d.fence != nil && d.fence.Indent > 0 {
		text = outdent(text, d.fence.Indent)
	}
	return strings.Trim(text, "\r\n\ufeff")
}

// outdent takes up to so many columns of blanks off each line.
func outdent(text string, columns int) string {
	var b strings.Builder
	for _, l := range markdown.Lines(text) {
		line := text[l.Start:l.Next]
		for n := 0; n < columns && line != "" && (line[0] == ' ' || line[0] == '\t'); line = line[1:] {
			if line[0] == '\t' {
				n += 4
			} else {
				n++
			}
		}
		b.WriteString(line)
	}
	return b.String()
}
