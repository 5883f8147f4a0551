package extract

import (
	"regexp"
	"strconv"
	"strings"
)

// A comment may name the part of a page that it stands for: "header unchanged", "5 more cards". Then what follows must be that
// part; in front of anything else the comment stands in its place.
var (
	partNames = regexp.MustCompile(`\b(header|footer|nav|navigation|menu|hero|banner|intro|main|aside|sidebar|section|article|chapter|card|row|item|list|table|form|gallery|grid|figure|chart|panel|tab|modal|timeline|faq|pricing|testimonial|feature|contact|team|column|block|button|link|paragraph|slide|step|entr(?:y|ie))s?\b`)
	aliases   = map[string][]string{"navigation": {"nav"}, "menu": {"nav"}, "intro": {"hero", "header"}, "hero": {"header", "section"}, "banner": {"header", "hero"}, "sidebar": {"aside"},
		"row": {"tr"}, "item": {"li", "article", "card"}, "list": {"ul", "ol", "dl"}, "link": {"a"}, "chart": {"canvas", "svg", "figure"}, "paragraph": {"p"}, "card": {"article", "li"}, "chapter": {"section", "article", "h2"},
		"section": {"h2"}, "gallery": {"figure"}, "entry": {"li", "article"}, "entrie": {"li", "article"}, "column": {"td", "th", "col"}}
	// told is a list of changes, which leaves nothing out.
	told = regexp.MustCompile(`^(?:changes?|changed|improvements?|changelog|history|notes?|intent|version|v[0-9.]+|todo|revision)\b[^:]*:|[;,]`)

	// further counts what is not there: "5 more cards", "cards 4-9 go here", "remaining 6 rows".
	further = regexp.MustCompile(`^(?:and |plus |\+ ?)?(?:the )?(?:[0-9]+|several|many|few|two|three|four|five|six|seven|eight|nine|ten)? ?(?:more|additional|similar|further|other|remaining) (?:[0-9]+ )?(?:similar )?[a-z]+(?: (?:here|follow|go here|like this|like these|etc\.?|as before|with the same markup|in the same pattern))?\.*$|` +
		`^[a-z]+ [0-9]+ ?(?:-|–|to|through) ?[0-9]+ (?:go here|here|follow|omitted|as before|unchanged|similar|\(?(?:the )?same\b.*)\)?$|^repeat(?:ed)?\b.*(?:[0-9]+|x|times|for each|for the (?:other|rest|remaining))\b.*$|^(?:the )?same(?: [a-z]+)?(?: (?:here|again|as (?:before|above|in (?:the )?(?:previous|original|last|first)\b.*|v[0-9].*)))?$|^(?:existing|previous|original) [a-z]+(?: (?:here|goes here))?$`)
	// keepsPartRe asks to keep what was there.
	keepsPartRe = regexp.MustCompile(`^keep (?:the |all |any )*(?:existing|previous|original) ([a-z]+)(?: here| as is)?$`)
)

// A promise is a number of parts that a comment says are there.
type promise struct {
	comment string
	kind    string // of the element behind the comment
	due     int
}

var promised = regexp.MustCompile(`^(?:and |plus |\+ ?)?([0-9]{1,3}) (?:more|additional|similar|further|other|remaining)\b`)

// promises returns how many parts a comment says follow; 0 when it does not.
func promises(comment string) int {
	m := promised.FindStringSubmatch(newPhrase(comment).text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// kindOf names an element by its tag and its first name.
func kindOf(tag, called string) string {
	first, _, _ := strings.Cut(called, " ")
	return tag + "." + first
}

// standsFor returns the parts that a comment stands for.
func (p *phrase) standsFor() []string {
	if told.MatchString(p.text) {
		return nil
	}
	var out []string
	for _, m := range partNames.FindAllStringSubmatch(p.text, -1) {
		out = append(out, m[1])
	}
	return out
}

// begins reports whether an element may be one of the parts: by its tag, or a word of its class, id, role or label.
func begins(parts []string, tag string, attrs string) bool {
	for _, part := range parts {
		for _, name := range append([]string{part}, aliases[part]...) {
			if tag == name || strings.Contains(attrs, name) && len(name) > 2 {
				return true
			}
		}
	}
	return false
}

// elsewhere reports whether a comment of a style sheet stands for parts that the rule behind it is not about.
func (p *phrase) elsewhere(rule string) bool {
	parts := p.standsFor()
	return parts != nil && !begins(parts, strings.TrimSpace(rule), strings.ToLower(rule))
}

// keepsPart reports whether a comment asks its reader to keep a part of the page.
func (p *phrase) keepsPart() bool {
	m := keepsPartRe.FindStringSubmatch(p.text)
	return m != nil && (partRe.MatchString(m[1]) || partNames.MatchString(m[1]) || m[1] == "handlers" || m[1] == "listeners")
}
