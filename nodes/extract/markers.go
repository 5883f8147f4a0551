package extract

import (
	"fmt"
	"sort"
	"strings"

	"golang.org/x/net/html"

	"dagrun.dev/nodes/internal/accept"
	"dagrun.dev/nodes/internal/markdown"
)

// A markerRule is one pair of markers.
type markerRule struct {
	name       string
	start, end string // normalised
	comment    bool   // both are HTML comments
}

func newMarkerRule(m accept.Marker) markerRule {
	start, ok1 := commentText(m.Start)
	end, ok2 := commentText(m.End)
	if ok1 && ok2 {
		return markerRule{name: m.Name, start: start, end: end, comment: true}
	}
	return markerRule{name: m.Name, start: markdown.TrimBlank(m.Start), end: markdown.TrimBlank(m.End)}
}

// commentText returns what stands in a text that is one HTML comment.
func commentText(s string) (string, bool) {
	s = markdown.TrimBlank(s)
	if len(s) < len("<!---->") || !strings.HasPrefix(s, "<!--") || !strings.HasSuffix(s, "-->") {
		return "", false
	}
	inner := s[4 : len(s)-3]
	return markdown.TrimBlank(inner), !strings.Contains(inner, "-->")
}

type place uint8

const (
	outside place = iota
	inCode
	inDocument
)

// An event is a marker where it counts.
type event struct {
	name      string
	start     bool
	at, after int  // bytes of the marker itself
	soft      bool // an end behind text on its line: counts only when a block is open
	where     place
}

// marksOn returns the markers of a line: one that is the whole line, or comments at its start
// and an end at its end.
func (a *answer) marksOn(l markdown.Line) []event {
	text := strings.TrimLeftFunc(l.Of(a.src), markdown.Blank)
	from := l.End - len(text)
	text = strings.TrimRightFunc(text, markdown.Blank)
	for _, r := range a.rules {
		if !r.comment && text != "" && (text == r.start || text == r.end) {
			return []event{{name: r.name, start: text == r.start, at: from, after: from + len(text)}}
		}
	}
	var out []event
	for at := 0; at > 0 || strings.HasPrefix(text, "<!--"); {
		n := strings.Index(text[at:], "<!--")
		length := 0
		if n >= 0 {
			at += n
			length = strings.Index(text[at:], "-->") + 3
		}
		if length < 3 {
			break
		}
		e, ok := a.marker(text[at : at+length])
		if at == 0 && !ok {
			break
		}
		if ok {
			e.at, e.after = from+at, from+at+length
			out = append(out, e)
		}
		at += length
	}
	const longest = 400 // of a marker; a whole line is not searched for each of its parts
	tail := text[max(0, len(text)-longest):]
	if last := strings.LastIndex(tail, "<!--"); out == nil && last >= 0 && strings.HasSuffix(tail, "-->") {
		if e, ok := a.marker(tail[last:]); ok && !e.start {
			e.at, e.after, e.soft = from+len(text)-len(tail)+last, from+len(text), true
			out = append(out, e)
		}
	}
	return out
}

func (a *answer) marker(comment string) (event, bool) {
	inner, ok := commentText(comment)
	for _, r := range a.rules {
		if ok && r.comment && (inner == r.start || inner == r.end) {
			return event{name: r.name, start: inner == r.start}, true
		}
	}
	return event{}, false
}

// onLine returns the markers of what is left of line i.
func (a *answer) onLine(i int) []event {
	after := func(at int) int { return sort.Search(len(a.marks), func(k int) bool { return a.marks[k].at >= at }) }
	if from, to := after(a.lines[i].Start), after(a.lines[i].Next); from < to {
		return a.marks[from:to]
	}
	return nil
}

// notes reads the region that begins with the markers of line i.
func (a *answer) notes(i int, marks []event) int {
	for _, e := range marks {
		a.events = append(a.events, e)
		if !e.start {
			continue
		}
		if end, ok := a.endOf(e); ok {
			a.events = append(a.events, end)
			a.hide(e.at, end.after)
			return a.lineAfter(i, end.after)
		}
	}
	return i + 1
}

// endOf returns the end that a start pairs with: the next marker of its name, when that is an end
// and does not stand inside a document that begins behind the start. One in a code block of the notes is theirs where
// another end follows the block.
func (a *answer) endOf(start event) (end event, ok bool) {
	line := a.lineOf(start.after) // what lies before it is in no code block that is still open
	for _, e := range a.marks[sort.Search(len(a.marks), func(k int) bool { return a.marks[k].at >= start.after }):] {
		if e.name != start.name {
			continue
		}
		if e.start {
			break
		}
		if ok {
			if line = a.codeAround(line, end.at, e.at); line < 0 {
				break
			}
		}
		end, ok = e, true
	}
	if k := sort.SearchInts(a.starts, start.after); ok && k < len(a.starts) && a.starts[k] < end.at {
		if d := a.walk(a.starts[k], nil); d.whole && d.end > end.at {
			return event{}, false
		}
	}
	return end, ok
}

// codeAround returns the line behind the code block that a place stands in, where that begins and ends within a part of
// the answer; else -1.
func (a *answer) codeAround(from, at, to int) int {
	var open *markdown.Fence
	for i := from; i < len(a.lines) && a.lines[i].Start < to; i++ {
		l := a.lines[i]
		a.read += l.Next - l.Start
		f, opens := markdown.OpenFence(l.Of(a.src))
		switch {
		case open != nil && open.Closes(l.Of(a.src)):
			if l.Start > at {
				return i + 1
			}
			open = nil
		case open == nil && l.Start > at, open != nil && opens && f.Info != "": // who opens another one has lost count
			return -1
		case open == nil && opens:
			open = &f
		}
	}
	return -1
}

// inDocument returns the markers that are comments of a document, for models that put their notes before </html>.
func (a *answer) inDocument(d *document) []event {
	if len(a.rules) == 0 {
		return nil
	}
	var out []event
	z := html.NewTokenizer(strings.NewReader(a.src[d.start:d.end]))
	for at := d.start; ; {
		tt := z.Next()
		if tt == html.ErrorToken {
			return out
		}
		raw := string(z.Raw())
		if e, ok := a.marker(raw); ok && tt == html.CommentToken {
			e.at, e.after, e.where = at, at+len(raw), inDocument
			out = append(out, e)
		}
		at += len(raw)
	}
}

// A noted is what stands between the markers of one name.
type noted struct {
	blocks []notesBlock
	where  place  // of the blocks
	coded  bool   // markers stand in code too
	broken string // what is wrong with the markers; then nothing is taken
}

// notesBlock is one block of notes: what stands between the markers, and with them.
type notesBlock struct{ inner, outer span }

// pairUp finds the blocks of notes of one name, once the answer is cut: outside of code and documents, or else in
// documents, or else in code. Those in documents are cut out of them.
func (a *answer) pairUp(name string) noted {
	var by [3][]event
	for _, e := range a.events {
		if e.name == name {
			by[e.where] = append(by[e.where], e)
		}
	}
	n := noted{coded: by[inCode] != nil}
	for _, n.where = range []place{outside, inDocument, inCode} {
		n.blocks, n.broken = a.pair(by[n.where])
		if n.where == inDocument && n.broken == "" {
			n.broken = a.holdsPage(n.blocks)
		}
		if n.broken != "" {
			n.blocks = nil
		}
		if n.broken != "" || n.blocks != nil {
			break
		}
	}
	if n.where == inDocument {
		for _, b := range n.blocks {
			a.inDocs = append(a.inDocs, b.outer)
		}
	}
	return n
}

// pair pairs starts and ends, which must take turns.
func (a *answer) pair(events []event) (blocks []notesBlock, broken string) {
	var open *event
	for i := range events {
		e := &events[i]
		switch {
		case e.soft && open == nil:
		case e.start && open != nil:
			return nil, fmt.Sprintf("line %d: %s again before the end", a.lineOf(e.at), a.src[e.at:e.after])
		case e.start:
			open = e
		case open == nil:
			return nil, fmt.Sprintf("line %d: %s without a start", a.lineOf(e.at), a.src[e.at:e.after])
		default:
			blocks = append(blocks, notesBlock{inner: span{open.after, e.at}, outer: span{open.at, e.after}})
			open = nil
		}
	}
	if open != nil {
		return nil, fmt.Sprintf("line %d: %s is never closed", a.lineOf(open.at), a.src[open.at:open.after])
	}
	return blocks, ""
}

// holdsPage says that markers in a document stand around parts of the page, not around notes.
func (a *answer) holdsPage(blocks []notesBlock) string {
	for _, b := range blocks {
		inner := a.src[b.inner.start:b.inner.end]
		for _, tag := range []string{"<body", "</body", "</html", "<head", "<main", "<section"} {
			if markdown.IndexFold(inner, tag) >= 0 {
				return fmt.Sprintf("line %d: the markers stand around a part of the page", a.lineOf(b.outer.start))
			}
		}
	}
	return ""
}

func (a *answer) lineOf(at int) int {
	return sort.Search(len(a.lines), func(i int) bool { return a.lines[i].Next > at }) + 1
}

// notesText is the text of a block: LF line ends, no blank lines at its ends.
func notesText(s string) string {
	s = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s)
	lines := strings.Split(s, "\n")
	for len(lines) > 0 && markdown.TrimBlank(lines[0]) == "" {
		lines = lines[1:]
	}
	return strings.TrimRightFunc(strings.Join(lines, "\n"), markdown.Blank)
}
