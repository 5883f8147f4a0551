package extract

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// takeHTML chooses the document and holds it against the rules and the previous version.
func takeHTML(s *accept.State, a *answer, h *htmlRule) error {
	a, doc, err := find(s, a, h)
	if err != nil {
		return err
	}
	if at := a.seam(doc); at >= 0 {
		return nodes.Fail("truncated", fmt.Sprintf("line %d: the document breaks off at the end of its block and goes on in another", a.lineOf(at)))
	}
	text := a.bytesOf(doc)
	if err := inspect(s, text, h); err != nil {
		return err
	}
	if h.Controls == "remove" {
		text = strings.ReplaceAll(text, "\x00", "")
	}
	if h.Doctype == "add" && !doc.doctype && doc.root {
		text = "<!DOCTYPE html>\n" + text
	}
	if err := compare(s, []byte(text), h); err != nil {
		return err
	}
	s.Artifacts[h.To] = []byte(text)
	s.Values["chars"] = utf8.RuneCountInString(text)
	s.Note("decision", "extract-html", map[string]any{"artifact": h.To, "strategy": doc.strategy(), "bytes": len(text)})
	return nil
}

// find returns the one document that is meant and the answer that it stands in: a, or what is escaped in it.
func find(s *accept.State, a *answer, h *htmlRule) (*answer, *candidate, error) {
	doc, err := choose(s, a, h)
	var e *nodes.Error
	if !errors.As(err, &e) || e.Category != "no_artifact" {
		return a, doc, err
	}
	inner, how, cut := a.unwrapped()
	switch {
	case cut:
		return nil, nil, nodes.Fail("truncated", "the document stands in a JSON value that breaks off: ... "+tail(a.src))
	case inner == nil:
		return nil, nil, err
	}
	s.Warn("%s", how)
	doc, err = choose(s, inner, h)
	return inner, doc, err
}

// choose returns the one document that is meant.
func choose(s *accept.State, a *answer, h *htmlRule) (*candidate, error) {
	if a.walk.exhausted() {
		return nil, nodes.Fail("protocol", "the answer holds too many documents without an end")
	}
	whole := a.whole(h.Strategies)
	if len(whole) == 0 {
		return a.noDocument(h)
	}
	if err := a.brokenOff(s, whole[len(whole)-1]); err != nil {
		return nil, err
	}
	distinct := a.distinct(whole)
	for len(distinct) > 1 && h.Policy == "fail" && h.Placeholders == "fail" && len(placeholders(a.bytesOf(distinct[0]))) > 0 {
		s.Warn("line %d: a document that leaves parts out was left out, as the form of the next one", a.lineOf(distinct[0].start))
		distinct = distinct[1:]
	}
	doc := distinct[0]
	if len(distinct) > 1 {
		if doc = prefer(distinct, h); doc == nil {
			return nil, nodes.Fail("ambiguous", fmt.Sprintf("the answer holds %d different whole HTML documents", len(distinct)))
		}
		s.Warn("the answer holds %d different whole HTML documents; took the one in line %d (policy %s)", len(distinct), a.lineOf(doc.start), h.Policy)
	}
	return doc, a.oddities(s, doc, h)
}

// prefer returns the one of several documents that the policy takes; nil when it takes none.
func prefer(docs []*candidate, h *htmlRule) *candidate {
	switch h.Policy {
	case "first":
		return docs[0]
	case "last":
		return docs[len(docs)-1]
	case "largest":
		return slices.MaxFunc(docs, func(a, b *candidate) int { return (a.end - a.start) - (b.end - b.start) })
	case "order":
		return firstByStrategy(docs, h.Strategies)
	}
	return nil
}

// brokenOff warns of documents without an end. One behind the last whole document, with other content,
// that the end of the answer cuts is the version that was meant: the answer is truncated.
func (a *answer) brokenOff(s *accept.State, last *candidate) error {
	for i := range a.docs {
		d := &a.docs[i]
		if d.whole || !d.content || d.weak {
			continue
		}
		if d.start > last.start {
			switch text := strings.TrimRight(a.bytesOf(d), "`~ \r\n"); {
			case strings.Contains(a.bytesOf(last), text): // the same once more, cut
			case !d.closed && d.bodyEnd < 0:
				return nodes.Fail("truncated", fmt.Sprintf("line %d: a second document breaks off without </html>: ... %s", a.lineOf(d.start), tail(a.src)))
			}
		}
		s.Warn("line %d: a document that breaks off was left out", a.lineOf(d.start))
	}
	return nil
}

// whole returns the whole documents that stand as the strategies allow; those that text stands in
// front of only when there are no others.
func (a *answer) whole(strategies []string) []*candidate {
	var strong, weak []*candidate
	for i := range a.docs {
		d := &a.docs[i]
		switch {
		case !d.whole || !slices.Contains(strategies, d.strategy()):
		case d.weak:
			weak = append(weak, d)
		default:
			strong = append(strong, d)
		}
	}
	if strong != nil {
		return strong
	}
	return weak
}

// distinct leaves out documents that stand there before with the same content.
func (a *answer) distinct(docs []*candidate) []*candidate {
	var out []*candidate
	seen := map[string]bool{}
	for _, d := range docs {
		key := trimmedLines(a.bytesOf(d))
		if !seen[key] {
			seen[key] = true
			out = append(out, d)
		}
	}
	return out
}

// trimmedLines is a text without blanks at the ends of its lines.
func trimmedLines(text string) string {
	var b strings.Builder
	for _, l := range markdown.Lines(text) {
		b.WriteString(strings.TrimRight(l.Of(text), " \t"))
		b.WriteByte('\n')
	}
	return strings.TrimSpace(b.String())
}

func firstByStrategy(docs []*candidate, strategies []string) *candidate {
	for _, strategy := range strategies {
		for _, d := range docs {
			if d.strategy() == strategy {
				return d
			}
		}
	}
	return docs[0]
}

// oddities warns of what is unusual about the place and the head of a document.
func (a *answer) oddities(s *accept.State, d *candidate, h *htmlRule) error {
	for _, doubt := range a.doubts {
		s.Warn("%s", doubt)
	}
	if d.weak {
		s.Warn("line %d: text stands before the document on its line or in its block", a.lineOf(d.start))
	}
	if d.whole && d.firstEnd > 0 && d.firstEnd < d.end {
		s.Warn("line %d: the document goes on behind an </html>", a.lineOf(d.firstEnd-1))
	}
	if d.fence != nil && d.fence.Indent > 3 || d.fence == nil && d.indent > 3 && indented(a.src[d.start:d.end], d.indent) {
		s.Warn("the document stands in an indented block; its indent was taken off")
	}
	if d.fence != nil && d.fence.Odd {
		s.Warn("invisible blanks stand before the fence")
	}
	head := a.src[d.start:min(d.end, d.start+200)]
	switch {
	case strings.HasPrefix(head, "<?"):
		s.Warn("the document begins with an XML prologue")
	case !d.doctype && h.Doctype == "fail":
		return nodes.Fail("validation_failed", "the document has no <!DOCTYPE html>")
	case !d.doctype && h.Doctype == "add":
		s.Warn("the document had no <!DOCTYPE html>; it was added")
	case !d.doctype && d.root:
		s.Warn("the document has no <!DOCTYPE html>")
	}
	if !d.root && d.doctype {
		s.Warn("the document has no <html> tag")
	}
	return nil
}

// noDocument says why there is none, or takes a fragment.
func (a *answer) noDocument(h *htmlRule) (*candidate, error) {
	for i := len(a.docs) - 1; i >= 0; i-- {
		d := &a.docs[i]
		if d.whole || d.ended || d.weak && !d.page {
			continue
		}
		if d.bodyEnd >= 0 && a.finished(d) {
			return nil, nodes.Fail("validation_failed", fmt.Sprintf("line %d: the document has </body> but no </html>", a.lineOf(d.start)))
		}
		return nil, nodes.Fail("truncated", fmt.Sprintf("line %d: the document breaks off without </html>: ... %s", a.lineOf(d.start), tail(a.src)))
	}
	if h.Fragments {
		if d, err := a.fragment(); d != nil || err != nil {
			return d, err
		}
	}
	if end := cutEnd(a.src, []string{"...", "…", "<!-- rest"}); end != "" {
		return nil, nodes.Fail("truncated", fmt.Sprintf("no HTML document, and the answer ends in %q", end))
	}
	if len(a.fragments()) > 0 {
		return nil, nodes.Fail("no_artifact", "the answer holds a part of a page, not a whole HTML document")
	}
	return nil, nodes.Fail("no_artifact", "the answer holds no HTML document")
}

// finished reports whether the answer goes on, or its block was closed, behind </body>: then the end
// tag was forgotten, not cut off.
func (a *answer) finished(d *candidate) bool {
	rest := strings.ToLower(markdown.TrimBlank(a.src[d.bodyEnd:]))
	return d.closed || !strings.HasPrefix("</html>", rest)
}

// fragments returns the blocks that begin with a tag.
func (a *answer) fragments() []block {
	var out []block
	for _, b := range a.blocks {
		s := markdown.TrimBlank(a.src[b.start:b.end])
		if len(s) > 1 && s[0] == '<' && (s[1] == '!' || s[1] >= 'a' && s[1] <= 'z' || s[1] >= 'A' && s[1] <= 'Z') {
			out = append(out, b)
		}
	}
	return out
}

func (a *answer) fragment() (*candidate, error) {
	parts := a.fragments()
	switch len(parts) {
	case 0:
		return nil, nil
	case 1:
		b := parts[0]
		return &candidate{scan: scan{start: b.start, end: b.end, whole: true}, fence: &b.fence}, nil
	}
	return nil, nodes.Fail("ambiguous", fmt.Sprintf("the answer holds %d parts of a page", len(parts)))
}

// cutEnd returns which of the ends an answer has.
func cutEnd(src string, ends []string) string {
	src = strings.TrimRightFunc(src, markdown.Blank)
	for _, end := range ends {
		if end != "" && strings.HasSuffix(src, end) {
			return end
		}
	}
	return ""
}

// tail is the end of an answer for messages.
func tail(src string) string {
	const most = 60
	s := []rune(strings.Join(strings.Fields(src[max(0, len(src)-4*most):]), " "))
	return fmt.Sprintf("%q", string(s[max(0, len(s)-most):]))
}
