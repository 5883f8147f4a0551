package extract

import (
	"fmt"
	"strings"
	"unicode"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// An answer is a text cut into regions once, from top to bottom. Every line belongs to one region:
// thinking, notes, a document, a code block, or the rest.
type answer struct {
	src   string
	lines []markdown.Line
	walk  *walker
	rules []markerRule

	hidden  []span // thinking and notes: no part of the answer's text
	inDocs  []span // notes that stand in documents, ascending
	docs    []candidate
	blocks  []block
	events  []event // marker lines outside of thinking and notes, in order
	doubts  []string
	pending *markdown.Fence // block that a document stood in, not closed yet

	at      map[int][]event    // marker lines by line
	ahead   map[string][]event // the same by name, for looking ahead
	thought map[string]bool    // by end tag of thinking: a region was found; false: there is no end tag ahead
	drafts  []candidate        // documents before an end of thinking that has no start
	notices []event            // marker lines there
}

// A span is a range of bytes.
type span struct{ start, end int }

// A block is the content of a fenced code block that does not begin with a document.
type block struct {
	span
	fence markdown.Fence
}

// A candidate is a document, whole or not, and how it stands in the answer.
type candidate struct {
	scan
	fence  *markdown.Fence // the block it stands in, or nil
	weak   bool            // text stands before it on its line or in its block
	indent int             // blanks before it on its line; 0 when something else stands there
	closed bool            // its block was closed
}

// strategy names how the document was found.
func (c *candidate) strategy() string {
	switch {
	case c.fence != nil:
		return "fence"
	case c.doctype:
		return "doctype"
	}
	return "html"
}

// cutUp cuts an answer. Markers are those of all names that may stand in it.
func cutUp(src string, markers []accept.Marker) *answer {
	src = strings.TrimPrefix(src, "\ufeff")
	a := &answer{src: src, lines: markdown.Lines(src), thought: map[string]bool{}}
	for _, m := range markers {
		a.rules = append(a.rules, newMarkerRule(m))
	}
	a.walk = newWalker(src, a.lines)
	a.findMarkers()
	for i := 0; i < len(a.lines); {
		i = a.line(i)
	}
	if len(a.docs) == 0 && len(a.drafts) > 0 {
		a.docs, a.events = a.drafts, append(a.notices, a.events...)
		a.doubt("what stands before the end of thinking was taken after all: there is no document behind it")
	}
	a.findInDocs()
	return a
}

// line reads the region that begins at line i and returns the line behind it.
func (a *answer) line(i int) int {
	text := a.lines[i].Of(a.src)
	if next, ok := a.thinking(i, text); ok {
		return next
	}
	if events := a.at[i]; events != nil {
		return a.notes(i, events)
	}
	if a.pending != nil && a.pending.Closes(text) {
		a.closePending()
		return i + 1
	}
	if f, ok := markdown.OpenFence(text); ok {
		return a.block(i, f)
	}
	if isHunk(text) {
		return a.hunk(i)
	}
	if at, weak, ok := a.startOn(i); ok {
		return a.document(i, at, a.pending, weak)
	}
	return i + 1
}

// thinking hides <think> ... </think> at the start of a line. A </think> without a start hides
// everything before it: some models leave the start out.
func (a *answer) thinking(i int, text string) (next int, ok bool) {
	from := a.lines[i].Start
	if tag, _, ok := markdown.Thought(text); ok {
		if found, looked := a.thought[tag]; looked && !found {
			return 0, false
		}
		n := markdown.IndexFold(a.src[from:], tag)
		a.thought[tag] = n >= 0
		if n < 0 {
			a.doubt("line %d: %s is missing: thinking is never closed", i+1, tag)
			return i + 1, true
		}
		end := from + n + len(tag)
		a.hide(from, end)
		return a.lineAfter(i, end), true
	}
	length, ok := markdown.ThoughtEnd(text)
	if !ok || len(a.thought) > 0 {
		return 0, false
	}
	if strings.TrimLeftFunc(a.src[from+length:], markdown.Blank) == "" {
		a.doubt("line %d: an end of thinking without a start, and nothing behind it", i+1)
		return i + 1, true
	}
	a.doubt("line %d: an end of thinking without a start: what stands before it was left out", i+1)
	a.drafts, a.notices = append(a.drafts, a.docs...), append(a.notices, a.events...)
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
		a.at[i] = a.eventsOn(i)
	}
	return i
}

// closePending notes that the block is closed that the last documents stand in.
func (a *answer) closePending() {
	if a.pending == nil {
		return
	}
	for n := len(a.docs) - 1; n >= 0 && a.docs[n].fence == a.pending; n-- {
		a.docs[n].closed = true
	}
	a.pending = nil
}

// block reads a fenced code block. When a document stands in it, the document's own end counts, not
// the next fence line: the block stays pending, because its fence may follow, or never.
func (a *answer) block(i int, f markdown.Fence) int {
	if n := strings.IndexByte(f.Info, '<'); n >= 0 && startsHere(f.Info[n:]) {
		a.pending = &f // the document begins on the line of the fence
		return a.document(i, a.lines[i].Start+strings.Index(a.lines[i].Of(a.src), f.Info)+n, a.pending, false)
	}
	diff := isDiff(f)
	end, closed, weak := i+1, false, false
	for ; end < len(a.lines) && !closed; end++ {
		text := a.lines[end].Of(a.src)
		diff = diff || isHunk(text)
		if at, ok := documentStart(a.src, a.lines[end]); ok && !diff {
			a.pending = &f
			a.codeEvents(i+1, end)
			return a.document(end, at, a.pending, weak)
		}
		if closed = f.Closes(text); closed {
			break
		}
		s := markdown.TrimBlank(text)
		weak = weak || s != "" && !isComment(s) && a.at[end] == nil
	}
	a.addBlock(i, end, f)
	if !closed {
		a.doubt("line %d: a code block is never closed", i+1)
		return end
	}
	return end + 1
}

// isDiff reports whether a block holds changes: a page in it has signs in front of its lines.
func isDiff(f markdown.Fence) bool {
	lang := f.Language()
	return lang == "diff" || lang == "patch" || lang == "udiff"
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

func (a *answer) addBlock(open, end int, f markdown.Fence) {
	b := block{fence: f, span: span{a.lines[open].End, a.lines[open].End}}
	if open+1 < end {
		b.span = span{a.lines[open+1].Start, a.lines[end-1].End}
	}
	if markdown.TrimBlank(a.src[b.start:b.end]) == "" {
		a.doubt("line %d: an empty code block", open+1)
	}
	a.blocks = append(a.blocks, b)
	a.codeEvents(open+1, end)
}

// codeEvents notes the markers that stand in code from one line to before another.
func (a *answer) codeEvents(from, to int) {
	for n := from; n < to; n++ {
		for _, e := range a.at[n] {
			e.where = inCode
			a.events = append(a.events, e)
		}
	}
}

// startOn looks for the start of a document on a line outside of blocks: at its start, or behind
// other text, but not in `code`.
func (a *answer) startOn(i int) (at int, weak, ok bool) {
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
		if startsHere(a.src[l.Start+n:]) {
			return l.Start + n, true, behindWords(text[:n])
		}
		n++
	}
}

// behindWords reports whether a document may begin behind this part of a line: behind words, not as
// a string of a program or of JSON, and not in a quote, a diff or a listing with line numbers,
// whose every line has something in front.
func behindWords(before string) bool {
	if strings.HasSuffix(before, `"`) || strings.HasSuffix(before, "'") {
		return false
	}
	if strings.Trim(before, "` ") == "" {
		return true // a backtick that nothing on the line closes
	}
	return strings.ContainsFunc(before[:min(len(before), 200)], unicode.IsLetter)
}

// document reads a document from its start and returns the line behind it. Behind one that has no end the
// text is read on line by line: notes are found though the document is unusable.
func (a *answer) document(i, at int, f *markdown.Fence, weak bool) int {
	c := candidate{scan: a.walk.document(at), fence: f, weak: weak}
	if before := a.src[a.lines[i].Start:at]; strings.Trim(before, " \t") == "" {
		c.indent = len(before)
	}
	if !c.whole && weak && !c.root {
		return i + 1 // a doctype mentioned in a sentence
	}
	a.docs = append(a.docs, c)
	if !c.whole {
		for i++; i < len(a.lines) && a.lines[i].Start < c.head; i++ { // its own <html> is no second start
		}
		return i
	}
	a.events = append(a.events, a.inDocument(&a.docs[len(a.docs)-1])...)
	return a.fenceAfter(a.lineAfter(i, c.end), c.end)
}

// fenceAfter skips the fence that stands next behind a document in a block, whether it fits the one before it or
// not, and a fence behind one in no block, at the answer's end.
func (a *answer) fenceAfter(i, end int) int {
	at := i
	for at < len(a.lines) && a.at[at] == nil && markdown.TrimBlank(a.lines[at].Of(a.src)) == "" {
		at++
	}
	if at == len(a.lines) {
		return i
	}
	f, ok := markdown.OpenFence(a.lines[at].Of(a.src))
	glued := a.lines[at].Start == end
	if !ok || f.Info != "" && !glued && !a.remarked(at, f) || a.pending == nil && markdown.TrimBlank(a.src[a.lines[at].End:]) != "" {
		return i
	}
	a.closePending()
	return at + 1
}

// remarked reports whether words stand behind the fence that closes a block: several, and no fence closes what they would open.
func (a *answer) remarked(at int, f markdown.Fence) bool {
	if a.pending == nil || f.Char != a.pending.Char || !strings.Contains(f.Info, " ") {
		return false
	}
	const most = 200 // lines
	for _, l := range a.lines[at+1 : min(len(a.lines), at+most)] {
		if f.Closes(l.Of(a.src)) {
			return false
		}
	}
	return true
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

func isComment(s string) bool { return strings.HasPrefix(s, "<!--") && strings.HasSuffix(s, "-->") }
