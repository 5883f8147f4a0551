package extract

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// An answer is a text cut into regions once, from top to bottom. Every line belongs to one region:
// thinking, notes, a document, a code block, or the rest.
type answer struct {
	src    string
	lines  []markdown.Line
	rules  []markerRule
	marks  []event // marker lines in order, wherever they stand
	starts []int   // offsets where a line begins with a document that may follow another one, ascending

	hidden  []span // thinking and notes: no part of the answer's text
	inDocs  []span // notes that stand in documents, ascending
	docs    []document
	blocks  []block
	events  []event // marks outside of thinking and notes, in order
	noted   map[string]noted
	doubts  []string
	pending *markdown.Fence // block that a document stood in, not closed yet
	thinks  int             // regions of thinking
	endless bool            // thinking is never closed
	drafts  bool            // documents stood before an end of thinking that has no start
	read    int             // bytes of documents and code blocks, read again or not
}

// A span is a range of bytes.
type span struct{ start, end int }

// A block is the content of a fenced code block that does not hold a document.
type block struct {
	span
	fence markdown.Fence
}

// cutUp cuts an answer. Markers are those of all names that may stand in it.
func cutUp(src string, markers []accept.Marker) *answer {
	src = strings.TrimPrefix(src, "\ufeff")
	a := &answer{src: src, lines: markdown.Lines(src), noted: map[string]noted{}}
	for _, m := range markers {
		a.rules = append(a.rules, newMarkerRule(m))
	}
	for _, l := range a.lines {
		a.marks = append(a.marks, a.marksOn(l)...)
		if at, ok := documentStart(src, l); ok && secondStart.MatchString(src[at:min(len(src), at+mostHead)]) {
			a.starts = append(a.starts, at)
		}
	}
	for i := 0; i < len(a.lines); {
		i = a.line(i)
	}
	for _, r := range a.rules {
		a.noted[r.name] = a.pairUp(r.name)
	}
	slices.SortFunc(a.inDocs, func(x, y span) int { return x.start - y.start })
	return a
}

// line reads the region that begins at line i and returns the line behind it.
func (a *answer) line(i int) int {
	text := a.lines[i].Of(a.src)
	if next, ok := a.thinking(i, text); ok {
		return next
	}
	if marks := a.onLine(i); marks != nil {
		return a.notes(i, marks)
	}
	if a.pending != nil && a.pending.Closes(text) {
		a.pending = nil
		return i + 1
	}
	if at, mention, ok := a.startOn(i); ok {
		return a.document(i, at, a.pending, mention)
	}
	if f, ok := markdown.OpenFence(text); ok {
		return a.block(i, f)
	}
	if isHunk(text) {
		return a.hunk(i)
	}
	return i + 1
}

// thinking hides <think> ... </think> at the start of a line. A </think> without a start hides
// everything before it: some models leave the start out.
func (a *answer) thinking(i int, text string) (next int, ok bool) {
	from := a.lines[i].Start
	if tag, ok := markdown.Thought(text); ok {
		a.thinks++
		n := markdown.IndexFold(a.src[from:], tag)
		if n < 0 {
			a.endless = true
			a.hide(from, len(a.src))
			return len(a.lines), true
		}
		end := from + n + len(tag)
		a.hide(from, end)
		return a.lineAfter(i, end), true
	}
	length, ok := markdown.ThoughtEnd(text)
	if !ok || a.thinks > 0 && len(a.docs) > 0 {
		return 0, false
	}
	a.doubt("line %d: an end of thinking without a start: what stands before it was left out", i+1)
	a.drafts = a.drafts || len(a.docs) > 0
	a.docs, a.blocks, a.events, a.hidden, a.pending = nil, nil, nil, nil, nil
	a.hide(0, from+length)
	return a.lineAfter(i, from+length), true
}

// hide makes a region no part of the answer's text.
func (a *answer) hide(from, to int) { a.hidden = append(a.hidden, span{from, to}) }

// lineAfter returns the first line behind i that starts at or behind an offset. What is left of
// the line that holds the offset becomes a line of its own, so that a document may follow there.
func (a *answer) lineAfter(i, at int) int {
	for i < len(a.lines) && a.lines[i].Next <= at {
		i++
	}
	if i < len(a.lines) && a.lines[i].Start < at {
		if at >= a.lines[i].End {
			return i + 1
		}
		a.lines[i].Start = at
		if known := a.onLine(i); known == nil || known[0].soft { // markers may follow right behind a document
			n := sort.Search(len(a.marks), func(k int) bool { return a.marks[k].at >= at })
			a.marks = slices.Replace(a.marks, n, n+len(known), a.marksOn(a.lines[i])...)
		}
	}
	return i
}

// block reads a fenced code block. When a document stands in it, the document's own end counts, not
// the next fence line: the block stays pending, because its fence may follow, or never.
func (a *answer) block(i int, f markdown.Fence) int {
	diff := f.Language() == "diff" || f.Language() == "patch"
	end, closed := i+1, false
	for ; end < len(a.lines); end++ {
		text := a.lines[end].Of(a.src)
		diff = diff || isHunk(text)
		if at, ok := documentStart(a.src, a.lines[end]); ok && !diff {
			a.pending = &f
			a.codeEvents(i+1, end)
			return a.document(end, at, a.pending, false)
		}
		if closed = f.Closes(text); closed {
			break
		}
	}
	b := block{fence: f, span: span{a.lines[i].End, a.lines[i].End}}
	if i+1 < end {
		b.span = span{a.lines[i+1].Start, a.lines[end-1].End}
	}
	a.blocks = append(a.blocks, b)
	a.codeEvents(i+1, end)
	switch {
	case !closed:
		a.doubt("line %d: a code block is never closed", i+1)
	case markdown.TrimBlank(a.src[b.start:b.end]) == "":
		a.doubt("line %d: an empty code block", i+1)
	}
	return end + 1
}

// isHunk reports whether a line is the head of a part of a diff.
func isHunk(text string) bool { return strings.HasPrefix(text, "@@ -") }

// hunk skips a part of a diff that stands in no block.
func (a *answer) hunk(i int) int {
	for i++; i < len(a.lines); i++ {
		if text := a.lines[i].Of(a.src); text != "" && strings.IndexByte(" +-\\", text[0]) < 0 {
			break
		}
	}
	return i
}

// codeEvents notes the markers that stand in code from one line to before another.
func (a *answer) codeEvents(from, to int) {
	for n := from; n < to; n++ {
		for _, e := range a.onLine(n) {
			e.where = inCode
			a.events = append(a.events, e)
		}
	}
}

// mostHead is how far the head of a document is looked at to see that it is one.
const mostHead = 400

var (
	anyStart = regexp.MustCompile(`(?i)^(?:<\?xml[^>]*>\s*)?<(?:!doctype\s+html\b|html[\s/>])`)
	// A doctype with no page behind it may stand in the body of another one.
	secondStart = regexp.MustCompile(`(?is)^(?:<\?xml[^>]*>\s*)?` +
		`(?:<!doctype[^>]*>\s*(?:<!--.*?-->\s*)*)?<(?:html|head|body)[\s/>]`)
)

// documentStart reports whether a line begins with a doctype, an <html> tag or an XML prologue,
// blanks aside, and where.
func documentStart(src string, l markdown.Line) (int, bool) {
	s := strings.TrimLeftFunc(l.Of(src), func(r rune) bool { return r == 0 || markdown.Blank(r) })
	at := l.End - len(s)
	return at, s != "" && s[0] == '<' && anyStart.MatchString(src[at:min(len(src), at+mostHead)])
}

// startOn looks for the start of a document on a line outside of blocks: at its start, or behind
// other text, which may be a mention, but not in `code`.
func (a *answer) startOn(i int) (at int, mention, ok bool) {
	l := a.lines[i]
	if at, ok := documentStart(a.src, l); ok {
		return at, false, true
	}
	text := l.Of(a.src)
	for n := 0; ; {
		k := strings.IndexAny(text[n:], "<`")
		if k < 0 {
			return 0, false, false
		}
		n += k
		if text[n] == '`' {
			n = markdown.SkipCode(text, n)
			continue
		}
		if at := l.Start + n; anyStart.MatchString(a.src[at:min(len(a.src), at+mostHead)]) {
			return at, true, behindWords(text[:n])
		}
		n++
	}
}

// behindWords reports whether a document may begin behind this part of a line: behind words or the sign of a block, not
// as a string of a program or of JSON, and not in a quote, a diff or a listing with line numbers,
// whose every line has something in front.
func behindWords(before string) bool {
	if strings.HasSuffix(before, `"`) || strings.HasSuffix(before, "'") {
		return false
	}
	return strings.Trim(before, "` ") == "" || strings.ContainsFunc(before[:min(len(before), 200)], unicode.IsLetter)
}

// document reads a document from its start and returns the line behind it. Behind one that has no end the
// text is read on line by line: notes are found though the document is unusable.
func (a *answer) document(i, at int, f *markdown.Fence, mention bool) int {
	d := a.walk(at, f)
	if !d.whole && mention && !d.page {
		return i + 1 // a tag mentioned in a sentence
	}
	a.docs = append(a.docs, d)
	if !d.whole {
		for i++; i < len(a.lines) && a.lines[i].Start < d.head; i++ { // its own <html> is no second start
		}
		return i
	}
	a.events = append(a.events, a.inDocument(&d)...)
	return a.lineAfter(i, d.end)
}

// text is the answer without thinking and notes.
func (a *answer) text() string {
	var b strings.Builder
	at := 0
	for _, h := range a.hidden {
		if h.start < at {
			continue
		}
		b.WriteString(a.src[at:h.start])
		at = h.end
	}
	b.WriteString(a.src[at:])
	return strings.TrimFunc(b.String(), markdown.Blank)
}

func (a *answer) doubt(format string, args ...any) {
	a.doubts = append(a.doubts, fmt.Sprintf(format, args...))
}
