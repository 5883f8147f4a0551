package verdict

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// asName follows a value that is named: "POLISH the footer" and "POLISH items" name none.
	asName = regexp.MustCompile(`(?i)^["'”’]*(?: *$|[.,;!?…]| *[—–]| +(?:instead|now|then|because|since|from me|for me|it is|for this|for now|here|again|rather|at best|at most|overall|territory|please|today|first|level|quality|grade)\b|` +
		` +(?:is|would be|seems|feels|fits)(?: +(?:the|a|my))?(?: +(?:more|far|much))?(?: *[.!]?$| +(?:better|right|fair|fairer|honest|correct|appropriate|safer|safe|wiser|warranted|needed|necessary|due|justified|verdict|decision|answer|call|choice|minimum)\b))`)
	// elsewhereRe stands before a value that belongs to something else: an older text, a numbered item.
	elsewhereRe = regexp.MustCompile(`\pL[ -]#?[0-9]+[^,.]{0,20}[:=] *$`)
	imagined    = regexp.MustCompile(`(?i)\b(previously|formerly|draft|example|template|hypothetical)\b`)
	// weighed stands before a value that was thought of on the way to the decision.
	weighed = regexp.MustCompile(`(?i)\b(could|might|may|would|first|initially|considered|tempted|torn|close|short of|almost|nearly)\b`)
	// overcome goes on behind such a value.
	overcome = regexp.MustCompile(`, *(?:but|yet|though|until|before)\b`)
)

// rivalled reports whether a sentence of a line names another value as the one that fits: "Should be IMPROVE.", or IMPROVE alone.
// Only values in capitals are told from ordinary words. early lines stand before the decision.
func (d *decisionRule) rivalled(lines []string, i int, early bool) bool {
	line := lines[i]
	if !slices.ContainsFunc(d.Values[1:], func(v string) bool { return strings.Contains(line, v) }) {
		return false
	}
	if strings.Contains(line, "|") || len(named(line, d.Values)) > 2 {
		return false
	}
	if _, _, ok := d.cut(bare(line)); ok {
		return false // read already
	}
	for _, s := range sentence.Split(said.ReplaceAllString(line, " ")+" ", -1) {
		s = strings.TrimSpace(s)
		if imagined.MatchString(s) || weighed.MatchString(s) && (early || overcome.MatchString(s)) {
			continue
		}
		if d.names(strings.Trim(bare(s), "[]()")) && !d.listed(lines, i) {
			return true
		}
	}
	return false
}

// names reports whether a sentence names another value, with no word before it that spares or denies it.
func (d *decisionRule) names(s string) bool {
	for _, v := range d.Values[1:] {
		n := strings.Index(s, v)
		if n < 0 || v != strings.ToUpper(v) || v == strings.ToLower(v) {
			continue
		}
		before, after := strings.TrimRight(s[:n], ` "'“‘`), s[n+len(v):]
		r, _ := utf8.DecodeLastRuneInString(before)
		first := strings.IndexFunc(before, unicode.IsLetter) < 0
		switch {
		case wordBehind(s[:n]) || !asName.MatchString(after):
		case !first && !unicode.IsLetter(r) && r != ',': // a tag behind a sign: "Header: POLISH"
		case spared.MatchString(s[:n]), twice.MatchString(clause(before)), older.MatchString(before), elsewhereRe.MatchString(before):
		default:
			return true
		}
	}
	return false
}

// wordBehind reports whether a text ends within a word.
func wordBehind(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	return s != "" && wordRune(r) && r != '.'
}

// listed reports whether the line above or below begins with a value, too: then a line is one of a list of all of them.
func (d *decisionRule) listed(lines []string, i int) bool {
	if !d.begins(bare(lines[i])) {
		return false
	}
	for _, step := range []int{-1, 1} {
		at := i + step
		for at >= 0 && at < len(lines) && lines[at] == "" && at > i-3 && at < i+3 {
			at += step
		}
		if at < 0 || at >= len(lines) {
			continue
		}
		if word, _, _ := strings.Cut(bare(lines[at]), " "); slices.Contains(d.Values, strings.Trim(word, endMark)) {
			return true
		}
	}
	return false
}
