package extract

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"dagrun.dev/nodes"
	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// takeHTML chooses the document and holds it against the rules and the previous version.
func takeHTML(s *accept.State, a *answer, h *htmlRule) error {
	d, err := a.choose(s, h)
	if err != nil {
		return err
	}
	text := a.bytesOf(d)
	if err := inspect(s, text, h); err != nil {
		return err
	}
	if h.Controls == "remove" {
		text = strings.ReplaceAll(text, "\x00", "")
	}
	if h.Doctype == "add" && !d.doctype && d.root {
		text = "<!DOCTYPE html>\n" + text
	}
	if err := compare(s, []byte(text), h); err != nil {
		return err
	}
	s.Artifacts[h.To] = []byte(text)
	s.Values["chars"] = utf8.RuneCountInString(text)
	s.Note("decision", "extract-html", map[string]any{"artifact": h.To, "strategy": d.strategy(), "bytes": len(text)})
	return nil
}

// choose returns the one document that is meant. Doubt about which one, or where it ends, is a failure.
func (a *answer) choose(s *accept.State, h *htmlRule) (*document, error) {
	switch {
	case a.exhausted():
		return nil, nodes.Fail("protocol", "the answer holds too many documents without an end")
	case a.endless:
		return nil, nodes.Fail("truncated", "the thinking is never closed: "+tail(a.src))
	}
	found, seen := []*document{}, map[string]bool{}
	var last *document
	for i := range a.docs {
		d := &a.docs[i]
		if !d.whole || !slices.Contains(given(h.Strategies, strategies), d.strategy()) {
			continue
		}
		last = d
		if key := trimmedLines(a.bytesOf(d)); !seen[key] {
			seen[key] = true
			found = append(found, d)
		}
	}
	if len(found) == 0 {
		return a.noDocument(h)
	}
	if err := a.brokenOff(s, last); err != nil {
		return nil, err
	}
	d := found[0]
	if len(found) > 1 {
		if d = prefer(found, h); d == nil {
			return nil, nodes.Failf("ambiguous", "the answer holds %d different whole HTML documents", len(found))
		}
		s.Warn("the answer holds %d different whole HTML documents; took the one in line %d (policy %s)",
			len(found), a.lineOf(d.start), h.Policy)
	}
	if err := a.ends(d); err != nil {
		return nil, err
	}
	return d, a.oddities(s, d, h)
}

// prefer returns the one of several documents that the policy takes; nil when it takes none.
func prefer(docs []*document, h *htmlRule) *document {
	switch h.Policy {
	case "first":
		return docs[0]
	case "last":
		return docs[len(docs)-1]
	case "largest":
		return slices.MaxFunc(docs, func(a, b *document) int { return (a.end - a.start) - (b.end - b.start) })
	case "order":
		order := given(h.Strategies, strategies)
		return slices.MinFunc(docs, func(a, b *document) int {
			return slices.Index(order, a.strategy()) - slices.Index(order, b.strategy())
		})
	}
	return nil
}

// brokenOff warns of documents without an end. One behind the last whole document, with other content, may be the
// version that was meant: the answer is truncated.
func (a *answer) brokenOff(s *accept.State, last *document) error {
	for i := range a.docs {
		d := &a.docs[i]
		if d.whole || !d.content {
			continue
		}
		begun := strings.TrimRight(a.bytesOf(d), "`~ \r\n")
		if d.start > last.start && !strings.HasPrefix(a.bytesOf(last), begun) {
			return nodes.Failf("truncated", "line %d: a second document breaks off without </html>: %s",
				a.lineOf(d.start), tail(a.src))
		}
		s.Warn("line %d: a document that breaks off was left out", a.lineOf(d.start))
	}
	return nil
}

// ends says why the end of a document is in doubt.
func (a *answer) ends(d *document) error {
	if d.seam >= 0 {
		return nodes.Failf("truncated", "line %d: the block of the document ends in the middle of it", a.lineOf(d.seam))
	}
	rest := a.src[d.end:]
	if k := sort.SearchInts(a.starts, d.end); k < len(a.starts) {
		rest = a.src[d.end:a.starts[k]]
	}
	for _, fence := range []string{"\n```", "\n~~~"} {
		rest, _, _ = strings.Cut(rest, fence)
	}
	if markdown.IndexFold(rest, "</body") >= 0 {
		return nodes.Failf("ambiguous", "line %d: the document goes on behind its </html>", a.lineOf(d.end-1))
	}
	return nil
}

// trimmedLines is a text without blanks at the ends of its lines.
func trimmedLines(text string) string {
	var b strings.Builder
	for _, l := range markdown.Lines(text) {
		b.WriteString(strings.TrimRight(l.Of(text), " \t") + "\n")
	}
	return strings.TrimSpace(b.String())
}

// oddities warns of what is unusual about the place and the head of a document.
func (a *answer) oddities(s *accept.State, d *document, h *htmlRule) error {
	for _, doubt := range a.doubts {
		s.Warn("%s", doubt)
	}
	if d.fence != nil && d.fence.Indent > 3 {
		s.Warn("the document stands in an indented block; its indent was taken off")
	}
	if d.fence != nil && d.fence.Odd {
		s.Warn("invisible blanks stand before the fence")
	}
	switch {
	case strings.HasPrefix(a.src[d.start:], "<?"):
		s.Warn("the document begins with an XML prologue")
	case !d.doctype && h.Doctype == "fail":
		return nodes.Fail("validation_failed", "the document has no <!DOCTYPE html>")
	case !d.doctype && h.Doctype == "add":
		s.Warn("the document had no <!DOCTYPE html>; it was added")
	case !d.doctype && d.root:
		s.Warn("the document has no <!DOCTYPE html>")
	case d.doctype && !d.root:
		s.Warn("the document has no <html> tag")
	}
	return nil
}

// noDocument says why there is none, or takes a fragment.
func (a *answer) noDocument(h *htmlRule) (*document, error) {
	for i := len(a.docs) - 1; i >= 0; i-- {
		if d := &a.docs[i]; !d.whole && (d.end == len(a.src) || d.content) {
			return nil, nodes.Failf("truncated", "line %d: the document breaks off without </html>: %s",
				a.lineOf(d.start), tail(a.src))
		}
	}
	var parts []block
	for _, b := range a.blocks {
		if strings.HasPrefix(markdown.TrimBlank(a.src[b.start:b.end]), "<") {
			parts = append(parts, b)
		}
	}
	switch {
	case a.drafts:
		return nil, nodes.Fail("truncated", "the only document stands before the end of thinking")
	case h.Fragments && len(parts) == 1:
		return &document{start: parts[0].start, end: parts[0].end, whole: true, fence: &parts[0].fence, seam: -1}, nil
	case h.Fragments && len(parts) > 1:
		return nil, nodes.Failf("ambiguous", "the answer holds %d parts of a page", len(parts))
	case len(parts) > 0:
		return nil, nodes.Fail("no_artifact", "the answer holds a part of a page, not a whole HTML document")
	}
	if end := cutEnd(a.src, defaultCutEnds); end != "" {
		return nil, nodes.Failf("truncated", "no HTML document, and the answer ends in %q", end)
	}
	return nil, nodes.Fail("no_artifact", "the answer holds no HTML document")
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
	return fmt.Sprintf("... %q", string(s[max(0, len(s)-most):]))
}

// inspect looks for bytes that cannot be part of a page and for parts that were left out.
func inspect(s *accept.State, text string, h *htmlRule) error {
	if n := strings.Count(text, "\x00"); n > 0 {
		if h.Controls != "remove" {
			return nodes.Failf("protocol", "the document holds %d NUL bytes", n)
		}
		s.Warn("%d NUL bytes were removed from the document", n)
	}
	if !utf8.ValidString(text) {
		s.Warn("the document is not UTF-8 text throughout")
	}
	if h.Placeholders == "ignore" {
		return nil
	}
	mark := placeholder(text, given(h.Marks, defaultMarks))
	switch {
	case mark == "":
		return nil
	case h.Placeholders == "warn":
		s.Warn("the document may leave parts out: %s", accept.Quote(mark))
		return nil
	}
	return nodes.Fail("placeholder", "the document leaves parts out: "+accept.Quote(mark))
}

// compare holds a document against the version before it.
func compare(s *accept.State, text []byte, h *htmlRule) error {
	before, ok, err := s.Previous(h.previous())
	if err != nil {
		return &nodes.Error{Category: "config", Message: "artifact " + h.previous(), Err: err}
	}
	s.Values["changed"] = true
	sizes := map[string]any{"artifactSizeAfter": len(text)}
	if ok {
		sizes["artifactSizeBefore"] = len(before)
	}
	s.Note("node", "size", sizes)
	if !ok {
		return nil
	}
	least := 0.5
	if h.AtLeast != nil {
		least = *h.AtLeast
	}
	if float64(len(text)) < least*float64(len(before)) {
		return nodes.Failf("placeholder",
			"the document has %d bytes, less than %g of the %d of the version before: parts were left out",
			len(text), least, len(before))
	}
	if bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(before)) {
		s.Values["changed"] = false
		s.Note("decision", "accept-no-modification", map[string]any{
			"artifact": h.To, "reason": "the document is identical to the version before",
		})
		s.Note("quality", "no-modification", map[string]any{"artifact": h.To})
	}
	return nil
}

const ellipsis = `(?:\.\s?\.\s?\.|…|⋯)[\s.…⋯]*`

var (
	// A line of a style sheet or a script that begins with a comment.
	codeComment = regexp.MustCompile(`(?m)^[ \t]*(?://|/\*+)(.*)$`)
	// An ellipsis stands first.
	elided = regexp.MustCompile(`^[\s\[({]*` + ellipsis)
	// A text in brackets, or a comment of another language, that begins with an ellipsis and words.
	bracketed = regexp.MustCompile(`^\s*[\[{［【][\s/*]*` + ellipsis + `[^\]}］】]*[\pL\pN*][^\]}］】]*[\]}］】]\s*$`)
	dots      = regexp.MustCompile(`^\s*\[?\s*` + ellipsis + `\s*\]?\s*$`)
)

// placeholder returns the first comment or text of a page that stands for a part of it: a comment that begins with an
// ellipsis or holds one of the marks, a text in square brackets that begins with an ellipsis, or an ellipsis that is
// all that a section begins with. Text in <pre>, <code> and <textarea> is a sample. It reads marks, not language: what
// is left out in other words is found by the page's length.
func placeholder(page string, marks []string) string {
	stands := func(comment string) bool {
		if elided.MatchString(comment) {
			return true
		}
		folded := strings.ToLower(strings.Join(strings.Fields(comment), " "))
		for _, m := range marks {
			if strings.Contains(folded, strings.ToLower(m)) {
				return true
			}
		}
		return false
	}
	z := html.NewTokenizer(strings.NewReader(page))
	sample, code, room := 0, false, false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return ""
		case html.CommentToken:
			if comment := string(z.Text()); sample == 0 && stands(comment) {
				return comment
			}
		case html.TextToken:
			text := string(z.Text())
			if code {
				for _, m := range codeComment.FindAllStringSubmatch(text, -1) {
					if stands(m[1]) {
						return m[1]
					}
				}
			} else if sample == 0 && (bracketed.MatchString(text) || room && dots.MatchString(text)) {
				return text
			}
		case html.StartTagToken:
			name, _ := z.TagName()
			code, room = string(name) == "script" || string(name) == "style", isRoom[string(name)]
			if isSample[string(name)] {
				sample++
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			code, room = false, false
			if isSample[string(name)] {
				sample = max(0, sample-1)
			}
		}
	}
}

// isRoom holds the elements that an ellipsis alone does not fill.
var isRoom = map[string]bool{"head": true, "body": true, "main": true, "article": true, "section": true}

var isSample = map[string]bool{"pre": true, "code": true, "textarea": true}
