package extract

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

var (
	// A line of a style sheet or a script that begins with a comment.
	codeComment = regexp.MustCompile(`(?m)^[ \t]*(?://|/\*+)(.*)$`)
	// An ellipsis stands first, and words behind it.
	elided = regexp.MustCompile(`^[\s\[(]*(?:\.\.\.|…)[\s.…]*\pL`)
	// A text in brackets that begins with an ellipsis and words.
	bracketed = regexp.MustCompile(`^\s*\[\s*(?:\.\.\.|…)[\s.…]*\pL[^\]]*\]\s*$`)
	dots      = regexp.MustCompile(`^\s*\[?\s*(?:\.\.\.|…)\s*\]?\s*$`)
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
