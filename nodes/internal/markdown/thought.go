package markdown

import "strings"

// thoughts are the tags that models put around their thinking, in angle brackets unless they stand in others.
var thoughts = []string{"think", "thinking", "thought", "reasoning", "antthinking", "scratchpad"}

// Thought reads a line that begins, blanks aside, with the start tag of thinking: end is the tag
// that ends it.
func Thought(line string) (end string, ok bool) {
	s := TrimBlank(line)
	for _, name := range thoughts {
		if n := len(name) + 2; len(s) >= n && strings.EqualFold(s[:n], "<"+name+">") {
			return "</" + name + ">", true
		}
	}
	return "[/THINK]", strings.HasPrefix(s, "[THINK]")
}

// ThoughtEnd reads a line that begins or ends, blanks aside, with an end tag of thinking: some models leave the
// start out. length is how far the tag reaches.
func ThoughtEnd(line string) (length int, ok bool) {
	head := strings.TrimLeftFunc(line, Blank)
	tail := strings.TrimRightFunc(line, Blank)
	for _, name := range thoughts {
		tag := "</" + name + ">"
		if len(head) >= len(tag) && strings.EqualFold(head[:len(tag)], tag) {
			return len(line) - len(head) + len(tag), true
		}
		if len(tail) >= len(tag) && strings.EqualFold(tail[len(tail)-len(tag):], tag) {
			return len(tail), true
		}
	}
	return 0, false
}

// Said returns a text without thinking, which begins a line and ends at its end tag; without a start it begins with
// the text. cut says that thinking has no end: then what stands behind its start is left out.
func Said(text string) (rest string, cut bool) {
	var b strings.Builder
	for at := 0; at < len(text); {
		n := strings.IndexAny(text[at:], "\r\n") + 1
		if n == 0 {
			n = len(text) - at
		}
		line := text[at : at+n]
		if tag, ok := Thought(line); ok {
			end := IndexFold(text[at:], tag)
			if end < 0 {
				return b.String(), true
			}
			at += end + len(tag)
			continue
		}
		if length, ok := ThoughtEnd(line); ok {
			b.Reset()
			at += length
			continue
		}
		b.WriteString(line)
		at += n
	}
	return b.String(), false
}

// SkipCode returns the offset behind the `code` that begins at a backtick, or behind the backticks when
// the line does not end it. Runs of more than three are text: looking for the end of each of
// many lengths is not linear.
func SkipCode(line string, at int) int {
	run := len(line[at:]) - len(strings.TrimLeft(line[at:], "`"))
	behind := at + run
	if run <= 3 {
		if n := strings.Index(line[behind:], line[at:behind]); n >= 0 {
			return behind + n + run
		}
	}
	return behind
}

// IndexFold is strings.Index without regard to case, for an ASCII needle that begins with no letter.
func IndexFold(s, needle string) int {
	for at := 0; ; {
		n := strings.IndexByte(s[at:], needle[0])
		if n < 0 || at+n+len(needle) > len(s) {
			return -1
		}
		at += n
		if strings.EqualFold(s[at:at+len(needle)], needle) {
			return at
		}
		at++
	}
}
