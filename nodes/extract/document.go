package extract

import (
	"sort"
	"strings"

	"golang.org/x/net/html"

	"dagrun.dev/nodes/internal/markdown"
)

// A scan is what a walk over an HTML document from its start has found. Offsets are into the
// answer.
type scan struct {
	start, end int  // end: behind </html> when whole, else where it breaks off
	whole      bool // it has an end and something inside
	restart    int  // another document starts here before this one has ended; -1 = none
	doctype    bool
	root       bool // <html>
	head       int  // where its own doctype and <html> end
	content    bool // an element inside
	page       bool // <head> or <body>
	ended      bool // </html> is there
	firstEnd   int  // behind the first </html>, though the page goes on behind it
	within     bool // another document stands in one of its elements
	bodyEnd    int  // behind the last </body>; -1 = none
}

// A walker walks over documents of one answer and counts the bytes it reads, so that hostile
// answers (thousands of documents that never end) stay linear.
type walker struct {
	src    string
	lines  []markdown.Line
	starts []int // offsets of lines that look like the start of a document, stray doctypes aside, ascending
	read   int   // bytes read by tokenizers
	budget int   // most bytes to read
}

// walks bounds how often an answer may be read in all. An honest one is read about twice.
const walks = 8

func newWalker(src string, lines []markdown.Line) *walker {
	w := &walker{src: src, lines: lines, budget: walks*len(src) + 1<<16}
	for _, l := range lines {
		if at, ok := documentStart(src, l); ok && !isStray(src[at:]) {
			w.starts = append(w.starts, at)
		}
	}
	return w
}

// exhausted reports whether nothing more is read: what was not looked at is no document.
func (w *walker) exhausted() bool { return w.read >= w.budget }

// documentStart reports whether a line begins with a doctype, an <html> tag or an XML prologue,
// blanks aside, and where.
func documentStart(src string, l markdown.Line) (int, bool) {
	s := strings.TrimLeftFunc(l.Of(src), func(r rune) bool { return r == 0 || markdown.Blank(r) })
	if s == "" || s[0] != '<' {
		return 0, false
	}
	at := l.End - len(s)
	return at, startsHere(src[at:]) || hasPrologue(src[at:])
}

// startsHere reports whether s begins with a doctype or an <html> tag.
func startsHere(s string) bool { return hasDoctype(s) || hasTag(s, "<html") }

func hasDoctype(s string) bool {
	rest, ok := cutFold(s, "<!doctype")
	if !ok {
		return false
	}
	blank := strings.TrimLeft(rest[:min(len(rest), 100)], " \t\r\n\f")
	_, ok = cutFold(blank, "html")
	return ok && len(blank) < min(len(rest), 100)
}

// hasTag reports whether s begins with a start tag.
func hasTag(s, open string) bool {
	rest, ok := cutFold(s, open)
	return ok && rest != "" && strings.IndexByte(" \t\r\n\f/>", rest[0]) >= 0
}

// isStray reports whether s begins with a doctype that no page follows: one in the body of another page.
func isStray(s string) bool {
	s = s[:min(len(s), 400)]
	end := strings.IndexByte(s, '>')
	if end < 0 || !hasDoctype(s) {
		return false
	}
	s = strings.TrimLeftFunc(s[end+1:], markdown.Blank)
	for _, next := range []string{"<html", "<head", "<body", "<meta", "<title", "<!--"} {
		if _, ok := cutFold(s, next); ok {
			return false
		}
	}
	return s != ""
}

// hasPrologue reports whether s begins with an XML prologue of an HTML document.
func hasPrologue(s string) bool {
	if _, ok := cutFold(s, "<?xml"); !ok {
		return false
	}
	end := strings.IndexByte(s[:min(len(s), 200)], '>')
	if end < 0 {
		return false
	}
	return startsHere(strings.TrimLeftFunc(s[end+1:], markdown.Blank))
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// document walks from a start to the document's real end. Where the walk ends with that of a
// later start, the earlier document was cut inside a script, a comment or a tag that swallowed the
// later one's beginning: then restart is that one.
func (w *walker) document(start int) scan {
	s := w.walk(start, true)
	if !s.whole && s.restart < 0 {
		// A <pre> or <code> that is never closed hides the end.
		if again := w.walk(start, false); again.whole {
			s = again
		}
	}
	if !s.whole {
		return s
	}
	if later := w.lastStart(s.head, s.end); later > 0 && !s.within {
		if inner := w.walk(later, true); inner.whole && inner.firstEnd == s.firstEnd {
			s.whole, s.restart, s.end = false, later, later
		}
	}
	return s
}

// lastStart returns the last line start of a document in [from, to), or -1.
func (w *walker) lastStart(from, to int) int {
	lo, hi := 0, len(w.starts)
	for lo < hi {
		if mid := (lo + hi) / 2; w.starts[mid] < to {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == 0 || w.starts[lo-1] < from {
		return -1
	}
	return w.starts[lo-1]
}

// isInert holds the elements in which the tags of a page are none: in <template> by the standard, in <pre> and <code> as a sample
// that was not escaped.
var isInert = map[string]bool{"template": true, "pre": true, "code": true}

// goesOn reports whether a page goes on behind an </html> at an offset: behind a stray <html>, or right before a tag of its own, and
// there is another </body></html> before the next document and the next fence.
func (w *walker) goesOn(start, at int, nested bool) bool {
	to := len(w.src)
	if k := sort.SearchInts(w.starts, at); k < len(w.starts) {
		to = w.starts[k]
	}
	rest := w.src[at:to]
	if !nested && !w.ownTag(start, at, strings.TrimLeft(rest, " \t\r\n")) {
		return false
	}
	w.read += len(rest)
	for _, fence := range []string{"\n```", "\n~~~"} {
		rest, _, _ = strings.Cut(rest, fence)
	}
	body := markdown.IndexFold(rest, "</body")
	return body >= 0 && markdown.IndexFold(rest[body:], "</html") >= 0
}

// inside reports whether the document whose head ends at an offset stands in an element of the page from start on: that goes on
// behind its </html>.
func (w *walker) inside(start, at int) bool {
	if w.exhausted() {
		return false
	}
	n := markdown.IndexFold(w.src[at:], "</html>")
	if n < 0 {
		w.read += len(w.src) - at
		return false
	}
	w.read += n
	return w.goesOn(start, at+n+len("</html>"), false)
}

// ownTag reports whether s begins with a start tag, or the end tag of an element that a page from start on has.
func (w *walker) ownTag(start, at int, s string) bool {
	s, ok := strings.CutPrefix(s, "<")
	s, ends := strings.CutPrefix(s, "/")
	const longest = 20
	n := strings.IndexFunc(s[:min(len(s), longest)], func(r rune) bool { return (r|0x20 < 'a' || r|0x20 > 'z') && (r < '0' || r > '9') })
	if !ok || n <= 0 || !ends {
		return ok && n > 0
	}
	w.read += at - start
	return markdown.IndexFold(w.src[start:at], "<"+strings.ToLower(s[:n])) >= 0
}

// walk tokenises from start until the first </html> that is an end tag. In inert elements such tags do not count, if heedSamples
// says so.
func (w *walker) walk(start int, heedSamples bool) scan {
	s := scan{start: start, end: len(w.src), restart: -1, bodyEnd: -1}
	if w.exhausted() {
		return s
	}
	z := html.NewTokenizer(strings.NewReader(w.src[start:]))
	at, sample, nested := start, 0, false
	for {
		tt := z.Next()
		n := len(z.Raw())
		w.read += n
		if tt == html.ErrorToken {
			w.read += len(w.src) - at - n
			return s
		}
		tokenAt := at
		at += n
		name := ""
		switch tt {
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			b, _ := z.TagName()
			name = string(b)
		}
		switch {
		case tt == html.DoctypeToken, tt == html.StartTagToken && name == "html":
			if sample > 0 {
				continue
			}
			if s.root || s.content || tt == html.DoctypeToken && s.doctype {
				if starts := w.lastStart(tokenAt, tokenAt+1) == tokenAt; starts && !s.within && !w.inside(start, at) {
					s.restart, s.end = tokenAt, tokenAt
					return s
				} else if starts {
					s.within = true
				}
				nested = nested || s.within || tt == html.StartTagToken
				continue
			}
			s.doctype = s.doctype || tt == html.DoctypeToken && hasDoctype(w.src[tokenAt:at])
			s.root = s.root || name == "html"
			s.head = at
		case tt == html.EndTagToken && name == "html" && sample == 0:
			if s.firstEnd == 0 {
				s.firstEnd = at
			}
			if w.goesOn(start, at, nested) {
				continue
			}
			s.end, s.ended = at, true
			s.whole = (s.root || s.doctype) && s.content
			return s
		case tt == html.EndTagToken && name == "body" && sample == 0:
			s.bodyEnd = at
		case tt == html.EndTagToken && isInert[name]:
			sample = max(0, sample-1)
		case tt == html.EndTagToken:
		case name != "":
			s.content = true
			s.page = s.page || name == "head" || name == "body" || name == "frameset"
			if isInert[name] && heedSamples && tt == html.StartTagToken {
				sample++
			}
		}
	}
}
