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
	unclear   string // why an end may not be the one
}

// findMarkers reads all lines once.
func (a *answer) findMarkers() {
	a.at, a.ahead = map[int][]event{}, map[string][]event{}
	if len(a.rules) == 0 {
		return
	}
	for i := range a.lines {
		if events := a.eventsOn(i); events != nil {
			a.at[i] = events
			for _, e := range events {
				a.ahead[e.name] = append(a.ahead[e.name], e)
			}
		}
	}
}

// eventsOn returns the markers of a line: one that is the whole line, or comments at its start
// and an end at its end.
func (a *answer) eventsOn(i int) []event {
	l := a.lines[i]
	text := strings.TrimLeftFunc(l.Of(a.src), markdown.Blank)
	from := l.End - len(text)
	text = strings.TrimRightFunc(text, markdown.Blank)
	if text == "" {
		return nil
	}
	for _, r := range a.rules {
		if !r.comment && (text == r.start || text == r.end) {
			return []event{{name: r.name, start: text == r.start, at: from, after: from + len(text)}}
		}
	}
	return a.commentEvents(text, from)
}

// commentEvents reads markers written as comments: all of a line that begins with one, else an end
// at the line's end.
func (a *answer) commentEvents(text string, from int) []event {
	var out []event
	for at := 0; at > 0 || strings.HasPrefix(text, "<!--"); {
		n := strings.Index(text[at:], "<!--")
		if n < 0 {
			break
		}
		at += n
		length := strings.Index(text[at:], "-->") + 3
		if length < 3 {
			break
		}
		e, ok := a.marker(text[at : at+length])
		if ok {
			e.at, e.after = from+at, from+at+length
			out = append(out, e)
		}
		if at == 0 && !ok {
			break
		}
		at += length
	}
	if out != nil || !strings.HasSuffix(text, "-->") {
		return out
	}
	const longest = 400 // of a marker; a whole line is not searched for each of its parts
	last := strings.LastIndex(text[max(0, len(text)-longest):], "<!--")
	if last < 0 {
		return nil
	}
	last += max(0, len(text)-longest)
	if e, ok := a.marker(text[last:]); ok && !e.start {
		e.at, e.after, e.soft = from+last, from+len(text), true
		out = append(out, e)
	}
	return out
}

func (a *answer) marker(comment string) (event, bool) {
	inner, ok := commentText(comment)
	if !ok {
		return event{}, false
	}
	for _, r := range a.rules {
		if r.comment && (inner == r.start || inner == r.end) {
			return event{name: r.name, start: inner == r.start}, true
		}
	}
	return event{}, false
}

// notes reads the region that begins with the markers of line i.
func (a *answer) notes(i int, events []event) int {
	for _, e := range events {
		a.events = append(a.events, e)
		if !e.start {
			continue
		}
		if end, ok := a.endOf(e); ok {
			a.events = append(a.events, end)
			a.hide(e.at, end.after)
			return a.lineAfterNotes(i, end.after)
		}
	}
	return i + 1
}

// lineAfterNotes is lineAfter where the rest of the line is known to hold markers: they were read
// with the line.
func (a *answer) lineAfterNotes(i, at int) int {
	for i < len(a.lines) && a.lines[i].Next <= at {
		i++
	}
	if i == len(a.lines) || a.lines[i].Start >= at {
		return i
	}
	if at >= a.lines[i].End {
		return i + 1
	}
	a.lines[i].Start = at
	known := a.at[i]
	n := sort.Search(len(known), func(k int) bool { return known[k].at >= at })
	if n == len(known) {
		delete(a.at, i)
	} else {
		a.at[i] = known[n:]
	}
	return i
}

// behindSample returns the end of notes: the first one, but where that stands in a code block of the notes that is closed
// behind it, the first one behind the block, before the next start. When a document begins between the two, nobody can tell.
func (a *answer) behindSample(start event, ends []event) event {
	first := ends[0]
	var open *markdown.Fence
	closed := false
	for i := a.lineOf(start.after); i < len(a.lines) && len(ends) > 0 && !ends[0].start; i++ {
		l := a.lines[i]
		for len(ends) > 0 && ends[0].at < l.End && !ends[0].start {
			if open == nil && (closed || ends[0].at == first.at) {
				return a.clear(first, ends[0])
			}
			ends = ends[1:]
		}
		text := l.Of(a.src)
		if f, ok := markdown.OpenFence(text); open == nil && ok {
			open = &f
		} else if open != nil && open.Closes(text) {
			open, closed = nil, l.Start > first.at || closed
		}
	}
	return first
}

// clear returns the later of two ends of the same notes, or the first with the doubt about it.
func (a *answer) clear(first, end event) event {
	starts := a.walk.starts
	if k := sort.SearchInts(starts, first.at); k < len(starts) && starts[k] < end.at {
		first.unclear = fmt.Sprintf("line %d: %s stands in a code block, and again on line %d behind a document",
			a.lineOf(first.at), a.src[first.at:first.after], a.lineOf(end.at))
		return first
	}
	return end
}

// endOf returns the end that a start pairs with: the next marker of its name, when that is an end
// and does not stand inside a document that begins behind the start.
func (a *answer) endOf(start event) (event, bool) {
	all := a.ahead[start.name]
	n := sort.Search(len(all), func(k int) bool { return all[k].at >= start.after })
	if n == len(all) || all[n].start {
		return event{}, false
	}
	end := a.behindSample(start, all[n:])
	starts := a.walk.starts
	k := sort.SearchInts(starts, start.after)
	if k < len(starts) && starts[k] < end.at {
		if doc := a.walk.document(starts[k]); doc.whole && doc.end > end.at {
			return event{}, false
		}
	}
	return end, true
}

// inDocument returns the markers that are comments of a document, for models that put their notes before </html>.
func (a *answer) inDocument(c *candidate) []event {
	src := a.src[c.start:c.end]
	if !a.mentions(src) {
		return nil
	}
	var out []event
	z := html.NewTokenizer(strings.NewReader(src))
	for at := c.start; ; {
		tt := z.Next()
		if tt == html.ErrorToken {
			return out
		}
		raw := string(z.Raw())
		if tt == html.CommentToken {
			if e, ok := a.marker(raw); ok {
				e.at, e.after, e.where = at, at+len(raw), inDocument
				out = append(out, e)
			}
		}
		at += len(raw)
	}
}

func (a *answer) mentions(src string) bool {
	for _, r := range a.rules {
		if r.comment && strings.Contains(src, r.start) {
			return true
		}
	}
	return false
}

// notesBlock is one block of notes: what stands between the markers, and with them.
type notesBlock struct{ inner, outer span }

// blocksOf returns the blocks of notes of one name. broken says what is wrong with the markers;
// then nothing is taken.
func (a *answer) blocksOf(name string) (blocks []notesBlock, where place, broken string) {
	var by [3][]event
	for _, e := range a.events {
		if e.name == name {
			by[e.where] = append(by[e.where], e)
		}
	}
	for _, where := range []place{outside, inDocument, inCode} {
		blocks, broken = a.pair(by[where])
		if where == inDocument && broken == "" {
			broken = a.holdsPage(blocks)
		}
		if broken != "" {
			return nil, where, broken
		}
		if blocks != nil {
			return blocks, where, ""
		}
	}
	return nil, outside, ""
}

// findInDocs notes which blocks of notes stand in documents: they are cut out of them.
func (a *answer) findInDocs() {
	for _, r := range a.rules {
		blocks, where, _ := a.blocksOf(r.name)
		if where != inDocument {
			continue
		}
		for _, b := range blocks {
			a.inDocs = append(a.inDocs, b.outer)
		}
	}
	sort.Slice(a.inDocs, func(i, j int) bool { return a.inDocs[i].start < a.inDocs[j].start })
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
		case e.unclear != "":
			return nil, e.unclear
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
